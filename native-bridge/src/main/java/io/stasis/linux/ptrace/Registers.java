package io.stasis.linux.ptrace;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * General registers of a stopped x86-64 thread: {@code struct user_regs_struct} of {@code <sys/user.h>}, 27 longs.
 * Immutable; {@code with} gives a changed copy.
 */
public final class Registers {
    /** Size of the structure in bytes. */
    public static final int BYTES = 216;

    /** The registers by their index in the structure. */
    public enum Register {
        R15,
        R14,
        R13,
        R12,
        RBP,
        RBX,
        R11,
        R10,
        R9,
        R8,
        RAX,
        RCX,
        RDX,
        RSI,
        RDI,
        ORIG_RAX,
        RIP,
        CS,
        EFLAGS,
        RSP,
        SS,
        FS_BASE,
        GS_BASE,
        DS,
        ES,
        FS,
        GS
    }

    // Error codes by which the kernel marks a system call that is to be restarted, <linux/errno.h>.
    private static final long ERESTARTSYS = -512;
    private static final long ERESTARTNOINTR = -513;
    private static final long ERESTARTNOHAND = -514;
    private static final long ERESTART_RESTARTBLOCK = -516;

    private final long[] values;

    private Registers(long[] values) {
        this.values = values;
    }

    /** Reads the structure from the start of {@code buffer}. */
    static Registers read(ByteBuffer buffer) {
        long[] values = new long[BYTES / 8];
        for (int i = 0; i < values.length; i++) {
            values[i] = buffer.getLong(8 * i);
        }
        return new Registers(values);
    }

    /** From the bytes that {@link #toBytes} gave. */
    public static Registers of(byte[] structure) {
        if (structure.length != BYTES) {
            throw new IllegalArgumentException("user_regs_struct has " + BYTES + " bytes, not " + structure.length);
        }
        return read(ByteBuffer.wrap(structure).order(ByteOrder.LITTLE_ENDIAN));
    }

    public byte[] toBytes() {
        ByteBuffer buffer = ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        write(buffer);
        return buffer.array();
    }

    void write(ByteBuffer buffer) {
        for (int i = 0; i < values.length; i++) {
            buffer.putLong(8 * i, values[i]);
        }
    }

    public long get(Register register) {
        return values[register.ordinal()];
    }

    public Registers with(Register register, long value) {
        long[] copy = values.clone();
        copy[register.ordinal()] = value;
        return new Registers(copy);
    }

    public long instructionPointer() {
        return get(Register.RIP);
    }

    /** Whether the thread was stopped inside a system call that has not returned to user code. */
    public boolean inSystemCall() {
        return get(Register.ORIG_RAX) >= 0;
    }

    /** Whether the kernel restarts the interrupted call from its registers alone. */
    public boolean restartsFromRegisters() {
        long code = get(Register.RAX);
        return inSystemCall() && (code == ERESTARTSYS || code == ERESTARTNOINTR || code == ERESTARTNOHAND);
    }

    /** Whether the kernel restarts the interrupted call through restart_syscall(2), with a deadline only it knows. */
    public boolean restartsFromBlock() {
        return inSystemCall() && get(Register.RAX) == ERESTART_RESTARTBLOCK;
    }

    /** The registers that run the interrupted system call once more from its beginning. */
    public Registers rewound() {
        return with(Register.RIP, instructionPointer() - 2)
                .with(Register.RAX, get(Register.ORIG_RAX))
                .with(Register.ORIG_RAX, -1);
    }

    /** The six arguments of the system call the thread is in. */
    public long[] systemCallArguments() {
        return new long[] {
            get(Register.RDI),
            get(Register.RSI),
            get(Register.RDX),
            get(Register.R10),
            get(Register.R8),
            get(Register.R9)
        };
    }
}
