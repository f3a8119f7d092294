package io.stasis.linux.ptrace;

import io.stasis.linux.KernelException;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.memory.ProcessMemory;
import io.stasis.linux.ptrace.Registers.Register;
import io.stasis.linux.ptrace.RemoteProcess.VdsoMapping;
import java.nio.ByteBuffer;
import java.util.concurrent.locks.LockSupport;

/**
 * Memory at one address, free in every process to be restored, from which they are built: the stub maps it, its
 * descendants inherit it (each its own copy), and each unmaps it last.
 *
 * <p>Unlike {@link RemoteProcess} there is no program yet to come back to: the tracees are under PTRACE_O_EXITKILL and
 * die with the tracer.
 */
public final class WorkArea {
    private static final int TABLE_OFFSET = 4096;
    private static final int PROT_RWX = 7;
    private static final int MAP_PRIVATE_ANONYMOUS_FIXED_NOREPLACE = 0x22 | 0x100000;
    /** Where the mark for the end of a run is taken from: any will do, as a tracer sees ignored signals too. */
    private static final int SIGURG = 23;

    private final long address;
    private final int bytes;

    public WorkArea(long address, int bytes) {
        this.address = address;
        this.bytes = bytes;
    }

    public long address() {
        return address;
    }

    public int bytes() {
        return bytes;
    }

    /** Largest table that one run can make, in bytes. */
    public int room() {
        return bytes - TABLE_OFFSET;
    }

    /** Maps the area in a stopped stub, by code written to {@code codeAddress}, an executable page of its. */
    public void map(ProcessMemory memory, Tracee stub, long codeAddress) {
        ThreadContext context = context(stub, stub.tid().value(), stub.tid().value());
        InjectionBlock block = InjectionBlock.single(
                codeAddress,
                context,
                SIGURG,
                SystemCall.MMAP,
                address,
                bytes,
                PROT_RWX,
                MAP_PRIVATE_ANONYMOUS_FIXED_NOREPLACE,
                -1,
                0);
        write(memory, codeAddress, block.bytes());
        start(stub, codeAddress);
        Registers at = RemoteProcess.awaitMarker(stub, codeAddress + block.afterOffset(), SIGURG);
        Libc.check(at.get(Register.RBX), "mmap of the work area in the stub");
    }

    /**
     * Makes calls in a stopped thread that has the area mapped.
     *
     * @param pid its thread group id in its own pid namespace
     * @param tid its thread id there
     * @throws KernelException when a call that must succeed failed
     */
    public CallTable.Results run(ProcessMemory memory, Tracee tracee, int pid, int tid, CallTable calls) {
        InjectionBlock block = prepare(memory, tracee, pid, tid, calls);
        start(tracee, address);
        Registers at = RemoteProcess.awaitMarker(tracee, address + block.afterOffset(), SIGURG);
        return results(memory, pid, calls, at);
    }

    /**
     * Makes one call that is expected to block, and interrupts it there.
     *
     * @return true when the thread stands in the interrupted call, which the kernel restarts by restart_syscall(2);
     *     false when the call returned by itself, with its result in {@code results[0]}
     */
    public boolean runUntilBlocked(
            ProcessMemory memory, Tracee tracee, int pid, int tid, CallTable calls, long[] results) {
        InjectionBlock block = prepare(memory, tracee, pid, tid, calls);
        start(tracee, address);
        long after = address + block.afterOffset();
        for (long patience = 20_000; ; patience = Math.min(2 * patience, 5_000_000)) {
            // Interrupted at once, it would never get as far as the call.
            LockSupport.parkNanos(patience);
            tracee.interrupt();
            switch (tracee.await()) {
                case Stop.Event event
                when tracee.registers().restartsFromBlock() -> {
                    return true;
                }
                case Stop.Event event -> tracee.resume(0);
                case Stop.Signal signal
                when tracee.registers().instructionPointer() == after -> {
                    results[0] = results(memory, pid, calls, tracee.registers()).result(0);
                    return false;
                }
                case Stop.Signal signal -> tracee.resume(0);
                case Stop.Gone gone -> throw new KernelException("restored " + tracee, 3);
            }
        }
    }

    /** Starts calls that end the process; the caller reaps it. */
    public void runToDeath(ProcessMemory memory, Tracee tracee, int pid, int tid, CallTable calls) {
        prepare(memory, tracee, pid, tid, calls);
        start(tracee, address);
    }

    /**
     * Unmaps [start, end) and leaves the thread with its final registers and mask: the last thing done in a process, by
     * code behind its vDSO, which is zero again afterwards.
     */
    public static void unmap(ProcessMemory memory, ThreadContext last, VdsoMapping vdso, long start, long end) {
        long code = (RemoteProcess.vdsoEnd(memory, vdso) + 15) & ~15L;
        InjectionBlock block = InjectionBlock.single(code, last, SIGURG, SystemCall.MUNMAP, start, end - start);
        if (block.bytes().length > vdso.end() - code) {
            throw new IllegalStateException("only " + (vdso.end() - code) + " bytes behind the vDSO");
        }
        write(memory, code, block.bytes());
        start(last.tracee(), code);
        Registers at = RemoteProcess.awaitMarker(last.tracee(), code + block.afterOffset(), SIGURG);
        Libc.check(at.get(Register.RBX), "munmap of the work area in process " + last.innerPid());
        write(memory, code, new byte[block.bytes().length]);
        last.tracee().setSignalMask(last.signalMask());
        last.tracee().setRegisters(last.registers());
    }

    private InjectionBlock prepare(ProcessMemory memory, Tracee tracee, int pid, int tid, CallTable calls) {
        if (calls.bytes() > room()) {
            throw new IllegalArgumentException("call table of " + calls.bytes() + " bytes");
        }
        long table = address + TABLE_OFFSET;
        memory.write(table, calls.place(table));
        InjectionBlock block = InjectionBlock.table(address, context(tracee, pid, tid), SIGURG, table, calls.size());
        write(memory, address, block.bytes());
        return block;
    }

    private CallTable.Results results(ProcessMemory memory, int pid, CallTable calls, Registers at) {
        ByteBuffer image = Libc.buffer(calls.bytes());
        memory.read(address + TABLE_OFFSET, image);
        CallTable.Results results = new CallTable.Results(calls, image);
        long left = at.get(Register.R12);
        if (left != 0) {
            int failed = calls.size() - (int) left;
            throw new KernelException("process " + pid + ": " + calls.describe(failed), (int) -results.result(failed));
        }
        return results;
    }

    private static ThreadContext context(Tracee tracee, int pid, int tid) {
        return new ThreadContext(tracee, tracee.registers(), 0, pid, tid);
    }

    private static void start(Tracee tracee, long code) {
        tracee.setRegisters(tracee.registers().with(Register.RIP, code).with(Register.ORIG_RAX, -1));
        tracee.setSignalMask(~(1L << (SIGURG - 1)));
        tracee.resume(0);
    }

    private static void write(ProcessMemory memory, long at, byte[] bytes) {
        ByteBuffer buffer = Libc.buffer(bytes.length);
        buffer.put(bytes).flip();
        memory.write(at, buffer);
    }
}
