package io.stasis.linux.seccomp;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/**
 * One filter of seccomp(2): a program of classic BPF, {@code <linux/filter.h>}, that decides about each system call.
 *
 * @param instructions {@code struct sock_filter} of eight bytes each, in this machine's byte order
 * @param logged whether it was installed with SECCOMP_FILTER_FLAG_LOG
 */
public record SeccompFilter(byte[] instructions, boolean logged) {
    public static final int SECCOMP_RET_KILL_PROCESS = 0x80000000;
    public static final int SECCOMP_RET_KILL_THREAD = 0;
    public static final int SECCOMP_RET_TRAP = 0x00030000;
    public static final int SECCOMP_RET_ERRNO = 0x00050000;
    public static final int SECCOMP_RET_USER_NOTIF = 0x7fc00000;
    public static final int SECCOMP_RET_TRACE = 0x7ff00000;
    public static final int SECCOMP_RET_LOG = 0x7ffc0000;
    public static final int SECCOMP_RET_ALLOW = 0x7fff0000;
    private static final int SECCOMP_RET_ACTION_FULL = 0xffff0000;

    /** Bytes of one instruction. */
    public static final int INSTRUCTION = 8;

    private static final int AUDIT_ARCH_X86_64 = 0xc000003e;
    private static final int DATA_BYTES = 64;
    private static final int SCRATCH_WORDS = 16;

    // Instruction classes and fields of <linux/bpf_common.h>.
    private static final int BPF_CLASS = 0x07;
    private static final int BPF_LD = 0;
    private static final int BPF_LDX = 1;
    private static final int BPF_ST = 2;
    private static final int BPF_STX = 3;
    private static final int BPF_ALU = 4;
    private static final int BPF_JMP = 5;
    private static final int BPF_RET = 6;
    private static final int BPF_MODE = 0xe0;
    private static final int BPF_IMM = 0x00;
    private static final int BPF_ABS = 0x20;
    private static final int BPF_MEM = 0x60;
    private static final int BPF_OP = 0xf0;
    private static final int BPF_X = 0x08;
    private static final int BPF_A = 0x10;
    private static final int BPF_TXA = 0x80;

    /**
     * What the kernel would do about a call under several filters: the most severe of their answers.
     *
     * @param instruction address behind the call's instruction
     * @return SECCOMP_RET_* without its data
     */
    public static int action(List<SeccompFilter> filters, long number, long instruction, long... arguments) {
        ByteBuffer data = ByteBuffer.allocate(DATA_BYTES).order(ByteOrder.nativeOrder());
        data.putInt((int) number).putInt(AUDIT_ARCH_X86_64).putLong(instruction);
        for (int i = 0; i < 6; i++) {
            data.putLong(i < arguments.length ? arguments[i] : 0);
        }
        int action = SECCOMP_RET_ALLOW;
        for (SeccompFilter filter : filters) {
            action = Math.min(action, filter.run(data) & SECCOMP_RET_ACTION_FULL);
        }
        return action;
    }

    /** Whether it may hand a call over to a supervisor, who holds its listener (seccomp_unotify(2)). */
    public boolean notifiesSupervisor() {
        ByteBuffer code = code();
        for (int at = 0; at < instructions.length; at += INSTRUCTION) {
            if (code.getShort(at) == BPF_RET
                    && (code.getInt(at + 4) & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF) {
                return true;
            }
        }
        return false;
    }

    private ByteBuffer code() {
        return ByteBuffer.wrap(instructions).order(ByteOrder.nativeOrder());
    }

    /** Interprets the program, which the kernel has checked: jumps go forward only and it ends with a return. */
    private int run(ByteBuffer data) {
        ByteBuffer code = code();
        int[] scratch = new int[SCRATCH_WORDS];
        int a = 0;
        int x = 0;
        for (int at = 0; ; at += INSTRUCTION) {
            int op = Short.toUnsignedInt(code.getShort(at));
            int k = code.getInt(at + 4);
            switch (op & BPF_CLASS) {
                case BPF_LD -> a = load(op, k, data, scratch);
                case BPF_LDX -> x = load(op, k, data, scratch);
                case BPF_ST -> scratch[k] = a;
                case BPF_STX -> scratch[k] = x;
                case BPF_ALU -> {
                    int operand = (op & BPF_X) != 0 ? x : k;
                    if ((op & BPF_OP) == 0x30 && operand == 0) {
                        return SECCOMP_RET_KILL_THREAD; // division by zero ends a program with 0
                    }
                    a = calculate(op & BPF_OP, a, operand);
                }
                case BPF_JMP -> at += INSTRUCTION * jump(op, a, (op & BPF_X) != 0 ? x : k, code, at);
                case BPF_RET -> {
                    return (op & BPF_A) != 0 ? a : k;
                }
                default -> {
                    if ((op & BPF_TXA) != 0) {
                        a = x;
                    } else {
                        x = a;
                    }
                }
            }
        }
    }

    private static int load(int op, int k, ByteBuffer data, int[] scratch) {
        return switch (op & BPF_MODE) {
            case BPF_IMM -> k;
            case BPF_ABS -> data.getInt(k);
            case BPF_MEM -> scratch[k];
            default -> DATA_BYTES; // BPF_LEN
        };
    }

    private static int calculate(int op, int a, int operand) {
        return switch (op) {
            case 0x00 -> a + operand;
            case 0x10 -> a - operand;
            case 0x20 -> a * operand;
            case 0x30 -> Integer.divideUnsigned(a, operand);
            case 0x40 -> a | operand;
            case 0x50 -> a & operand;
            case 0x60 -> a << operand;
            case 0x70 -> a >>> operand;
            case 0x80 -> -a;
            case 0xa0 -> a ^ operand;
            default -> throw new IllegalArgumentException("BPF operation 0x" + Integer.toHexString(op));
        };
    }

    private static int jump(int op, int a, int operand, ByteBuffer code, int at) {
        if ((op & BPF_OP) == 0) {
            return code.getInt(at + 4); // BPF_JA
        }
        boolean taken = switch (op & BPF_OP) {
            case 0x10 -> a == operand;
            case 0x20 -> Integer.compareUnsigned(a, operand) > 0;
            case 0x30 -> Integer.compareUnsigned(a, operand) >= 0;
            case 0x40 -> (a & operand) != 0;
            default -> throw new IllegalArgumentException("BPF jump 0x" + Integer.toHexString(op));
        };
        return Byte.toUnsignedInt(code.get(at + (taken ? 2 : 3)));
    }
}
