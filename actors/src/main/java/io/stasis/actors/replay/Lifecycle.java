package io.stasis.actors.replay;

import io.stasis.engine.lifecycle.ComputationLifecycle;
import io.stasis.engine.lifecycle.ConnectionLifecycle;
import io.stasis.engine.lifecycle.Decision;
import io.stasis.engine.lifecycle.Phase;
import io.stasis.engine.lifecycle.ProcessLifecycle;
import io.stasis.engine.lifecycle.ThreadLifecycle;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * One of the lifecycles, with all that playing it back takes.
 *
 * @param initial state of an entity of which there is no record
 * @param possible states in which an entity may be at the begin of a log that continues another, whatever its next event
 * @param decide what it decides on the command that an event answers
 * @param evolve the next state
 */
record Lifecycle<S, E>(
        S initial, Function<E, List<S>> possible, BiFunction<S, E, Decision<E>> decide, BiFunction<S, E, S> evolve) {

    private static final Lifecycle<ProcessLifecycle.State, ProcessLifecycle.Event> PROCESS = new Lifecycle<>(
            ProcessLifecycle.initial(),
            event -> processes(),
            (state, event) -> ProcessLifecycle.decide(state, Causes.of(event)),
            ProcessLifecycle::evolve);

    private static final Lifecycle<ThreadLifecycle.State, ThreadLifecycle.Event> THREAD = new Lifecycle<>(
            ThreadLifecycle.initial(),
            event -> List.of(
                    new ThreadLifecycle.State.Running(),
                    new ThreadLifecycle.State.Ended(),
                    new ThreadLifecycle.State.Stopped("", null)),
            (state, event) -> ThreadLifecycle.decide(state, Causes.of(event)),
            ThreadLifecycle::evolve);

    private static final Lifecycle<ConnectionLifecycle.State, ConnectionLifecycle.Event> CONNECTION = new Lifecycle<>(
            ConnectionLifecycle.initial(),
            event -> List.of(new ConnectionLifecycle.State.Flowing(), new ConnectionLifecycle.State.Drained(null)),
            (state, event) -> ConnectionLifecycle.decide(state, Causes.of(state, event)),
            ConnectionLifecycle::evolve);

    private static final Lifecycle<ComputationLifecycle.State, ComputationLifecycle.Event> COMPUTATION =
            new Lifecycle<>(
                    ComputationLifecycle.initial(),
                    Lifecycle::computations,
                    (state, event) -> ComputationLifecycle.decide(state, Causes.of(event)),
                    ComputationLifecycle::evolve);

    /** The lifecycle that an event belongs to. */
    static Lifecycle<?, ?> of(Object event) {
        return switch (event) {
            case ProcessLifecycle.Event e -> PROCESS;
            case ThreadLifecycle.Event e -> THREAD;
            case ConnectionLifecycle.Event e -> CONNECTION;
            case ComputationLifecycle.Event e -> COMPUTATION;
            default -> throw new IllegalStateException("no lifecycle has the event " + event);
        };
    }

    /** One entity on its way through a log. */
    final class Track {
        private S state;
        private final List<E> due = new ArrayList<>();

        Track() {
            this.state = initial;
        }

        Object state() {
            return state;
        }

        /** Events that a command has besides the one that was seen, and that were not seen yet. */
        List<E> due() {
            return due;
        }

        /** Takes an event as it stands. */
        void follow(Object event) {
            state = evolve.apply(state, own(event));
        }

        /** Starts in a state in which the event may come, when there is one: what was before is not in this log. */
        void assume(Object event) {
            E own = own(event);
            possible.apply(own).stream()
                    .filter(candidate -> decide.apply(candidate, own) instanceof Decision.Accepted<E>(List<E> events)
                            && !events.isEmpty()
                            && Objects.equals(events.getFirst(), own))
                    .findFirst()
                    .ifPresent(candidate -> state = candidate);
        }

        /** Decides again and follows the event. What else was decided, or why it was refused; null for the same event. */
        String decideAgain(Object event) {
            E own = own(event);
            String otherwise = null;
            if (!due.isEmpty()) {
                E expected = due.removeFirst();
                if (!expected.equals(own)) {
                    due.clear();
                    otherwise = EventText.describe(expected);
                }
            } else {
                otherwise = switch (decide.apply(state, own)) {
                    case Decision.Rejected<E>(String reason) -> "nothing, as " + reason;
                    case Decision.Accepted<E>(List<E> events) when events.isEmpty() -> "nothing";
                    case Decision.Accepted<E>(List<E> events)
                    when events.getFirst().equals(own) -> {
                        due.addAll(events.subList(1, events.size()));
                        yield null;
                    }
                    case Decision.Accepted<E>(List<E> events) -> EventText.describe(events.getFirst());
                };
            }
            follow(event);
            return otherwise;
        }

        @SuppressWarnings("unchecked")
        private E own(Object event) {
            if (Lifecycle.of(event) != Lifecycle.this) {
                throw new IllegalStateException("an event of another kind of entity: " + event);
            }
            return (E) event;
        }
    }

    /** Of the kind of the event, at its begin. */
    static Lifecycle<?, ?>.Track track(Object event) {
        return of(event).newTrack();
    }

    private Track newTrack() {
        return new Track();
    }

    private static List<ProcessLifecycle.State> processes() {
        List<ProcessLifecycle.State> states = new ArrayList<>();
        states.add(new ProcessLifecycle.State.Free());
        states.add(new ProcessLifecycle.State.Ended());
        for (Phase phase : Phase.values()) {
            states.add(new ProcessLifecycle.State.Doing(phase, ""));
            states.add(new ProcessLifecycle.State.Did(phase));
            states.add(new ProcessLifecycle.State.Broken(phase, ""));
        }
        return states;
    }

    private static List<ComputationLifecycle.State> computations(ComputationLifecycle.Event event) {
        String operation = event instanceof ComputationLifecycle.Event.Aborted(String id, String reason) ? id : "";
        var tree = new ComputationLifecycle.Tree("", 0, 0, null, List.of());
        List<ComputationLifecycle.State> states = new ArrayList<>();
        for (var trees : List.of(Map.of(tree.host(), tree), Map.<String, ComputationLifecycle.Tree>of())) {
            states.add(new ComputationLifecycle.State(trees, null, 0, null, null, null));
            for (boolean kill : new boolean[] {false, true}) {
                for (boolean restart : new boolean[] {false, true}) {
                    Stream.concat(Stream.of((Phase) null), Stream.of(Phase.values()))
                            .map(phase -> new ComputationLifecycle.Operation(operation, restart, 0, null, kill, phase))
                            .map(under -> new ComputationLifecycle.State(trees, null, 0, under, null, null))
                            .forEach(states::add);
                }
            }
        }
        return states;
    }
}
