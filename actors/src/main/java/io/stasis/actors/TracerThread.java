package io.stasis.actors;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/**
 * The platform thread that makes all ptrace calls of one session: the kernel ties a tracee to the thread that seized it,
 * and releases it when that thread ends. Blocking native work happens here, never on Akka's dispatchers.
 */
final class TracerThread implements AutoCloseable {
    private static final AtomicInteger COUNT = new AtomicInteger();

    private final ExecutorService executor;

    TracerThread() {
        String name = "tracer-" + COUNT.incrementAndGet();
        this.executor = Executors.newSingleThreadExecutor(
                task -> Thread.ofPlatform().daemon().name(name).unstarted(task));
    }

    <T> CompletionStage<T> run(Supplier<T> work) {
        return CompletableFuture.supplyAsync(work, executor);
    }

    /** Ends the thread when what was asked of it is done. */
    @Override
    public void close() {
        executor.shutdown();
    }
}
