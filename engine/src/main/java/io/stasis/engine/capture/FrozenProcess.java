package io.stasis.engine.capture;

import io.stasis.engine.EngineException;
import io.stasis.engine.Outcome;
import io.stasis.engine.ProcessKey;
import io.stasis.engine.resource.thread.SeccompFilters;
import io.stasis.linux.Errno;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.memory.ProcessMemory;
import io.stasis.linux.proc.NoSuchProcessException;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.proc.Tasks;
import io.stasis.linux.ptrace.Registers;
import io.stasis.linux.ptrace.Registers.Register;
import io.stasis.linux.ptrace.RemoteProcess;
import io.stasis.linux.ptrace.Stop;
import io.stasis.linux.ptrace.ThreadContext;
import io.stasis.linux.ptrace.Tracee;
import io.stasis.linux.seccomp.SeccompFilter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A process all of whose threads stand still, leader first. Nothing of it has been changed; {@link #resume} lets it go
 * on.
 */
final class FrozenProcess {
    /** How long a thread may take to stop: it may be waiting for its vfork child, or for a disk. */
    private static final long PATIENCE_NANOS = 10_000_000_000L;

    private static final int SIGTRAP = 5;
    private static final int SIGKILL = 9;

    private final ProcessKey key;
    private final ProcessMemory memory;
    private final List<FrozenThread> threads;
    private final ProcStatus status;
    private final int stopSignal;

    private FrozenProcess(
            ProcessKey key, ProcessMemory memory, List<FrozenThread> threads, ProcStatus status, int stopSignal) {
        this.key = key;
        this.memory = memory;
        this.threads = threads;
        this.status = status;
        this.stopSignal = stopSignal;
    }

    /** Freezes every thread; new ones that appear meanwhile too. Returns null when the process has ended. */
    static FrozenProcess freeze(ProcessKey key) {
        return freeze(key, PATIENCE_NANOS);
    }

    /**
     * As {@link #freeze(ProcessKey)}.
     *
     * @param patienceNanos how long a thread may take to stop
     */
    static FrozenProcess freeze(ProcessKey key, long patienceNanos) {
        Pid pid = new Pid(key.pid());
        Map<Integer, Seized> seized = new HashMap<>();
        List<FrozenThread> frozen = new ArrayList<>();
        int[] stopSignal = new int[1];
        ProcessMemory memory = null;
        try {
            for (boolean again = true; again; ) {
                List<Seized> fresh = seizeNew(pid, seized);
                long asked = System.nanoTime();
                for (Seized thread : fresh) {
                    thread.tracee.interrupt();
                }
                for (Seized thread : fresh) {
                    Stop stop = awaitStop(key, thread, asked + patienceNanos);
                    if (stop instanceof Stop.Event event && event.signal() != SIGTRAP) {
                        stopSignal[0] = event.signal();
                    }
                    thread.gone = stop instanceof Stop.Gone;
                    thread.waited = System.nanoTime() - asked;
                }
                again = !fresh.isEmpty();
            }
            seized.values().removeIf(thread -> thread.gone);
            if (seized.isEmpty()) {
                return null;
            }
            memory = ProcessMemory.open(pid);
            ProcStatus status = ProcStatus.find(pid).orElse(null);
            if (status == null) {
                return null;
            }
            long now = System.nanoTime();
            for (Seized thread : seized.values()) {
                frozen.add(look(key, thread, memory, status, now));
            }
            frozen.sort((a, b) -> a.tid() == key.pid() ? -1 : b.tid() == key.pid() ? 1 : a.tid() - b.tid());
            return new FrozenProcess(key, memory, frozen, status, stopSignal[0]);
        } catch (RuntimeException e) {
            seized.values().forEach(Seized::release);
            if (memory != null) {
                memory.close();
            }
            throw e;
        }
    }

    private static List<Seized> seizeNew(Pid pid, Map<Integer, Seized> seized) {
        List<Seized> fresh = new ArrayList<>();
        int[] tids;
        try {
            tids = Tasks.threads(pid);
        } catch (NoSuchProcessException e) {
            return fresh;
        }
        for (int tid : tids) {
            if (seized.containsKey(tid)) {
                continue;
            }
            Tid id = new Tid(tid);
            long asleepSince = BlockedCalls.asleepSince(pid, id);
            try {
                Seized thread = new Seized(Tracee.seize(id, 0), asleepSince);
                seized.put(tid, thread);
                fresh.add(thread);
            } catch (KernelException e) {
                explainSeizeFailure(pid, id, e);
            }
        }
        return fresh;
    }

    /** A thread that has ended is passed over; anything else is told. */
    private static void explainSeizeFailure(Pid pid, Tid tid, KernelException e) {
        var stat = ProcStat.find(pid, tid);
        if (e.errno() == Errno.ESRCH
                || stat.isEmpty()
                || stat.get().state() == 'Z'
                || stat.get().state() == 'X') {
            return;
        }
        int tracer = ProcStatus.find(pid, tid).map(ProcStatus::tracerPid).orElse(0);
        String reason = tracer != 0
                ? "it is being traced by process " + tracer + " (a debugger?); end that first"
                : "run Stasis as the user who owns the process, or as root";
        throw new EngineException(
                EngineException.Kind.ACCESS, "cannot freeze process " + pid + ": " + e.getMessage() + "; " + reason, e);
    }

    private static Stop awaitStop(ProcessKey key, Seized thread, long deadline) {
        return thread.tracee
                .awaitFrozen(deadline)
                .orElseThrow(() -> new EngineException(
                        EngineException.Kind.FAILED,
                        "cannot freeze process " + key.pid() + ": " + thread.tracee
                                + " did not stop in time: it waits in the kernel where nothing can interrupt it"
                                + " (for a vfork child, or for a device); try again later"));
    }

    private static FrozenThread look(ProcessKey key, Seized thread, ProcessMemory memory, ProcStatus status, long now) {
        Tracee tracee = thread.tracee;
        Pid pid = new Pid(key.pid());
        Registers registers = tracee.registers();
        long mask = tracee.signalMask();
        registers = outsideCriticalSection(tracee, memory, registers);
        boolean inCall = registers.inSystemCall();
        var at = new Outcome.StopPoint(
                registers.instructionPointer(),
                inCall ? registers.get(Register.ORIG_RAX) : -1,
                inCall ? "in " + SystemCall.name(registers.get(Register.ORIG_RAX)) : "in user code");
        if (inCall) {
            registers = BlockedCalls.withoutSpuriousInterrupt(
                    registers, thread.asleepSince, now, signalDue(pid, tracee.tid(), mask, status));
        }
        var blocked =
                BlockedCalls.describe(pid, tracee.tid(), key.startTime(), registers, memory, thread.asleepSince, now);
        int innerTid = tracee.tid().value();
        if (status.nspid().length > 1) {
            int[] ids = ProcStatus.find(pid, tracee.tid()).orElseThrow().nspid();
            innerTid = ids[ids.length - 1];
        }
        int innerPid = status.nspid()[status.nspid().length - 1];
        List<SeccompFilter> filters = SeccompFilters.suspend(pid, tracee);
        if (blocked != null && BlockedCalls.mayNotRestart(filters, registers)) {
            registers = BlockedCalls.madeAnew(registers, blocked, memory);
            blocked = null;
        }
        return new FrozenThread(
                new ThreadContext(tracee, registers, mask, innerPid, innerTid, filters), at, blocked, thread.waited);
    }

    /** Whether a signal with a handler waits to interrupt this thread: then an EINTR is the program's own. */
    private static boolean signalDue(Pid pid, Tid tid, long mask, ProcStatus status) {
        return ProcStatus.find(pid, tid)
                .map(own -> ((own.sigPnd() | own.shdPnd()) & ~mask & status.sigCgt()) != 0)
                .orElse(false);
    }

    /**
     * A thread inside a restartable sequence (rseq(2)) loses its guarantee once its instruction pointer is moved, as
     * injection does: it goes on at the abort handler, as after any preemption.
     */
    private static Registers outsideCriticalSection(Tracee tracee, ProcessMemory memory, Registers registers) {
        var configuration = tracee.rseq();
        if (configuration.isEmpty()) {
            return registers;
        }
        long section = memory.readLong(configuration.get().address() + 8);
        if (section == 0) {
            return registers;
        }
        long start = memory.readLong(section + 8);
        long length = memory.readLong(section + 16);
        long into = registers.instructionPointer() - start;
        boolean inside = into >= 0 && into < length;
        return inside ? registers.with(Register.RIP, memory.readLong(section + 24)) : registers;
    }

    ProcessKey key() {
        return key;
    }

    Pid pid() {
        return new Pid(key.pid());
    }

    ProcessMemory memory() {
        return memory;
    }

    List<FrozenThread> threads() {
        return threads;
    }

    FrozenThread leader() {
        return threads.getFirst();
    }

    ProcStatus status() {
        return status;
    }

    /** The signal that had stopped the process before, 0 when it was running. */
    int stopSignal() {
        return stopSignal;
    }

    /** Children of all threads. */
    Set<Integer> children() {
        Set<Integer> children = new HashSet<>();
        for (int child : Tasks.childrenOf(pid())) {
            children.add(child);
        }
        return children;
    }

    RemoteProcess openRemote(RemoteProcess.VdsoMapping vdso) {
        return RemoteProcess.open(
                pid(),
                memory,
                vdso,
                leader().context(),
                threads.stream().map(FrozenThread::context).toList(),
                status.sigCgt());
    }

    void resume() {
        // The leader last: other threads may depend on nothing of it, but a debugger looks at it first.
        for (int i = threads.size() - 1; i >= 0; i--) {
            threads.get(i).resume();
        }
        if (stopSignal != 0) {
            JobControl.awaitStopped(pid());
        }
        memory.close();
    }

    /** Sends SIGKILL and waits until the process is dead. Its parent gets the status as of any other death. */
    void kill() {
        long result = Libc.call(SystemCall.KILL, key.pid(), SIGKILL);
        if (result != -Errno.ESRCH) {
            Libc.check(result, "kill of process " + key.pid());
        }
        for (int i = threads.size() - 1; i >= 0; i--) {
            threads.get(i).tracee().reap();
        }
        memory.close();
    }

    private static final class Seized {
        final Tracee tracee;
        final long asleepSince;
        boolean gone;
        long waited;

        Seized(Tracee tracee, long asleepSince) {
            this.tracee = tracee;
            this.asleepSince = asleepSince;
        }

        /** Lets go of a thread that may or may not have stopped yet: only a stopped one can be detached. */
        void release() {
            try {
                tracee.awaitFrozen(System.nanoTime() + 1_000_000_000L);
                tracee.detach(0);
            } catch (KernelException e) {
                // It has ended, or it never stopped: the kernel detaches it when the tracer thread ends.
            }
        }
    }
}
