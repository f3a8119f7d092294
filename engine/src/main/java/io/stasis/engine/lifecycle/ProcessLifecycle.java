package io.stasis.engine.lifecycle;

import io.stasis.engine.Outcome;

/**
 * One process, as the log tells it. Each native step is an intent, which is in the log before the kernel is touched, and
 * an outcome after it.
 */
public final class ProcessLifecycle {
    public sealed interface Command {
        /** @param cause id of the operation that asks for it */
        record Begin(Phase phase, String cause) implements Command {}

        record Complete(Outcome outcome) implements Command {}

        record Fail(String reason) implements Command {}

        /** The operation was given up; the process is let go (or, at a restart, was taken away). */
        record Abandon(String reason) implements Command {}
    }

    public sealed interface Event {
        record Intended(Phase phase, String cause) implements Event {}

        record Suspended(Outcome.Suspended outcome) implements Event {}

        record Drained(Outcome.Drained outcome) implements Event {}

        record Written(Outcome.Written outcome) implements Event {}

        record Refilled(Outcome.Refilled outcome) implements Event {}

        record Resumed(Outcome.Resumed outcome) implements Event {}

        record Terminated(Outcome.Resumed outcome) implements Event {}

        record Created(Outcome.Created outcome) implements Event {}

        record Rebuilt(Outcome.Rebuilt outcome) implements Event {}

        record Replenished(Outcome.Refilled outcome) implements Event {}

        record Released(Outcome.Released outcome) implements Event {}

        /** The process had ended before it could be frozen. */
        record Vanished() implements Event {}

        record Failed(Phase phase, String reason) implements Event {}

        record Abandoned(String reason) implements Event {}
    }

    public sealed interface State {
        /** Nothing is being done to it: it runs, or is not known yet. */
        record Free() implements State {}

        record Doing(Phase phase, String cause) implements State {}

        record Did(Phase phase) implements State {}

        record Broken(Phase phase, String reason) implements State {}

        record Ended() implements State {}
    }

    private ProcessLifecycle() {}

    public static State initial() {
        return new State.Free();
    }

    public static Decision<Event> decide(State state, Command command) {
        return switch (command) {
            case Command.Begin(Phase phase, String cause) -> begin(state, phase, cause);
            case Command.Complete(Outcome outcome) -> complete(state, outcome);
            case Command.Fail(String reason) ->
                state instanceof State.Doing(Phase phase, String cause)
                        ? Decision.accept(new Event.Failed(phase, reason))
                        : Decision.reject("nothing is being done that could fail");
            case Command.Abandon(String reason) ->
                switch (state) {
                    case State.Free() -> Decision.accept();
                    case State.Ended() -> Decision.accept();
                    case State.Doing doing -> Decision.accept(new Event.Abandoned(reason));
                    case State.Did did -> Decision.accept(new Event.Abandoned(reason));
                    case State.Broken broken -> Decision.accept(new Event.Abandoned(reason));
                };
        };
    }

    private static Decision<Event> begin(State state, Phase phase, String cause) {
        boolean allowed = switch (state) {
            case State.Free() -> phase == Phase.SUSPEND || phase == Phase.CREATE;
            // A process that was killed may be made again from its image.
            case State.Ended() -> phase == Phase.CREATE;
            case State.Did(Phase done) -> done.mayPrecede(phase);
            case State.Doing doing -> false;
            case State.Broken broken -> false;
        };
        return allowed
                ? Decision.accept(new Event.Intended(phase, cause))
                : Decision.reject("phase " + phase + " cannot follow " + state);
    }

    private static Decision<Event> complete(State state, Outcome outcome) {
        if (!(state instanceof State.Doing(Phase phase, String cause))) {
            return Decision.reject("nothing is being done that could complete");
        }
        Event event = switch (outcome) {
            case Outcome.Suspended o
            when phase == Phase.SUSPEND -> o.threads().isEmpty() ? new Event.Vanished() : new Event.Suspended(o);
            case Outcome.Drained o when phase == Phase.DRAIN -> new Event.Drained(o);
            case Outcome.Written o when phase == Phase.WRITE -> new Event.Written(o);
            case Outcome.Refilled o when phase == Phase.REFILL -> new Event.Refilled(o);
            case Outcome.Refilled o when phase == Phase.REPLENISH -> new Event.Replenished(o);
            case Outcome.Resumed o when phase == Phase.RESUME -> new Event.Resumed(o);
            case Outcome.Resumed o when phase == Phase.TERMINATE -> new Event.Terminated(o);
            case Outcome.Created o when phase == Phase.CREATE -> new Event.Created(o);
            case Outcome.Rebuilt o when phase == Phase.REBUILD -> new Event.Rebuilt(o);
            case Outcome.Released o when phase == Phase.RELEASE -> new Event.Released(o);
            default -> null;
        };
        return event == null
                ? Decision.reject(outcome.getClass().getSimpleName() + " is no outcome of " + phase)
                : Decision.accept(event);
    }

    public static State evolve(State state, Event event) {
        return switch (event) {
            case Event.Intended(Phase phase, String cause) -> new State.Doing(phase, cause);
            case Event.Suspended e -> new State.Did(Phase.SUSPEND);
            case Event.Drained e -> new State.Did(Phase.DRAIN);
            case Event.Written e -> new State.Did(Phase.WRITE);
            case Event.Refilled e -> new State.Did(Phase.REFILL);
            case Event.Resumed e -> new State.Free();
            case Event.Terminated e -> new State.Ended();
            case Event.Created e -> new State.Did(Phase.CREATE);
            case Event.Rebuilt e -> new State.Did(Phase.REBUILD);
            case Event.Replenished e -> new State.Did(Phase.REPLENISH);
            case Event.Released e -> new State.Free();
            case Event.Vanished() -> new State.Ended();
            case Event.Failed(Phase phase, String reason) -> new State.Broken(phase, reason);
            case Event.Abandoned(String reason) -> isOfRestart(state) ? new State.Ended() : new State.Free();
        };
    }

    private static boolean isOfRestart(State state) {
        return switch (state) {
            case State.Doing(Phase phase, String cause) -> phase.isRestart();
            case State.Did(Phase phase) -> phase.isRestart();
            case State.Broken(Phase phase, String reason) -> phase.isRestart();
            case State.Free() -> false;
            case State.Ended() -> false;
        };
    }
}
