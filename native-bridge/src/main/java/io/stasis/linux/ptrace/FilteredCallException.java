package io.stasis.linux.ptrace;

import io.stasis.linux.Pid;
import io.stasis.linux.Tid;

/**
 * A thread's seccomp filters would punish a call that was to be injected. Nothing was injected.
 *
 * <p>While a tracer lives it can suspend the filters (PTRACE_O_SUSPEND_SECCOMP), but they are back the moment it dies,
 * with the thread in the midst of the injected calls: so only what the filters allow keeps the promise that the death of
 * the tracer harms nobody.
 */
public final class FilteredCallException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final int pid;
    private final String call;

    FilteredCallException(Pid pid, Tid tid, String call) {
        super("the seccomp filter of thread " + tid + " of process " + pid + " forbids " + call);
        this.pid = pid.value();
        this.call = call;
    }

    public int pid() {
        return pid;
    }

    /** Name of the system call that the filters forbid. */
    public String call() {
        return call;
    }
}
