import java.io.File;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Counts. Four threads add their share to every number; a child process at the end of a pipe writes them to a file.
 * Argument: the file.
 */
public class Counter {
    private static final int WORKERS = 4;
    private static volatile boolean stopping;

    public static void main(String[] arguments) throws Exception {
        Process child = new ProcessBuilder("sh", "-c", "trap '' TERM; exec cat")
                .redirectOutput(new File(arguments[0]))
                .start();
        OutputStream pipe = child.getOutputStream();
        AtomicInteger shares = new AtomicInteger();
        CyclicBarrier start = new CyclicBarrier(WORKERS + 1);
        CyclicBarrier done = new CyclicBarrier(WORKERS + 1);
        for (int i = 0; i < WORKERS; i++) {
            Thread.ofPlatform().daemon().start(() -> {
                try {
                    while (true) {
                        start.await();
                        shares.incrementAndGet();
                        done.await();
                    }
                } catch (Exception e) {
                    Runtime.getRuntime().halt(1);
                }
            });
        }
        Thread counting = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                stopping = true;
                counting.join();
            } catch (InterruptedException e) {
                Runtime.getRuntime().halt(1);
            }
            Runtime.getRuntime().halt(0);
        }));
        for (int number = 1; !stopping; number++) {
            start.await();
            done.await();
            if (shares.get() != number * WORKERS) {
                Runtime.getRuntime().halt(1);
            }
            pipe.write((number + "\n").getBytes(StandardCharsets.US_ASCII));
            pipe.flush();
            Thread.sleep(10);
        }
        pipe.close();
        child.waitFor();
    }
}
