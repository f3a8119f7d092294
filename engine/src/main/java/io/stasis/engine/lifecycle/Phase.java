package io.stasis.engine.lifecycle;

/** Steps of a checkpoint or restart that all processes of a tree take together. */
public enum Phase {
    /** Freeze every thread. */
    SUSPEND,
    /** Read registers, descriptors and bytes in flight. */
    DRAIN,
    /** Write pages and records. */
    WRITE,
    /** Put back what draining took out. */
    REFILL,
    /** Let the threads run on. */
    RESUME,
    /** End the process instead of resuming it. */
    TERMINATE,
    /** Make the process with its pid, still empty. */
    CREATE,
    /** Memory, descriptors, threads. */
    REBUILD,
    /** Put bytes in flight back at restart. */
    REPLENISH,
    /** Let the restored threads run. */
    RELEASE;

    /** Whether {@code next} may follow this phase for one process. */
    boolean mayPrecede(Phase next) {
        return switch (this) {
            case SUSPEND -> next == DRAIN;
            case DRAIN -> next == WRITE;
            case WRITE -> next == REFILL;
            case REFILL -> next == RESUME || next == TERMINATE;
            case CREATE -> next == REBUILD;
            case REBUILD -> next == REPLENISH;
            case REPLENISH -> next == RELEASE;
            case RESUME, TERMINATE, RELEASE -> false;
        };
    }

    /** Whether the phase belongs to a restart. */
    public boolean isRestart() {
        return this == CREATE || this == REBUILD || this == REPLENISH || this == RELEASE;
    }
}
