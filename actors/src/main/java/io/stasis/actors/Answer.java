package io.stasis.actors;

import io.stasis.engine.EngineException;
import io.stasis.engine.Outcome;
import io.stasis.engine.lifecycle.ComputationLifecycle.Generation;
import io.stasis.engine.lifecycle.ComputationLifecycle.Tree;
import io.stasis.engine.lifecycle.Phase;
import io.stasis.image.ImageException;
import io.stasis.image.ImageWriteException;
import java.util.List;

/** Answers to whoever asked for something. */
public sealed interface Answer extends Message {
    /**
     * It could not be done; everything is as it was.
     *
     * @param code for programs, see the control protocol
     * @param exit exit code of the command
     * @param message one sentence for the user
     */
    record Refused(String code, int exit, String message) implements Answer {
        static Refused of(Throwable failure) {
            Throwable cause = failure;
            while ((cause instanceof java.util.concurrent.CompletionException) && cause.getCause() != null) {
                cause = cause.getCause();
            }
            String message = cause.getMessage() == null ? cause.toString() : cause.getMessage();
            if (cause instanceof EngineException e) {
                return switch (e.kind()) {
                    case BUSY -> new Refused("busy", 1, message);
                    case FAILED -> new Refused("failed", 1, message);
                    case UNSUPPORTED -> new Refused("unsupported", 4, message);
                    case IMAGE -> new Refused("image", 5, message);
                    case ACCESS -> new Refused("access", 6, message);
                    case PID_TAKEN -> new Refused("pid-taken", 7, message);
                };
            }
            return cause instanceof ImageException && !(cause instanceof ImageWriteException)
                    ? new Refused("image", 5, message)
                    : new Refused("failed", 1, message);
        }
    }

    record Registered(String name, String directory) implements Answer {}

    record Checkpointed(String name, String directory, Generation generation) implements Answer {}

    /**
     * @param stub executable to be spawned by the client; null when the agent spawns it itself
     * @param pty whether on a pseudo-terminal of its own
     */
    record Prepared(String name, String operation, String stub, boolean pty) implements Answer {}

    /**
     * @param terminalSettings {@code struct termios2}, null for none
     */
    record Restarted(
            String name,
            int generation,
            int root,
            List<Integer> pids,
            int foregroundGroup,
            byte[] terminalSettings,
            long totalNanos)
            implements Answer {}

    record Killed(List<Integer> pids) implements Answer {}

    /** One computation for {@code ps}. */
    record Described(
            String name,
            String state,
            List<Tree> trees,
            int processes,
            int threads,
            String directory,
            int intervalSeconds,
            Generation last)
            implements Answer {}

    record Listed(List<String> hosts, List<Described> computations) implements Answer {}

    // Between a computation and the node agents.

    record Opened(String operation, String host, int processes, String stub, boolean pty) implements Answer {}

    /**
     * A phase is done on one host.
     *
     * @param finished files and processes, after WRITE; else null
     * @param restarted root, pids and terminal, after RELEASE; else null
     */
    record PhaseDone(
            String operation,
            String host,
            Phase phase,
            int processes,
            int threads,
            long bytes,
            long pausedNanos,
            Outcome.Finished finished,
            Restarted restarted,
            Tree tree)
            implements Answer {}

    record PhaseFailed(String operation, String host, Refused why) implements Answer {}

    record Abandoned(String operation, String host) implements Answer {}

    /** @param running trees that run, of those asked for, with how many processes and threads */
    record Inspected(String host, List<Running> running) implements Answer {}

    record Running(Tree tree, int processes, int threads) implements Message {}
}
