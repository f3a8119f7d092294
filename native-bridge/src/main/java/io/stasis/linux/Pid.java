package io.stasis.linux;

/** A process id (thread group id) in this process's pid namespace. */
public record Pid(int value) {
    /** The leader thread's id, which is the same number. */
    public Tid leader() {
        return new Tid(value);
    }

    @Override
    public String toString() {
        return Integer.toString(value);
    }
}
