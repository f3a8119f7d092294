package io.stasis.linux.ptrace;

import static io.stasis.linux.ptrace.Assembler.*;

import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.ptrace.Registers.Register;

/**
 * Machine code that a thread runs for us, safe at every instant: when the tracer vanishes, the thread finishes the
 * system calls of the block, restores its own registers and mask, and goes on where it was frozen.
 *
 * <pre>
 *   entry:   block all signals but the marker
 *            the one call, result to rbx           (single)
 *            loop over a {@link CallTable}          (table)
 *   marker:  tgkill(tgid, tid, marker)
 *   after:   traced, the thread stands here in a signal-delivery stop, and the tracer puts the true registers back;
 *            untraced, the kernel drops the marker (its default action is to ignore) and the thread runs on:
 *            block all; flags, stack pointer; the true mask; the other registers; jump to where it was
 *   restart: syscall (restart_syscall); jump to where it was
 *   data:    the true registers and masks
 * </pre>
 *
 * Only general registers, flags and the signal mask are touched, so only they have to be restored; the extended state
 * stays as it is. A system call that was interrupted is restarted by hand in the tail: from its registers, or, when its
 * deadline lives in a restart block, by restart_syscall(2), which still finds the block.
 */
final class InjectionBlock {
    private static final int SIG_SETMASK = 2;
    private static final long RESTART_SYSCALL = SystemCall.RESTART_SYSCALL;

    private final byte[] bytes;
    private final int afterOffset;

    private InjectionBlock(byte[] bytes, int afterOffset) {
        this.bytes = bytes;
        this.afterOffset = afterOffset;
    }

    /** A block for {@code address} that makes one call; the result is in rbx at the marker stop. Writes no memory of the target. */
    static InjectionBlock single(long address, ThreadContext thread, int marker, long number, long... arguments) {
        Assembler code = prologue();
        String[] slots = {"a0", "a1", "a2", "a3", "a4", "a5"};
        int[] registers = {RDI, RSI, RDX, R10, R8, R9};
        code.load(RAX, "number");
        for (int i = 0; i < 6; i++) {
            code.load(registers[i], slots[i]);
        }
        code.systemCall().keepResult();
        epilogue(code, address, thread, marker);
        code.slot("number", number);
        for (int i = 0; i < 6; i++) {
            code.slot(slots[i], i < arguments.length ? arguments[i] : 0);
        }
        return new InjectionBlock(code.assemble(), code.offset("after"));
    }

    /** A block for {@code address} that makes {@code count} calls of a table at address {@code table}; r12 counts those not made. */
    static InjectionBlock table(long address, ThreadContext thread, int marker, long table, int count) {
        Assembler code = prologue();
        code.load(RBX, "table").load(R12, "count");
        code.label("loop")
                .loadFromTable(RAX, 0)
                .loadFromTable(RDI, 8)
                .loadFromTable(RSI, 16)
                .loadFromTable(RDX, 24)
                .loadFromTable(R10, 32)
                .loadFromTable(R8, 40)
                .loadFromTable(R9, 48)
                .systemCall()
                .storeToTable(CallTable.RESULT)
                .loadFromTable(RCX, CallTable.FORWARD)
                .storeThroughRcxUnlessZero()
                .exitOnError(CallTable.STRICT, "marker")
                .nextTableEntry(CallTable.ENTRY, "loop");
        epilogue(code, address, thread, marker);
        code.slot("table", table).slot("count", count);
        return new InjectionBlock(code.assemble(), code.offset("after"));
    }

    byte[] bytes() {
        return bytes;
    }

    /** Offset of the instruction behind the marker's system call. */
    int afterOffset() {
        return afterOffset;
    }

    private static Assembler prologue() {
        return mask(new Assembler(), "allButMarker");
    }

    /** rt_sigprocmask(SIG_SETMASK, slot, NULL, 8). Leaves the flags alone. */
    private static Assembler mask(Assembler code, String slot) {
        return code.set(RAX, SystemCall.RT_SIGPROCMASK)
                .set(RDI, SIG_SETMASK)
                .addressOf(RSI, slot)
                .set(RDX, 0)
                .set(R10, 8)
                .systemCall();
    }

    private static void epilogue(Assembler code, long address, ThreadContext thread, int marker) {
        Registers truth = thread.registers();
        code.label("marker")
                .set(RAX, SystemCall.TGKILL)
                .load(RDI, "tgid")
                .load(RSI, "tid")
                .set(RDX, marker)
                .systemCall();
        code.label("after");
        mask(code, "all");
        code.addressOf(RSP, "eflags").popFlags().load(RSP, "rsp");
        mask(code, "mask");
        code.load(R15, "r15")
                .load(R14, "r14")
                .load(R13, "r13")
                .load(R12, "r12")
                .load(RBP, "rbp")
                .load(RBX, "rbx")
                .load(R11, "r11")
                .load(R10, "r10")
                .load(R9, "r9")
                .load(R8, "r8")
                .load(RAX, "rax")
                .load(RCX, "rcx")
                .load(RDX, "rdx")
                .load(RSI, "rsi")
                .load(RDI, "rdi")
                .jumpThrough("target");
        code.label("restart").systemCall().jumpThrough("rip");

        long rax = truth.get(Register.RAX);
        long rip = truth.instructionPointer();
        long target = rip;
        if (truth.restartsFromRegisters()) {
            rax = truth.get(Register.ORIG_RAX);
            target = rip - 2;
        } else if (truth.restartsFromBlock()) {
            rax = RESTART_SYSCALL;
            target = address + code.offset("restart");
        }
        for (Register register : Register.values()) {
            switch (register) {
                case R15, R14, R13, R12, RBP, RBX, R11, R10, R9, R8, RCX, RDX, RSI, RDI ->
                    code.slot(register.name().toLowerCase(java.util.Locale.ROOT), truth.get(register));
                default -> {}
            }
        }
        code.slot("rax", rax)
                .slot("rip", rip)
                .slot("rsp", truth.get(Register.RSP))
                .slot("eflags", truth.get(Register.EFLAGS))
                .slot("mask", thread.signalMask())
                .slot("all", ~0L)
                .slot("allButMarker", ~(1L << (marker - 1)))
                .slot("tgid", thread.innerPid())
                .slot("tid", thread.innerTid())
                .slot("target", target);
    }
}
