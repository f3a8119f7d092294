package io.stasis.engine.resource;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.Outcome;
import io.stasis.image.model.OpenDescription;
import io.stasis.linux.ptrace.CallTable;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;
import java.util.function.Supplier;
import java.util.function.ToIntFunction;

/**
 * One kind of open file description, both directions: whoever adds a kind adds one implementation, a record of {@link
 * OpenDescription} for what the image keeps of it, and a line in {@code io.stasis.engine.kinds.Kinds}.
 *
 * <p>A capture asks {@link #claims}, {@link #problem}, {@link #capture}. A restart goes through {@link #verify}, {@link
 * #openAll} in the stub, {@link #openInProcess} and {@link #install} in each process, and {@link #complete} when all
 * processes are built and none runs yet.
 *
 * @param <D> what the image keeps of it
 */
public interface DescriptorKind<D extends OpenDescription> {
    /** The class of {@code D}: at a restart it finds the kind of a description. */
    Class<D> type();

    /** Whether this kind is responsible for the descriptor. The first kind that says so has it. */
    boolean claims(Descriptor descriptor);

    /** Why the descriptor cannot be captured although it is of this kind. Disturbs nothing. */
    default Optional<Problem> problem(Descriptor descriptor) {
        return Optional.empty();
    }

    /** Captures the description behind the descriptor of a frozen process; called once for each description. */
    D capture(Descriptor descriptor);

    /**
     * As {@link #capture(Descriptor)}, for kinds in which other descriptors are on their way.
     *
     * @param others captures the description behind such a descriptor, unless it is known, and tells its index
     */
    default D capture(Descriptor descriptor, ToIntFunction<Descriptor> others) {
        return capture(descriptor);
    }

    /** Descriptions that no descriptor leads to but those captured so far need; called until there are no more. */
    default List<D> captureHidden() {
        return List.of();
    }

    /** Connections whose bytes in flight were captured since the last call. */
    default List<Outcome.Connection> takeConnections() {
        return List.of();
    }

    /** The frozen tree, whose image is safe, is about to be killed: what would outlive it and be in the way is prevented. */
    default void beforeEnd() {}

    /** Forgets what a survey saw: the tree runs, and what it holds comes and goes. */
    default void lookAgain() {}

    /** What stands in the way of opening it again on this host. */
    default List<Problem> verify(D description) {
        return List.of();
    }

    /** Whether it can only be opened once the processes exist, in each of those that hold it. */
    default boolean isPerProcess(D description) {
        return false;
    }

    /**
     * Adds the calls, to be run in the stub, that leave every description open at its descriptor.
     *
     * @param byTarget the descriptions of this kind by the descriptors they are to have
     */
    default void openAll(SortedMap<Integer, D> byTarget, StubCalls stub) {
        byTarget.forEach((target, description) -> open(description, target, stub));
    }

    /** Adds the calls, to be run in the stub, that leave the description open at {@code target}. */
    void open(D description, int target, StubCalls stub);

    /** As {@link #open}, in a process, for those that are {@link #isPerProcess}. */
    default void openInProcess(D description, int target, StubCalls own) {
        open(description, target, own);
    }

    /**
     * Adds calls to be run in a process that holds the description, while it still has the stub's table: every description
     * is open at {@link StubCalls#descriptor}, and all numbers from {@link StubCalls#FIRST} up to these are free.
     *
     * @param index the description's index in the image
     */
    default void beforeInstall(D description, int index, StubCalls own) {}

    /**
     * Adds calls to be run in a process that holds the description, when its whole descriptor table is in place.
     *
     * @param index the description's index in the image
     * @param fd a descriptor of the process that leads to it
     */
    default void install(D description, int index, int fd, int pid, Supplier<CallTable> calls) {}

    /**
     * Does what is left when all processes are built, here and through the stub's descriptors: bytes in flight are put
     * back, timers armed. Returns the connections refilled.
     */
    default List<Outcome.Connection> complete(SortedMap<Integer, D> byTarget, StubDescriptors stub) {
        return List.of();
    }

    /** A problem of this descriptor. */
    static Problem problem(Descriptor descriptor, String what, String reason, String advice) {
        return new Problem(descriptor.pid(), descriptor.fd(), what, reason, advice);
    }
}
