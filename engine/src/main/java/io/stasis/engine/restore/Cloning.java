package io.stasis.engine.restore;

import io.stasis.engine.EngineException;
import io.stasis.linux.Errno;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.ptrace.CallTable;
import io.stasis.linux.ptrace.Stop;
import io.stasis.linux.ptrace.Tracee;
import io.stasis.linux.ptrace.WorkArea;
import java.util.concurrent.locks.LockSupport;

/** clone3(2) in a process that is being built: the child is traced and stopped from birth. */
final class Cloning {
    static final long CLONE_PARENT = 0x8000;
    private static final int CLONE_ARGS_BYTES = 88;
    private static final long PID_PATIENCE_NANOS = 3_000_000_000L;

    private final WorkArea workArea;
    private final boolean namespace;

    /** @param namespace whether what is made lives in a pid namespace of its own */
    Cloning(WorkArea workArea, boolean namespace) {
        this.workArea = workArea;
        this.namespace = namespace;
    }

    /**
     * Makes a child of {@code creator}.
     *
     * @param pid the pid to have, 0 for any
     */
    RestoredProcess clone(RestoredProcess creator, int pid, long flags, int exitSignal, int session) {
        CallTable calls = new CallTable();
        long setTid = pid == 0 ? 0 : calls.longs(pid);
        long arguments = calls.longs(flags, 0, 0, 0, exitSignal, 0, 0, 0, setTid, pid == 0 ? 0 : 1, 0);
        int made = calls.must("make process " + pid, SystemCall.CLONE3, arguments, CLONE_ARGS_BYTES);
        long deadline = System.nanoTime() + PID_PATIENCE_NANOS;
        while (true) {
            try {
                return adopt(creator, (int) creator.run(calls).result(made), (flags & CLONE_PARENT) != 0, session);
            } catch (KernelException e) {
                if (e.errno() != Errno.EEXIST) {
                    throw e.errno() == Errno.EPERM ? noPrivilege(e) : e;
                }
                // The original may still be on its way out: a killed process holds its pid until it is waited for.
                if (System.nanoTime() > deadline) {
                    throw pidTaken(pid, e);
                }
                LockSupport.parkNanos(2_000_000);
            }
        }
    }

    /** @param child its id as the creator sees it */
    private RestoredProcess adopt(RestoredProcess creator, int child, boolean sibling, int session) {
        // The stub is outside the namespace that its children are in.
        int host = child;
        if (creator.isInNamespace()) {
            Pid parent = sibling ? new Pid(ProcStat.read(creator.host()).ppid()) : creator.host();
            host = HostIds.ofChildren(parent, creator.host()).mustHave(child);
        }
        Tracee tracee = Tracee.autoAttached(new Tid(host));
        var stop = tracee.awaitFrozen(System.nanoTime() + PID_PATIENCE_NANOS);
        if (stop.isEmpty() || stop.get() instanceof Stop.Gone) {
            throw new EngineException(EngineException.Kind.FAILED, "process " + child + " ended at its birth");
        }
        int own = namespace ? HostIds.inner(ProcStatus.read(new Pid(host))) : host;
        return new RestoredProcess(own, tracee, workArea, session, namespace);
    }

    static EngineException pidTaken(int pid, Throwable cause) {
        return new EngineException(
                EngineException.Kind.PID_TAKEN,
                "pid " + pid + " is taken by " + RestoreCheck.describe(pid)
                        + "; end that process, or restart when it has ended, or with --pids=auto",
                cause);
    }

    private static EngineException noPrivilege(Throwable cause) {
        return new EngineException(
                EngineException.Kind.ACCESS,
                "this user may not choose the pid of a new process; run `stasis restart` as root, or with the"
                        + " capability CAP_CHECKPOINT_RESTORE, or with --pids=auto",
                cause);
    }
}
