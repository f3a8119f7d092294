package io.stasis.linux;

/** A thread id in this process's pid namespace. */
public record Tid(int value) {
    @Override
    public String toString() {
        return Integer.toString(value);
    }
}
