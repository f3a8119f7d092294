package io.stasis.linux.ptrace;

import io.stasis.linux.seccomp.SeccompFilter;
import java.util.List;

/**
 * A frozen thread and the state it must go on with.
 *
 * @param tracee the thread, stopped
 * @param registers its true registers
 * @param signalMask its true signal mask
 * @param innerPid thread group id in its own pid namespace
 * @param innerTid thread id in its own pid namespace
 * @param filters its seccomp filters, oldest first
 */
public record ThreadContext(
        Tracee tracee, Registers registers, long signalMask, int innerPid, int innerTid, List<SeccompFilter> filters) {

    /** A thread without seccomp filters. */
    public ThreadContext(Tracee tracee, Registers registers, long signalMask, int innerPid, int innerTid) {
        this(tracee, registers, signalMask, innerPid, innerTid, List.of());
    }
}
