package io.stasis.engine.lifecycle;

import io.stasis.engine.Outcome.Connection;

/** One pipe or socket between processes, as the log tells it. */
public final class ConnectionLifecycle {
    public sealed interface Command {
        record Drain(Connection connection, String cause) implements Command {}

        record Refill(Connection connection, String cause) implements Command {}

        record Abandon(String reason) implements Command {}
    }

    public sealed interface Event {
        /** Its bytes in flight are in the image. */
        record Drained(Connection connection, String cause) implements Event {}

        /** Its bytes are in flight again: put back, or never taken out. */
        record Refilled(long bytes, String cause) implements Event {}

        record Abandoned(String reason) implements Event {}
    }

    public sealed interface State {
        record Flowing() implements State {}

        record Drained(Connection connection) implements State {}
    }

    private ConnectionLifecycle() {}

    public static State initial() {
        return new State.Flowing();
    }

    public static Decision<Event> decide(State state, Command command) {
        return switch (command) {
            case Command.Drain(Connection connection, String cause) ->
                state instanceof State.Flowing
                        ? Decision.accept(new Event.Drained(connection, cause))
                        : Decision.reject("a connection that is drained cannot be drained again");
            // At a restart the connection is new: it is refilled without having been drained in this life.
            case Command.Refill(Connection connection, String cause) ->
                Decision.accept(new Event.Refilled(connection.bytes(), cause));
            case Command.Abandon(String reason) ->
                state instanceof State.Drained ? Decision.accept(new Event.Abandoned(reason)) : Decision.accept();
        };
    }

    public static State evolve(State state, Event event) {
        return switch (event) {
            case Event.Drained(Connection connection, String cause) -> new State.Drained(connection);
            case Event.Refilled e -> new State.Flowing();
            case Event.Abandoned e -> new State.Flowing();
        };
    }
}
