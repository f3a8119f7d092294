package io.stasis.engine.lifecycle;

import io.stasis.engine.Outcome.StopPoint;

/** One thread of a checkpointed process, as the log tells it. */
public final class ThreadLifecycle {
    public sealed interface Command {
        record Suspend(String name, StopPoint at, long waitNanos, String cause) implements Command {}

        record Resume(String cause) implements Command {}

        record Restore(String cause) implements Command {}

        record End(String cause) implements Command {}
    }

    public sealed interface Event {
        /** @param waitNanos how long the thread took to stop */
        record Suspended(String name, StopPoint at, long waitNanos, String cause) implements Event {}

        record Resumed(String cause) implements Event {}

        record Restored(String cause) implements Event {}

        record Ended(String cause) implements Event {}
    }

    public sealed interface State {
        record Running() implements State {}

        record Stopped(String name, StopPoint at) implements State {}

        record Ended() implements State {}
    }

    private ThreadLifecycle() {}

    public static State initial() {
        return new State.Running();
    }

    public static Decision<Event> decide(State state, Command command) {
        return switch (command) {
            case Command.Suspend(String name, StopPoint at, long wait, String cause) ->
                state instanceof State.Running
                        ? Decision.accept(new Event.Suspended(name, at, wait, cause))
                        : Decision.reject("a thread that is " + state + " cannot be suspended");
            case Command.Resume(String cause) ->
                state instanceof State.Stopped
                        ? Decision.accept(new Event.Resumed(cause))
                        : Decision.reject("a thread that is " + state + " cannot be resumed");
            case Command.Restore(String cause) ->
                state instanceof State.Stopped
                        ? Decision.reject("a suspended thread cannot be restored")
                        : Decision.accept(new Event.Restored(cause));
            case Command.End(String cause) ->
                state instanceof State.Ended ? Decision.accept() : Decision.accept(new Event.Ended(cause));
        };
    }

    public static State evolve(State state, Event event) {
        return switch (event) {
            case Event.Suspended(String name, StopPoint at, long wait, String cause) -> new State.Stopped(name, at);
            case Event.Resumed e -> new State.Running();
            case Event.Restored e -> new State.Running();
            case Event.Ended e -> new State.Ended();
        };
    }
}
