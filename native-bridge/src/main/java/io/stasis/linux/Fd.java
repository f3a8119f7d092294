package io.stasis.linux;

import io.stasis.linux.libc.Libc;

/** A file descriptor of this process, closed with it. */
public record Fd(int value) implements AutoCloseable {
    @Override
    public void close() {
        Libc.close(value);
    }
}
