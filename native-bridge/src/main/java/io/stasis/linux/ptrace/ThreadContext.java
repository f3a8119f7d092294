package io.stasis.linux.ptrace;

/**
 * A frozen thread and the state it must go on with.
 *
 * @param tracee the thread, stopped
 * @param registers its true registers
 * @param signalMask its true signal mask
 * @param innerPid thread group id in its own pid namespace
 * @param innerTid thread id in its own pid namespace
 */
public record ThreadContext(Tracee tracee, Registers registers, long signalMask, int innerPid, int innerTid) {}
