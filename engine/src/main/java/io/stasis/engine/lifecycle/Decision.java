package io.stasis.engine.lifecycle;

import java.util.List;

/**
 * What a lifecycle says to a command: the events that follow, or a refusal.
 *
 * @param <E> type of the events
 */
public sealed interface Decision<E> {
    /** @param events what happens, in order; empty when there is nothing to do */
    record Accepted<E>(List<E> events) implements Decision<E> {}

    /** @param reason one sentence */
    record Rejected<E>(String reason) implements Decision<E> {}

    /** There is nothing to do. */
    static <E> Decision<E> accept() {
        return new Accepted<>(List.of());
    }

    static <E> Decision<E> accept(E event) {
        return new Accepted<>(List.of(event));
    }

    static <E> Decision<E> accept(E first, E second) {
        return new Accepted<>(List.of(first, second));
    }

    static <E> Decision<E> reject(String reason) {
        return new Rejected<>(reason);
    }
}
