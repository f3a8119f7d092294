package io.stasis.engine.restore;

import static io.stasis.linux.ptrace.PtraceRequest.PTRACE_O_EXITKILL;
import static io.stasis.linux.ptrace.PtraceRequest.PTRACE_O_TRACECLONE;
import static io.stasis.linux.ptrace.PtraceRequest.PTRACE_O_TRACEFORK;
import static io.stasis.linux.ptrace.PtraceRequest.PTRACE_O_TRACEVFORK;

import io.stasis.engine.EngineException;
import io.stasis.engine.capture.BlockedCalls;
import io.stasis.engine.capture.JobControl;
import io.stasis.engine.resource.DescriptorRestore;
import io.stasis.engine.resource.thread.SeccompFilters;
import io.stasis.engine.resource.thread.ThreadModes;
import io.stasis.engine.resource.timer.PosixTimers;
import io.stasis.image.model.MemoryImage.Backing;
import io.stasis.image.model.MemoryImage.Mapping;
import io.stasis.image.model.ProcessImage;
import io.stasis.image.model.ThreadImage;
import io.stasis.image.model.ThreadImage.BlockedCall;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.ProcFiles;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.ptrace.CallTable;
import io.stasis.linux.ptrace.Registers;
import io.stasis.linux.ptrace.Registers.Register;
import io.stasis.linux.ptrace.RemoteProcess.VdsoMapping;
import io.stasis.linux.ptrace.Stop;
import io.stasis.linux.ptrace.ThreadContext;
import io.stasis.linux.ptrace.Tracee;
import io.stasis.linux.ptrace.WorkArea;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/** Turns an empty process into the one of the image. */
final class ProcessBuilder {
    private static final long THREAD_FLAGS = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000;
    /** Options of every tracee until it is let go: what it makes is traced too, and dies with the agent. */
    static final int TRACE_OPTIONS = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;

    private static final int CLONE_ARGS_BYTES = 88;
    private static final int IOPRIO_WHO_PROCESS = 1;
    private static final int PRIO_PROCESS = 0;
    /** What getpriority(2) adds to the negated nice value. */
    private static final int NICE_BIAS = 20;

    private static final int SIGSTOP = 19;
    private static final long BIRTH_PATIENCE_NANOS = 3_000_000_000L;

    private final RestoredProcess process;
    private final ProcessImage image;
    private final int pid;
    private final WorkArea workArea;

    ProcessBuilder(RestoredProcess process, WorkArea workArea) {
        this.process = process;
        this.image = process.image();
        this.pid = process.pid();
        this.workArea = workArea;
    }

    /**
     * Memory, descriptors, attributes and threads.
     *
     * @param disturbed whether a SIGCHLD of the restore's making is pending
     * @return bytes of memory read
     */
    long build(
            AddressPlan plan,
            KernelMappings kernelMappings,
            Path generation,
            DescriptorRestore descriptors,
            int scratchFd,
            boolean disturbed) {
        long bytes = new MemoryBuilder(process, plan, kernelMappings, generation, descriptors::namelessFile, scratchFd)
                .build();
        Program program = new Program(workArea.room());
        AttributeCalls.filesystem(program.calls(), image);
        descriptors.install(pid, program::calls, image.descriptors());
        AttributeCalls.process(program.calls(), image);
        process.run(program);
        writeProcFiles();
        makeThreads();
        setDirectories();
        makeTimers();
        int filters = installFilters();
        for (int i = image.threads().size() - 1; i >= 0; i--) {
            buildThread(i, disturbed, filters);
        }
        return bytes;
    }

    private void writeProcFiles() {
        Pid id = process.host();
        if (ProcFiles.oomScoreAdj(id) != image.attributes().oomScoreAdj()) {
            ProcFiles.writeOomScoreAdj(id, image.attributes().oomScoreAdj());
        }
        if (ProcFiles.coredumpFilter(id) != image.attributes().coredumpFilter()) {
            ProcFiles.writeCoredumpFilter(id, image.attributes().coredumpFilter());
        }
    }

    private void makeThreads() {
        Program program = new Program(workArea.room());
        for (ThreadImage thread : image.threads().subList(1, image.threads().size())) {
            CallTable calls = program.calls();
            long arguments = calls.longs(THREAD_FLAGS, 0, 0, 0, 0, 0, 0, 0, calls.longs(thread.tid()), 1, 0);
            calls.must("make thread " + thread.tid(), SystemCall.CLONE3, arguments, CLONE_ARGS_BYTES);
        }
        try {
            process.run(program);
        } catch (io.stasis.linux.KernelException e) {
            throw e.errno() == io.stasis.linux.Errno.EEXIST
                    ? new EngineException(
                            EngineException.Kind.PID_TAKEN,
                            "a thread id of process " + pid + " is taken: " + e.getMessage()
                                    + "; restart when that process has ended",
                            e)
                    : e;
        }
        HostIds ids = HostIds.ofThreads(process);
        for (ThreadImage thread : image.threads().subList(1, image.threads().size())) {
            Tracee tracee = Tracee.autoAttached(new Tid(ids.host(thread.tid())));
            var stop = tracee.awaitFrozen(System.nanoTime() + BIRTH_PATIENCE_NANOS);
            if (stop.isEmpty() || stop.get() instanceof Stop.Gone) {
                throw new EngineException(
                        EngineException.Kind.FAILED,
                        "thread " + thread.tid() + " of process " + pid + " did not start");
            }
            process.threads().add(tracee);
        }
    }

    /** POSIX timers, not yet armed: when the threads exist that they send signals to. */
    private void makeTimers() {
        if (image.posixTimers().isEmpty()) {
            return;
        }
        CallTable choice = new CallTable();
        int chosen = PosixTimers.chooseIds(choice);
        boolean choosing = process.run(choice).result(chosen) == 0;
        Program program = new Program(workArea.room());
        PosixTimers.create(image.posixTimers(), choosing, program::calls);
        process.run(program);
    }

    /** Directories of threads that share them no longer, then the root of all others. */
    private void setDirectories() {
        for (int i = 1; i < image.threads().size(); i++) {
            var own = image.threads().get(i).modes().directories();
            if (own != null) {
                CallTable calls = new CallTable();
                ThreadModes.directories(calls, own);
                process.runIn(i, calls);
            }
        }
        Program root = new Program(workArea.room());
        AttributeCalls.root(root.calls(), image);
        process.run(root);
    }

    /** Suspends all seccomp filters and installs those that all threads have; returns how many. */
    private int installFilters() {
        if (image.threads().stream().allMatch(thread -> thread.seccompFilters().isEmpty())) {
            return 0;
        }
        process.threads().forEach(thread -> thread.setOptions(TRACE_OPTIONS | SeccompFilters.SUSPENDED));
        Program program = new Program(workArea.room());
        SeccompFilters.installCommon(image.threads(), program::calls);
        process.run(program);
        return SeccompFilters.common(image.threads());
    }

    private void buildThread(int index, boolean disturbed, int filters) {
        ThreadImage thread = image.threads().get(index);
        Tracee tracee = process.threads().get(index);
        Program program = new Program(workArea.room());
        AttributeCalls.thread(program.calls(), thread);
        ThreadModes.restore(program.calls(), thread, image.threads().getFirst());
        if (index == 0) {
            if (disturbed) {
                AttributeCalls.forgetChildSignals(program.calls());
            }
            AttributeCalls.processSignals(program.calls(), pid, image.signals().pending());
        }
        AttributeCalls.threadSignals(program.calls(), pid, thread);
        if (index == 0) {
            AttributeCalls.limits(program.calls(), image, ProcFiles.limits(process.host()));
        }
        SeccompFilters.installOwn(thread, filters, program::calls);
        schedule(tracee.tid(), thread.scheduling());
        ProcStatus now = ProcStatus.find(process.host(), tracee.tid()).orElseThrow();
        AttributeCalls.credentials(
                program.calls(), thread, now, image.attributes().dumpable());
        program.tables().forEach(table -> process.runIn(index, table));
    }

    /** Scheduling can be set from outside, and is only where it differs, as raising it takes a privilege. */
    private static void schedule(Tid tid, ThreadImage.Scheduling wanted) {
        ByteBuffer buffer = Libc.buffer(1024);
        long address = Libc.address(buffer);
        byte[] attributes = wanted.attributes();
        if (NICE_BIAS - Libc.call(SystemCall.GETPRIORITY, PRIO_PROCESS, tid.value()) != wanted.nice()) {
            Libc.check(
                    Libc.call(SystemCall.SETPRIORITY, PRIO_PROCESS, tid.value(), wanted.nice()),
                    "setpriority of thread " + tid);
        }
        Libc.check(
                Libc.call(SystemCall.SCHED_GETATTR, tid.value(), address, attributes.length, 0),
                "sched_getattr of thread " + tid);
        byte[] now = new byte[attributes.length];
        buffer.get(0, now);
        if (!Arrays.equals(now, attributes)) {
            buffer.put(0, attributes);
            Libc.check(Libc.call(SystemCall.SCHED_SETATTR, tid.value(), address, 0), "sched_setattr of thread " + tid);
        }
        long length = Libc.check(
                Libc.call(SystemCall.SCHED_GETAFFINITY, tid.value(), 1024, address),
                "sched_getaffinity of thread " + tid);
        now = new byte[(int) length];
        buffer.get(0, now);
        if (!Arrays.equals(now, wanted.affinity())) {
            buffer.put(0, wanted.affinity());
            Libc.check(
                    Libc.call(SystemCall.SCHED_SETAFFINITY, tid.value(), wanted.affinity().length, address),
                    "sched_setaffinity of thread " + tid);
        }
        if (wanted.ioPriority() != 0) {
            Libc.check(
                    Libc.call(SystemCall.IOPRIO_SET, IOPRIO_WHO_PROCESS, tid.value(), wanted.ioPriority()),
                    "ioprio_set of thread " + tid);
        }
    }

    /** Arms timers, brings threads back into their blocked calls, and gives every thread its final state. */
    void finish(AddressPlan plan) {
        Program timers = new Program(workArea.room());
        AttributeCalls.timers(timers.calls(), image.timers());
        PosixTimers.arm(image.posixTimers(), timers::calls);
        if (image.attributes().lockFuture() != 0) {
            timers.calls()
                    .must(
                            "lock memory that is mapped later",
                            SystemCall.MLOCKALL,
                            image.attributes().lockFuture());
        }
        process.run(timers);
        Registers[] registers = new Registers[image.threads().size()];
        for (int i = registers.length - 1; i >= 0; i--) {
            registers[i] =
                    enterBlockedCall(image.threads().get(i), process.threads().get(i));
        }
        for (int i = registers.length - 1; i > 0; i--) {
            setFinalState(image.threads().get(i), process.threads().get(i), registers[i]);
        }
        ThreadImage leader = image.threads().getFirst();
        ThreadContext last = new ThreadContext(process.main(), registers[0], leader.signalMask(), pid, pid);
        WorkArea.unmap(process.memory(), last, vdso(), plan.start(), plan.end());
        setFinalState(leader, process.main(), registers[0]);
    }

    private static void setFinalState(ThreadImage thread, Tracee tracee, Registers registers) {
        tracee.setExtendedState(thread.extendedState());
        tracee.setSignalMask(thread.signalMask());
        tracee.setRegisters(registers);
    }

    private VdsoMapping vdso() {
        for (Mapping mapping : image.memory().mappings()) {
            if (mapping.backing() instanceof Backing.Kernel(String name) && name.equals("[vdso]")) {
                return new VdsoMapping(mapping.start(), mapping.end());
            }
        }
        throw new EngineException(EngineException.Kind.IMAGE, "process " + pid + " of the image has no vDSO");
    }

    /**
     * Makes the call that the thread was blocked in, with the time it had left, and interrupts it: the kernel then holds
     * the same restart block as before the checkpoint, and restarts the call by itself.
     *
     * @return the registers the thread goes on with
     */
    private Registers enterBlockedCall(ThreadImage thread, Tracee tracee) {
        Registers registers = Registers.of(thread.generalRegisters());
        BlockedCall blocked = thread.blockedCall();
        if (blocked == null) {
            return registers;
        }
        CallTable calls = new CallTable();
        long[] arguments = blocked.arguments().clone();
        if (blocked.remainingNanos() >= 0) {
            long left = blocked.remainingNanos();
            switch ((int) blocked.number()) {
                case SystemCall.NANOSLEEP -> arguments[0] = timespec(calls, left);
                case SystemCall.CLOCK_NANOSLEEP -> arguments[2] = timespec(calls, left);
                case SystemCall.FUTEX -> arguments[3] = timespec(calls, left);
                case SystemCall.POLL -> arguments[2] = Math.min(Integer.MAX_VALUE, (left + 999_999) / 1_000_000);
                default ->
                    throw new EngineException(
                            EngineException.Kind.IMAGE,
                            "thread " + thread.tid() + " was blocked in " + SystemCall.name(blocked.number())
                                    + ", which this version cannot restart");
            }
        }
        calls.query(blocked.number(), arguments);
        long[] result = new long[1];
        long now = System.nanoTime();
        if (workArea.runUntilBlocked(process.memory(), tracee, pid, thread.tid(), calls, result)) {
            long startTime = ProcStat.find(process.host()).orElseThrow().startTime();
            BlockedCalls.remember(tracee.tid().value(), startTime, registers.get(Register.RSP), blocked, now);
            return registers;
        }
        return registers.with(Register.RAX, result[0]).with(Register.ORIG_RAX, -1);
    }

    private static long timespec(CallTable calls, long nanos) {
        return calls.longs(nanos / 1_000_000_000L, nanos % 1_000_000_000L);
    }

    int pid() {
        return pid;
    }

    /** Lets all threads go. A process that was stopped by job control stops again before it runs. */
    void release() {
        if (image.attributes().stopped()) {
            boolean isDefault = image.signals().actions().stream()
                    .noneMatch(a -> a.signal() == image.attributes().stopSignal());
            Libc.call(
                    SystemCall.KILL,
                    process.host().value(),
                    isDefault ? image.attributes().stopSignal() : SIGSTOP);
        }
        List<Tracee> threads = process.threads();
        for (int i = threads.size() - 1; i >= 0; i--) {
            threads.get(i).detach(0);
        }
        if (image.attributes().stopped()) {
            JobControl.awaitStopped(process.host());
        }
        process.close();
    }
}
