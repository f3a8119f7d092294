package io.stasis.linux.proc;

import io.stasis.linux.Pid;

/** A process or thread whose {@code /proc} entry was to be read has ended and been reaped, or never was. */
public final class NoSuchProcessException extends RuntimeException {
    private final Pid pid;

    /** @param what the file or operation that found it gone */
    public NoSuchProcessException(Pid pid, String what) {
        super("process " + pid + " is gone (" + what + ")");
        this.pid = pid;
    }

    public Pid pid() {
        return pid;
    }
}
