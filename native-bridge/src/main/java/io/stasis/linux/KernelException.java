package io.stasis.linux;

/**
 * A system call failed. The message says what was being done, to what, and what the kernel said, for example
 * "PTRACE_SEIZE of thread 4711: EPERM (Operation not permitted)".
 */
public final class KernelException extends RuntimeException {
    private final int errno;

    /** @param what the operation and its object, without the kernel's answer */
    public KernelException(String what, int errno) {
        super(what + ": " + Errno.describe(errno));
        this.errno = errno;
    }

    /** The error number, see {@link Errno}. */
    public int errno() {
        return errno;
    }
}
