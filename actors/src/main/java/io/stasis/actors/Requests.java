package io.stasis.actors;

import akka.actor.typed.ActorRef;
import akka.actor.typed.ActorSystem;
import akka.actor.typed.javadsl.AskPattern;
import akka.japi.function.Function;
import io.stasis.engine.RestartOptions;
import io.stasis.engine.lifecycle.ComputationLifecycle.Tree;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletionException;

/** What the control socket asks the coordinator. Each call blocks until the answer is there. */
public final class Requests {
    private static final Duration SOON = Duration.ofSeconds(30);
    /** Writing or reading a very large image takes its time. */
    private static final Duration LONG = Duration.ofHours(12);

    private final ActorRef<Coordinator.Command> coordinator;
    private final ActorSystem<Void> system;

    public Requests(ActorRef<Coordinator.Command> coordinator, ActorSystem<Void> system) {
        this.coordinator = coordinator;
        this.system = system;
    }

    /** A failure as an answer. */
    public static Answer.Refused refusal(Throwable failure) {
        return Answer.Refused.of(failure);
    }

    private Answer ask(Function<ActorRef<Answer>, Coordinator.Command> message, Duration patience) {
        try {
            return AskPattern.<Coordinator.Command, Answer>ask(coordinator, message, patience, system.scheduler())
                    .toCompletableFuture()
                    .join();
        } catch (CompletionException e) {
            return Answer.Refused.of(e);
        }
    }

    public Answer register(String name, String directory, int intervalSeconds, Tree tree) {
        return register(name, directory, intervalSeconds, null, tree);
    }

    /** @param keyFile of the key to sign with, null for none */
    public Answer register(String name, String directory, int intervalSeconds, String keyFile, Tree tree) {
        return ask(to -> new Coordinator.Register(name, directory, intervalSeconds, keyFile, tree, to), SOON);
    }

    public Answer checkpoint(String host, String name, int pid, String directory, String cwd, boolean kill) {
        return checkpoint(host, name, pid, directory, cwd, kill, null);
    }

    /** @param keyFile of the key to sign with, null for the computation's own, if any */
    public Answer checkpoint(
            String host, String name, int pid, String directory, String cwd, boolean kill, String keyFile) {
        return ask(to -> new Coordinator.Checkpoint(host, name, pid, directory, cwd, kill, keyFile, to), LONG);
    }

    /** @param generation 0 for the newest */
    public Answer prepareRestart(String host, Path directory, int generation, RestartOptions options) {
        return prepareRestart(host, directory, generation, options, null);
    }

    /**
     * @param generation 0 for the newest
     * @param requiredKey base64 of the public key that must have signed it, null for none
     */
    public Answer prepareRestart(
            String host, Path directory, int generation, RestartOptions options, String requiredKey) {
        String name = Generations.computationOf(directory, generation);
        return ask(
                to -> new Coordinator.PrepareRestart(
                        name, host, directory.toString(), generation, options, requiredKey, to),
                LONG);
    }

    public Answer finishRestart(String name, String operation, int stub) {
        return ask(to -> new Coordinator.FinishRestart(name, operation, stub, to), LONG);
    }

    public void cancelRestart(String name, String operation) {
        coordinator.tell(new Coordinator.CancelRestart(name, operation));
    }

    public Answer list() {
        return ask(Coordinator.ListAll::new, SOON);
    }

    public Answer kill(String host, String name, int pid, long graceMillis) {
        return ask(to -> new Coordinator.Kill(host, name, pid, graceMillis, to), SOON.plusMillis(graceMillis));
    }
}
