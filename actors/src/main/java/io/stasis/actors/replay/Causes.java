package io.stasis.actors.replay;

import io.stasis.engine.Outcome;
import io.stasis.engine.lifecycle.ComputationLifecycle;
import io.stasis.engine.lifecycle.ConnectionLifecycle;
import io.stasis.engine.lifecycle.ProcessLifecycle;
import io.stasis.engine.lifecycle.ThreadLifecycle;
import java.util.List;

/**
 * The commands that recorded events answer.
 *
 * <p>The log keeps events only: an event carries all that its command did, and which command that was follows from its
 * type. So commands cost no byte of the log and no write during a pause. What cannot be told from a log are commands that
 * were refused, as these leave no event. Where one command has two events, the first one leads back to it.
 */
final class Causes {
    private Causes() {}

    static ProcessLifecycle.Command of(ProcessLifecycle.Event event) {
        return switch (event) {
            case ProcessLifecycle.Event.Intended(var phase, String cause) ->
                new ProcessLifecycle.Command.Begin(phase, cause);
            case ProcessLifecycle.Event.Suspended(var o) -> new ProcessLifecycle.Command.Complete(o);
            case ProcessLifecycle.Event.Drained(var o) -> new ProcessLifecycle.Command.Complete(o);
            case ProcessLifecycle.Event.Written(var o) -> new ProcessLifecycle.Command.Complete(o);
            case ProcessLifecycle.Event.Refilled(var o) -> new ProcessLifecycle.Command.Complete(o);
            case ProcessLifecycle.Event.Resumed(var o) -> new ProcessLifecycle.Command.Complete(o);
            case ProcessLifecycle.Event.Terminated(var o) -> new ProcessLifecycle.Command.Complete(o);
            case ProcessLifecycle.Event.Created(var o) -> new ProcessLifecycle.Command.Complete(o);
            case ProcessLifecycle.Event.Rebuilt(var o) -> new ProcessLifecycle.Command.Complete(o);
            case ProcessLifecycle.Event.Replenished(var o) -> new ProcessLifecycle.Command.Complete(o);
            case ProcessLifecycle.Event.Released(var o) -> new ProcessLifecycle.Command.Complete(o);
            // A process of which no thread was left to stop.
            case ProcessLifecycle.Event.Vanished() ->
                new ProcessLifecycle.Command.Complete(new Outcome.Suspended(null, List.of(), List.of(), 0, 0));
            case ProcessLifecycle.Event.Failed(var phase, String reason) -> new ProcessLifecycle.Command.Fail(reason);
            case ProcessLifecycle.Event.Abandoned(String reason) -> new ProcessLifecycle.Command.Abandon(reason);
        };
    }

    static ThreadLifecycle.Command of(ThreadLifecycle.Event event) {
        return switch (event) {
            case ThreadLifecycle.Event.Suspended(String name, var at, long wait, String cause) ->
                new ThreadLifecycle.Command.Suspend(name, at, wait, cause);
            case ThreadLifecycle.Event.Resumed(String cause) -> new ThreadLifecycle.Command.Resume(cause);
            case ThreadLifecycle.Event.Restored(String cause) -> new ThreadLifecycle.Command.Restore(cause);
            case ThreadLifecycle.Event.Ended(String cause) -> new ThreadLifecycle.Command.End(cause);
        };
    }

    /** A connection that was drained gets its own bytes back: so many and no others. */
    static ConnectionLifecycle.Command of(ConnectionLifecycle.State state, ConnectionLifecycle.Event event) {
        return switch (event) {
            case ConnectionLifecycle.Event.Drained(var connection, String cause) ->
                new ConnectionLifecycle.Command.Drain(connection, cause);
            case ConnectionLifecycle.Event.Refilled(long bytes, String cause) ->
                new ConnectionLifecycle.Command.Refill(
                        state instanceof ConnectionLifecycle.State.Drained(var drained) && drained != null
                                ? drained
                                : new Outcome.Connection(null, null, bytes, List.of()),
                        cause);
            case ConnectionLifecycle.Event.Abandoned(String reason) -> new ConnectionLifecycle.Command.Abandon(reason);
        };
    }

    static ComputationLifecycle.Command of(ComputationLifecycle.Event event) {
        return switch (event) {
            case ComputationLifecycle.Event.Registered(var tree, String directory, int interval) ->
                new ComputationLifecycle.Command.Register(tree, directory, interval);
            case ComputationLifecycle.Event.CheckpointStarted e ->
                new ComputationLifecycle.Command.StartCheckpoint(
                        e.operation(), e.generation(), e.directory(), e.kill(), e.cause());
            case ComputationLifecycle.Event.RestartStarted e ->
                new ComputationLifecycle.Command.StartRestart(
                        e.operation(), e.generation(), e.directory(), e.logHead(), e.cause());
            case ComputationLifecycle.Event.PhaseStarted(var phase) ->
                new ComputationLifecycle.Command.StartPhase(phase);
            case ComputationLifecycle.Event.PhaseFinished(var phase, long nanos) ->
                new ComputationLifecycle.Command.FinishPhase(phase, nanos);
            case ComputationLifecycle.Event.Committed(var generation) ->
                new ComputationLifecycle.Command.Commit(generation);
            case ComputationLifecycle.Event.Restarted(var trees) ->
                new ComputationLifecycle.Command.FinishRestart(trees);
            case ComputationLifecycle.Event.Aborted(String operation, String reason) ->
                new ComputationLifecycle.Command.Abort(reason);
            case ComputationLifecycle.Event.Ended(String reason) -> new ComputationLifecycle.Command.End(reason);
            case ComputationLifecycle.Event.KeyChosen(String file) -> new ComputationLifecycle.Command.ChooseKey(file);
        };
    }
}
