package io.stasis.engine.capture;

import io.stasis.engine.resource.thread.SeccompFilters;
import io.stasis.engine.resource.thread.ThreadModes;
import io.stasis.image.model.ThreadImage;
import io.stasis.image.model.ThreadImage.AlternateStack;
import io.stasis.image.model.ThreadImage.Credentials;
import io.stasis.image.model.ThreadImage.RseqRegistration;
import io.stasis.image.model.ThreadImage.Scheduling;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.ptrace.CallTable;
import io.stasis.linux.ptrace.RemoteProcess;
import java.nio.ByteBuffer;

/** Reads what one frozen thread is. */
final class ThreadReader {
    private static final int PR_GET_PDEATHSIG = 2;
    private static final int PR_GET_SECUREBITS = 27;
    private static final int PR_GET_TIMERSLACK = 30;
    private static final int PR_GET_TID_ADDRESS = 40;
    private static final int SCHED_ATTR_BYTES = 56;
    private static final int AFFINITY_BYTES = 1024;
    private static final int IOPRIO_WHO_PROCESS = 1;
    private static final int PRIO_PROCESS = 0;
    /** What the system call adds to the negated nice value, so that no result looks like an error. */
    private static final int NICE_BIAS = 20;

    private static final int SS_ONSTACK = 1;

    private static final ThreadLocal<ByteBuffer> BUFFER = ThreadLocal.withInitial(() -> Libc.buffer(AFFINITY_BYTES));

    /** What only the thread itself can be asked. */
    record Answers(
            AlternateStack alternateStack,
            long clearTidAddress,
            int parentDeathSignal,
            long timerSlack,
            int secureBits,
            ThreadModes.Question question,
            CallTable.Results results) {}

    private ThreadReader() {}

    static Answers ask(RemoteProcess remote, FrozenThread thread) {
        CallTable calls = new CallTable();
        long stack = calls.reserve(24);
        long tidAddress = calls.reserve(8);
        long deathSignal = calls.reserve(8);
        calls.must("ask for the alternate signal stack", SystemCall.SIGALTSTACK, 0, stack);
        calls.query(SystemCall.PRCTL, PR_GET_TID_ADDRESS, tidAddress);
        calls.must("ask for the parent death signal", SystemCall.PRCTL, PR_GET_PDEATHSIG, deathSignal);
        int slack = calls.query(SystemCall.PRCTL, PR_GET_TIMERSLACK);
        int secureBits = calls.query(SystemCall.PRCTL, PR_GET_SECUREBITS);
        ThreadModes.Question question = ThreadModes.ask(calls);
        var results = remote.run(thread.context(), calls);
        return new Answers(
                new AlternateStack(
                        results.dataLong(stack, 0),
                        results.dataLong(stack, 16),
                        (int) results.dataLong(stack, 8) & ~SS_ONSTACK),
                results.dataLong(tidAddress, 0),
                (int) results.dataLong(deathSignal, 0),
                results.result(slack),
                (int) results.result(secureBits),
                question,
                results);
    }

    static ThreadImage read(FrozenProcess process, FrozenThread thread, Answers answers) {
        Pid pid = process.pid();
        Tid tid = thread.tracee().tid();
        ProcStatus status = ProcStatus.find(pid, tid).orElseThrow();
        String name = ProcStat.find(pid, tid).orElseThrow().comm();
        long[] robust = robustList(tid);
        return new ThreadImage(
                thread.context().innerTid(),
                name,
                thread.context().registers().toBytes(),
                thread.tracee().extendedState(),
                thread.blockedCall(),
                thread.context().signalMask(),
                thread.tracee().pendingSignals(false),
                thread.tracee()
                        .rseq()
                        .map(r -> new RseqRegistration(r.address(), r.size(), r.signature(), r.flags()))
                        .orElse(null),
                robust[0],
                robust[1],
                answers.clearTidAddress,
                answers.alternateStack,
                new Credentials(
                        status.uids(),
                        status.gids(),
                        status.groups(),
                        status.capInh(),
                        status.capPrm(),
                        status.capEff(),
                        status.capBnd(),
                        status.capAmb(),
                        answers.secureBits),
                scheduling(tid),
                answers.parentDeathSignal,
                answers.timerSlack,
                ThreadModes.read(answers.question, answers.results, pid, tid, status),
                SeccompFilters.image(thread.context().filters()));
    }

    private static long[] robustList(Tid tid) {
        ByteBuffer buffer = BUFFER.get();
        long address = Libc.address(buffer);
        Libc.check(
                Libc.call(SystemCall.GET_ROBUST_LIST, tid.value(), address, address + 8),
                "get_robust_list of thread " + tid);
        return new long[] {buffer.getLong(0), buffer.getLong(8)};
    }

    private static Scheduling scheduling(Tid tid) {
        ByteBuffer buffer = BUFFER.get();
        long address = Libc.address(buffer);
        Libc.check(
                Libc.call(SystemCall.SCHED_GETATTR, tid.value(), address, SCHED_ATTR_BYTES, 0),
                "sched_getattr of thread " + tid);
        byte[] attributes = new byte[buffer.getInt(0)];
        buffer.get(0, attributes);
        int length = (int) Libc.check(
                Libc.call(SystemCall.SCHED_GETAFFINITY, tid.value(), AFFINITY_BYTES, address),
                "sched_getaffinity of thread " + tid);
        byte[] affinity = new byte[length];
        buffer.get(0, affinity);
        long ioPriority = Libc.check(
                Libc.call(SystemCall.IOPRIO_GET, IOPRIO_WHO_PROCESS, tid.value()), "ioprio_get of thread " + tid);
        long priority = Libc.check(
                Libc.call(SystemCall.GETPRIORITY, PRIO_PROCESS, tid.value()), "getpriority of thread " + tid);
        return new Scheduling(attributes, affinity, (int) ioPriority, NICE_BIAS - (int) priority);
    }
}
