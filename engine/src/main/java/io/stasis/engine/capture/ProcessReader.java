package io.stasis.engine.capture;

import io.stasis.engine.EngineException;
import io.stasis.engine.resource.timer.PosixTimers;
import io.stasis.image.model.FileReference;
import io.stasis.image.model.MemoryImage.Layout;
import io.stasis.image.model.MemoryImage.Mapping;
import io.stasis.image.model.ProcessImage;
import io.stasis.image.model.ProcessImage.IntervalTimer;
import io.stasis.image.model.ProcessImage.Limit;
import io.stasis.image.model.ProcessImage.PosixTimer;
import io.stasis.image.model.ProcessImage.SignalAction;
import io.stasis.image.model.ThreadImage;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.Mappings;
import io.stasis.linux.proc.ProcFiles;
import io.stasis.linux.proc.ProcLinks;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.ptrace.CallTable;
import io.stasis.linux.ptrace.RemoteProcess;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * Reads what a frozen process and its threads are, apart from memory and descriptors. What only the process itself can
 * be asked is asked by one table of injected calls for the process and one for each thread.
 */
final class ProcessReader {
    private static final int PR_GET_DUMPABLE = 3;
    private static final int PR_GET_CHILD_SUBREAPER = 37;
    private static final int PR_GET_THP_DISABLE = 42;
    private static final int MEMBARRIER_CMD_GET_REGISTRATIONS = 1 << 9;
    private static final int MCL_FUTURE = 2;
    private static final int MCL_ONFAULT = 4;
    private static final int LIMITS = 16;
    private static final int TIMERS = 3;
    private static final int SIGNAL_ACTION_BYTES = 32;

    private final FrozenProcess process;
    private final Pid pid;

    /** What the process's own table of calls told. */
    private record Answers(
            List<SignalAction> actions,
            List<IntervalTimer> timers,
            List<Limit> limits,
            long currentBreak,
            int dumpable,
            boolean subreaper,
            int thpDisable,
            int memoryBarriers) {}

    /** The rest of a process image; mappings and descriptors are the caller's. */
    record State(
            ProcessImage.Identity identity,
            Layout layout,
            byte[] auxiliaryVector,
            FileReference executable,
            List<ThreadImage> threads,
            ProcessImage.FilesystemState filesystem,
            ProcessImage.SignalState signals,
            List<IntervalTimer> timers,
            List<PosixTimer> posixTimers,
            List<Limit> limits,
            ProcessImage.ProcessAttributes attributes) {}

    ProcessReader(FrozenProcess process) {
        this.process = process;
        this.pid = process.pid();
    }

    State read(List<Mapping> mappings) {
        ProcStat stat = ProcStat.find(pid).orElseThrow(this::gone);
        ProcStatus status = process.status();
        Answers answers;
        List<PosixTimer> posixTimers;
        int lockFuture;
        List<ThreadReader.Answers> threadAnswers = new ArrayList<>();
        try (RemoteProcess remote = process.openRemote(AddressSpaceReader.vdso(mappings, pid))) {
            answers = askProcess(remote, status);
            lockFuture = lockFuture(status, remote.scratch().value());
            posixTimers =
                    PosixTimers.read(pid, calls -> remote.run(process.leader().context(), calls));
            for (FrozenThread thread : process.threads()) {
                threadAnswers.add(ThreadReader.ask(remote, thread));
            }
        }
        List<ThreadImage> threads = new ArrayList<>();
        for (int i = 0; i < process.threads().size(); i++) {
            FrozenThread thread = process.threads().get(i);
            threads.add(ThreadReader.read(process, thread, threadAnswers.get(i)));
        }
        // Last: signals that arrived meanwhile are in the queue too.
        List<byte[]> pending = process.leader().tracee().pendingSignals(true);
        return new State(
                identity(stat, status),
                layout(stat, answers.currentBreak),
                ProcFiles.auxv(pid),
                executable(),
                threads,
                filesystem(status),
                new ProcessImage.SignalState(answers.actions, pending),
                answers.timers,
                PosixTimers.withoutExpired(
                        posixTimers,
                        Stream.concat(pending.stream(), threads.stream().flatMap(t -> t.pending().stream()))
                                .toList()),
                answers.limits,
                new ProcessImage.ProcessAttributes(
                        answers.dumpable,
                        answers.subreaper,
                        answers.thpDisable,
                        ProcFiles.oomScoreAdj(pid),
                        ProcFiles.coredumpFilter(pid),
                        Math.max(0, answers.memoryBarriers),
                        lockFuture,
                        process.stopSignal() != 0,
                        process.stopSignal()));
    }

    /** The kernel does not tell what becomes of memory that is mapped later; the scratch memory shows it. */
    private int lockFuture(ProcStatus before, long scratch) {
        long locked = ProcStatus.find(pid).orElseThrow(this::gone).vmLckKb();
        if (locked == before.vmLckKb()) {
            return 0;
        }
        boolean onFault = Mappings.read(pid).stream()
                .anyMatch(mapping -> mapping.start() <= scratch && scratch < mapping.end() && mapping.hasVmFlag("lf"));
        return MCL_FUTURE | (onFault ? MCL_ONFAULT : 0);
    }

    private EngineException gone() {
        return new EngineException(EngineException.Kind.FAILED, "process " + pid + " ended while it was captured");
    }

    private Answers askProcess(RemoteProcess remote, ProcStatus status) {
        CallTable calls = new CallTable();
        List<Integer> signals = new ArrayList<>();
        List<Long> actionData = new ArrayList<>();
        for (int signal = 1; signal <= 64; signal++) {
            if (((status.sigIgn() | status.sigCgt()) & 1L << (signal - 1)) != 0) {
                long data = calls.reserve(SIGNAL_ACTION_BYTES);
                calls.must("ask for the action of signal " + signal, SystemCall.RT_SIGACTION, signal, 0, data, 8);
                signals.add(signal);
                actionData.add(data);
            }
        }
        long limitData = calls.reserve(LIMITS * 16);
        for (int i = 0; i < LIMITS; i++) {
            calls.must("ask for limit " + i, SystemCall.PRLIMIT64, 0, i, 0, limitData + 16L * i);
        }
        int currentBreak = calls.query(SystemCall.BRK, 0);
        int dumpable = calls.query(SystemCall.PRCTL, PR_GET_DUMPABLE);
        long subreaper = calls.reserve(8);
        calls.query(SystemCall.PRCTL, PR_GET_CHILD_SUBREAPER, subreaper);
        int thp = calls.query(SystemCall.PRCTL, PR_GET_THP_DISABLE);
        // A kernel before 6.3 does not tell.
        int barriers = calls.query(SystemCall.MEMBARRIER, MEMBARRIER_CMD_GET_REGISTRATIONS, 0, 0);
        long timerData = calls.reserve(TIMERS * 32);
        for (int i = 0; i < TIMERS; i++) {
            calls.must("ask for interval timer " + i, SystemCall.GETITIMER, i, timerData + 32L * i);
        }
        var results = remote.run(process.leader().context(), calls);

        List<SignalAction> actions = new ArrayList<>();
        for (int i = 0; i < signals.size(); i++) {
            ByteBuffer a = ByteBuffer.wrap(results.data(actionData.get(i), SIGNAL_ACTION_BYTES))
                    .order(ByteOrder.nativeOrder());
            actions.add(new SignalAction(signals.get(i), a.getLong(0), a.getLong(8), a.getLong(16), a.getLong(24)));
        }
        List<Limit> limits = new ArrayList<>();
        for (int i = 0; i < LIMITS; i++) {
            limits.add(new Limit(i, results.dataLong(limitData, 16 * i), results.dataLong(limitData, 16 * i + 8)));
        }
        List<IntervalTimer> timers = new ArrayList<>();
        for (int i = 0; i < TIMERS; i++) {
            timers.add(new IntervalTimer(micros(results, timerData, 32 * i + 16), micros(results, timerData, 32 * i)));
        }
        return new Answers(
                actions,
                timers,
                limits,
                results.result(currentBreak),
                (int) results.result(dumpable),
                (int) results.dataLong(subreaper, 0) != 0,
                (int) results.result(thp),
                (int) results.result(barriers));
    }

    private static long micros(CallTable.Results results, long handle, int offset) {
        return results.dataLong(handle, offset) * 1_000_000L + results.dataLong(handle, offset + 8);
    }

    private ProcessImage.Identity identity(ProcStat stat, ProcStatus status) {
        return new ProcessImage.Identity(
                pid.value(),
                stat.ppid(),
                stat.pgrp(),
                stat.session(),
                stat.exitSignal(),
                stat.startTime(),
                stat.comm());
    }

    private static Layout layout(ProcStat stat, long currentBreak) {
        return new Layout(
                stat.startCode(),
                stat.endCode(),
                stat.startData(),
                stat.endData(),
                stat.startBrk(),
                currentBreak,
                stat.startStack(),
                stat.argStart(),
                stat.argEnd(),
                stat.envStart(),
                stat.envEnd());
    }

    private FileReference executable() {
        return reference("executable", ProcLinks.exe(pid));
    }

    private ProcessImage.FilesystemState filesystem(ProcStatus status) {
        ProcLinks.Target directory = ProcLinks.cwd(pid);
        return new ProcessImage.FilesystemState(
                reference(directory.path(), FileStatus.of("/proc/" + pid + "/cwd")),
                directory.deleted(),
                reference("root directory", ProcLinks.root(pid)),
                status.umask());
    }

    private FileReference reference(String what, ProcLinks.Target link) {
        if (link.deleted()) {
            throw new EngineException(
                    EngineException.Kind.UNSUPPORTED,
                    "cannot checkpoint process " + pid + ": its " + what + " " + link.path()
                            + " was deleted; put it back, or restart the program");
        }
        return reference(link.path(), FileStatus.of(link.path()));
    }

    private static FileReference reference(String path, FileStatus status) {
        return new FileReference(path, status.dev(), status.ino(), status.mode(), status.size(), status.mtimeNanos());
    }
}
