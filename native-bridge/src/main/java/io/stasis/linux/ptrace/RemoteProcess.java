package io.stasis.linux.ptrace;

import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.RemoteAddress;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.memory.ProcessMemory;
import io.stasis.linux.ptrace.Registers.Register;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * System calls in a frozen process, as an object with a lifetime: opened, used, closed, and everything is as it was.
 *
 * <pre>{@code
 * try (var remote = RemoteProcess.open(pid, memory, vdso, leader, caughtSignals)) {
 *     var results = remote.run(thread, calls);      // any frozen thread of the process
 * }
 * }</pre>
 *
 * <p>The first call, an mmap of scratch memory, runs from the zero padding behind the vDSO, which needs no help from
 * the target's libc, stack or code; all further ones run from the scratch memory. After each run the thread has its
 * true registers and mask again. See {@link InjectionBlock} for why the death of the tracer harms nobody.
 */
public final class RemoteProcess implements AutoCloseable {
    /** First bytes of scratch memory, by which a later tracer recognises what a dead one left behind. */
    public static final long SCRATCH_MAGIC = 0x3148_4354_5253_5453L; // "STSRTCH1"

    /** Size of the scratch mapping in bytes. */
    public static final int SCRATCH_BYTES = 64 * 1024;

    private static final int BLOCK_OFFSET = 64;
    private static final int TABLE_OFFSET = 4096;
    /** A signal frame with all processor state has less than 12 KiB; the handler's own frames come on top. */
    private static final int STACK_SEARCHED = 64 * 1024;

    private static final int STACK_PIECE = 512;
    private static final int PROT_RWX = 7;
    private static final int MAP_PRIVATE_ANONYMOUS = 0x22;
    private static final int SIGSTOP = 19;

    // Ignored by default, so that the kernel drops one that nobody traces. SIGCONT last: it also cancels stop signals.
    private static final int[] MARKERS = {23 /* SIGURG */, 28 /* SIGWINCH */, 17 /* SIGCHLD */, 18 /* SIGCONT */};

    /** The mapping of the vDSO in the target. */
    public record VdsoMapping(long start, long end) {}

    private final Pid pid;
    private final ProcessMemory memory;
    private final ThreadContext leader;
    private final int marker;
    private final long blockAddress;
    private final int blockRoom;
    private final ByteBuffer emptyBlock;
    private long scratch;

    private RemoteProcess(
            Pid pid, ProcessMemory memory, ThreadContext leader, int marker, long blockAddress, int blockRoom) {
        this.pid = pid;
        this.memory = memory;
        this.leader = leader;
        this.marker = marker;
        this.blockAddress = blockAddress;
        this.blockRoom = blockRoom;
        this.emptyBlock = Libc.buffer(blockRoom);
    }

    /**
     * Maps the scratch memory.
     *
     * @param leader the frozen thread that maps and unmaps it
     * @param caughtSignals SigCgt of proc_pid_status(5): signals with a handler
     */
    public static RemoteProcess open(
            Pid pid, ProcessMemory memory, VdsoMapping vdso, ThreadContext leader, long caughtSignals) {
        return open(pid, memory, vdso, leader, List.of(leader), caughtSignals);
    }

    /** @param threads all threads of the process, frozen: asked whether one still runs code that a dead tracer left */
    public static RemoteProcess open(
            Pid pid,
            ProcessMemory memory,
            VdsoMapping vdso,
            ThreadContext leader,
            List<ThreadContext> threads,
            long caughtSignals) {
        int marker = marker(pid, caughtSignals);
        for (ThreadContext thread : threads) {
            CallGuard.checkFrame(pid, thread, marker, vdso.end());
        }
        CallGuard.check(
                pid, leader, vdso.end(), SystemCall.MMAP, 0, SCRATCH_BYTES, PROT_RWX, MAP_PRIVATE_ANONYMOUS, -1);
        CallGuard.check(pid, leader, vdso.end(), SystemCall.MUNMAP, 0, SCRATCH_BYTES);
        long padding = (vdsoEnd(memory, vdso) + 15) & ~15L;
        int room = (int) ((vdso.end() - padding) / 2) & ~15;
        ByteBuffer both = Libc.buffer(2 * room);
        memory.read(padding, both);
        int slot = -1;
        for (int i = 0; i < 2 && slot < 0; i++) {
            long start = padding + (long) i * room;
            // What a dead tracer left may be overwritten when nobody is in it or on the way back to it.
            if (isZero(both, i * room, room)
                    || threads.stream().noneMatch(thread -> leadsTo(memory, thread, start, start + room))) {
                slot = i;
            }
        }
        if (slot < 0) {
            throw new IllegalStateException("process " + pid
                    + ": both places for injected code behind its vDSO are in use by agents that were killed;"
                    + " restart the program to free them");
        }
        var remote = new RemoteProcess(pid, memory, leader, marker, padding + (long) slot * room, room);
        long mapped = remote.single(SystemCall.MMAP, 0, SCRATCH_BYTES, PROT_RWX, MAP_PRIVATE_ANONYMOUS, -1, 0);
        Libc.check(mapped, "mmap of scratch memory in process " + pid);
        remote.scratch = mapped;
        ByteBuffer header = Libc.buffer(8);
        header.putLong(0, SCRATCH_MAGIC);
        memory.write(mapped, header);
        return remote;
    }

    /** Where the scratch memory lies. */
    public RemoteAddress scratch() {
        return new RemoteAddress(scratch);
    }

    /** The place behind the vDSO that injected code was written to, and its length: zero again after close. */
    public RemoteAddress block() {
        return new RemoteAddress(blockAddress);
    }

    /**
     * Makes the calls in {@code thread} and puts its true registers and mask back.
     *
     * @throws KernelException when a call that must succeed failed
     */
    public CallTable.Results run(ThreadContext thread, CallTable calls) {
        if (calls.bytes() > SCRATCH_BYTES - TABLE_OFFSET) {
            throw new IllegalArgumentException("call table of " + calls.bytes() + " bytes");
        }
        long table = scratch + TABLE_OFFSET;
        ByteBuffer image = calls.place(table);
        CallGuard.check(pid, thread, table, calls, image);
        memory.write(table, image);
        InjectionBlock block = InjectionBlock.table(scratch + BLOCK_OFFSET, thread, marker, table, calls.size());
        Registers after = run(memory, thread, scratch + BLOCK_OFFSET, block, marker);
        image.clear();
        memory.read(table, image);
        long left = after.get(Register.R12);
        CallTable.Results results = new CallTable.Results(calls, image);
        if (left != 0) {
            int failed = calls.size() - (int) left;
            throw new KernelException("process " + pid + ": " + calls.describe(failed), (int) -results.result(failed));
        }
        return results;
    }

    /** Makes one call in the leader from behind the vDSO; for calls that change the scratch memory itself. */
    private long single(long number, long... arguments) {
        InjectionBlock block = InjectionBlock.single(blockAddress, leader, marker, number, arguments);
        if (block.bytes().length > blockRoom) {
            throw new IllegalStateException("process " + pid + ": only " + blockRoom + " bytes behind the vDSO");
        }
        long result = run(memory, leader, blockAddress, block, marker).get(Register.RBX);
        emptyBlock.clear();
        memory.write(blockAddress, emptyBlock);
        return result;
    }

    /** Runs a block to its marker and puts the true registers back. Returns the registers at the marker. */
    private static Registers run(
            ProcessMemory memory, ThreadContext thread, long address, InjectionBlock block, int marker) {
        ByteBuffer bytes = Libc.buffer(block.bytes().length);
        bytes.put(block.bytes()).flip();
        memory.write(address, bytes);
        Tracee tracee = thread.tracee();
        Registers start = thread.registers().with(Register.RIP, address).with(Register.ORIG_RAX, -1);
        tracee.setRegisters(start);
        tracee.setSignalMask(~(1L << (marker - 1)));
        tracee.resume(0);
        Registers at = awaitMarker(tracee, address + block.afterOffset(), marker);
        tracee.setSignalMask(thread.signalMask());
        tracee.setRegisters(thread.registers());
        return at;
    }

    static Registers awaitMarker(Tracee tracee, long after, int marker) {
        boolean stopAgain = false;
        while (true) {
            switch (tracee.await()) {
                case Stop.Signal(int signal) -> {
                    Registers at = tracee.registers();
                    if (signal == marker && at.instructionPointer() == after) {
                        if (stopAgain) {
                            Libc.call(SystemCall.TKILL, tracee.tid().value(), SIGSTOP);
                        }
                        return at;
                    }
                    // SIGSTOP cannot be blocked: let the calls finish first. A stray marker is of a dead predecessor.
                    stopAgain |= signal == SIGSTOP;
                    tracee.resume(0);
                }
                case Stop.Event event -> tracee.resume(0);
                case Stop.Gone gone -> throw new KernelException("injected calls in " + tracee, 3);
            }
        }
    }

    private static int marker(Pid pid, long caught) {
        for (int candidate : MARKERS) {
            if ((caught & 1L << (candidate - 1)) == 0) {
                return candidate;
            }
        }
        throw new IllegalStateException("process " + pid
                + " handles all of SIGURG, SIGWINCH, SIGCHLD and SIGCONT: no signal is left to mark the end of an"
                + " injected call");
    }

    /** Address behind the last byte of the vDSO's ELF image: its section headers come last. */
    static long vdsoEnd(ProcessMemory memory, VdsoMapping vdso) {
        ByteBuffer header = Libc.buffer(64);
        memory.read(vdso.start(), header);
        if (header.getInt(0) != 0x464c457f) {
            throw new IllegalStateException("no ELF image in the vDSO at 0x" + Long.toHexString(vdso.start()));
        }
        return vdso.start()
                + header.getLong(40)
                + (long) Short.toUnsignedInt(header.getShort(58)) * Short.toUnsignedInt(header.getShort(60));
    }

    /** Whether a thread stands in [start, end), or a signal frame on its stack may return there. */
    private static boolean leadsTo(ProcessMemory memory, ThreadContext thread, long start, long end) {
        long instruction = thread.registers().instructionPointer();
        if (instruction >= start && instruction < end) {
            return true;
        }
        ByteBuffer page = Libc.buffer(STACK_PIECE);
        long stack = thread.registers().get(Register.RSP) & -8L;
        try {
            for (int done = 0; done < STACK_SEARCHED; done += STACK_PIECE) {
                page.clear();
                memory.read(stack + done, page);
                for (int i = 0; i < STACK_PIECE; i += 8) {
                    long value = page.getLong(i);
                    if (value >= start && value < end) {
                        return true;
                    }
                }
            }
        } catch (KernelException e) {
            return false; // the end of the stack
        }
        return false;
    }

    private static boolean isZero(ByteBuffer buffer, int from, int length) {
        for (int i = from; i + 8 <= from + length; i += 8) {
            if (buffer.getLong(i) != 0) {
                return false;
            }
        }
        return true;
    }

    /** Unmaps the scratch memory and clears the place behind the vDSO. */
    @Override
    public void close() {
        if (scratch != 0) {
            long address = scratch;
            scratch = 0;
            Libc.check(single(SystemCall.MUNMAP, address, SCRATCH_BYTES), "munmap of scratch memory in process " + pid);
        }
    }

    @Override
    public String toString() {
        return "remote calls in process " + pid;
    }
}
