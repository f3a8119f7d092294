package io.stasis.linux.ptrace;

import static io.stasis.linux.seccomp.SeccompFilter.SECCOMP_RET_ALLOW;
import static io.stasis.linux.seccomp.SeccompFilter.SECCOMP_RET_ERRNO;
import static io.stasis.linux.seccomp.SeccompFilter.SECCOMP_RET_LOG;
import static io.stasis.linux.seccomp.SeccompFilter.SECCOMP_RET_TRACE;

import io.stasis.linux.Pid;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.seccomp.SeccompFilter;
import java.nio.ByteBuffer;

/** Asks a thread's seccomp filters, by running them here, what they would do about calls that are to be injected. */
final class CallGuard {
    private static final int SIG_SETMASK = 2;

    private CallGuard() {}

    /** The calls around every table, see {@link InjectionBlock}. */
    static void checkFrame(Pid pid, ThreadContext thread, int marker, long address) {
        check(pid, thread, address, SystemCall.TGKILL, thread.innerPid(), thread.innerTid(), marker);
        if (thread.filters().isEmpty()) {
            return;
        }
        int mask = SeccompFilter.action(
                thread.filters(), SystemCall.RT_SIGPROCMASK, address, SIG_SETMASK, address, 0, 8, 0, 0);
        // Here an error would do harm too: the thread would go on with all signals blocked.
        if (mask != SECCOMP_RET_ALLOW && mask != SECCOMP_RET_LOG) {
            throw new FilteredCallException(pid, thread.tracee().tid(), SystemCall.name(SystemCall.RT_SIGPROCMASK));
        }
    }

    /** The calls of a table, as it was placed. */
    static void check(Pid pid, ThreadContext thread, long address, CallTable calls, ByteBuffer placed) {
        if (thread.filters().isEmpty()) {
            return;
        }
        long[] arguments = new long[6];
        for (int i = 0; i < calls.size(); i++) {
            for (int k = 0; k < 6; k++) {
                arguments[k] = placed.getLong(i * CallTable.ENTRY + 8 + 8 * k);
            }
            check(pid, thread, address, placed.getLong(i * CallTable.ENTRY), arguments);
        }
    }

    /** An answer that only makes the call fail is harmless: nobody looks at the result when the tracer is dead. */
    static void check(Pid pid, ThreadContext thread, long address, long number, long... arguments) {
        if (thread.filters().isEmpty()) {
            return;
        }
        int action = SeccompFilter.action(thread.filters(), number, address, arguments);
        boolean harmless = action == SECCOMP_RET_ALLOW
                || action == SECCOMP_RET_LOG
                || action == SECCOMP_RET_ERRNO
                || action == SECCOMP_RET_TRACE;
        if (!harmless) {
            throw new FilteredCallException(pid, thread.tracee().tid(), SystemCall.name(number));
        }
    }
}
