package io.stasis.linux.ptrace;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The few x86-64 instructions that injected code is made of. Code is position independent: data is addressed relative
 * to the instruction pointer through named slots that {@link #slot} lays out behind the code.
 */
final class Assembler {
    /** General registers by their number in instruction encodings. */
    static final int RAX = 0, RCX = 1, RDX = 2, RBX = 3, RSP = 4, RBP = 5, RSI = 6, RDI = 7;

    static final int R8 = 8, R9 = 9, R10 = 10, R11 = 11, R12 = 12, R13 = 13, R14 = 14, R15 = 15;

    private record Fixup(int position, String label) {}

    private final ByteBuffer code = ByteBuffer.allocate(4096).order(ByteOrder.LITTLE_ENDIAN);
    private final Map<String, Integer> labels = new HashMap<>();
    private final List<Fixup> fixups = new ArrayList<>();

    Assembler label(String name) {
        labels.put(name, code.position());
        return this;
    }

    int offset(String label) {
        return labels.get(label);
    }

    private Assembler bytes(int... values) {
        for (int value : values) {
            code.put((byte) value);
        }
        return this;
    }

    private Assembler relative(String label) {
        fixups.add(new Fixup(code.position(), label));
        code.putInt(0);
        return this;
    }

    private static int rex(boolean wide, int register, int base) {
        return 0x40 | (wide ? 8 : 0) | (register >= 8 ? 4 : 0) | (base >= 8 ? 1 : 0);
    }

    /** mov register, immediate (32 bits, zero-extended). */
    Assembler set(int register, int immediate) {
        if (register >= 8) {
            bytes(0x41);
        }
        bytes(0xb8 + (register & 7));
        code.putInt(immediate);
        return this;
    }

    /** mov register, [slot]; 64 bits. Leaves the flags alone. */
    Assembler load(int register, String slot) {
        return bytes(rex(true, register, 0), 0x8b, 0x05 | (register & 7) << 3).relative(slot);
    }

    /** lea register, [slot]. */
    Assembler addressOf(int register, String slot) {
        return bytes(rex(true, register, 0), 0x8d, 0x05 | (register & 7) << 3).relative(slot);
    }

    /** mov register, [rbx + displacement]; 64 bits. */
    Assembler loadFromTable(int register, int displacement) {
        return bytes(rex(true, register, 0), 0x8b, 0x43 | (register & 7) << 3, displacement);
    }

    /** mov [rbx + displacement], rax. */
    Assembler storeToTable(int displacement) {
        return bytes(0x48, 0x89, 0x43, displacement);
    }

    /** mov [rcx], rax, unless rcx is zero. */
    Assembler storeThroughRcxUnlessZero() {
        return bytes(0x48, 0x85, 0xc9, 0x74, 0x03, 0x48, 0x89, 0x01);
    }

    /** Jumps to {@code label} when the table's word at {@code displacement} is not zero and rax is a negated errno. */
    Assembler exitOnError(int displacement, String label) {
        // cmp qword [rbx+d], 0; je +12; cmp rax, -4095; jae label
        bytes(0x48, 0x83, 0x7b, displacement, 0x00, 0x74, 0x0c, 0x48, 0x3d);
        code.putInt(-4095);
        return bytes(0x0f, 0x83).relative(label);
    }

    /** add rbx, bytes; dec r12; jnz label. */
    Assembler nextTableEntry(int bytes, String label) {
        return bytes(0x48, 0x83, 0xc3, bytes, 0x49, 0xff, 0xcc, 0x0f, 0x85).relative(label);
    }

    /** mov rbx, rax. */
    Assembler keepResult() {
        return bytes(0x48, 0x89, 0xc3);
    }

    Assembler systemCall() {
        return bytes(0x0f, 0x05);
    }

    Assembler popFlags() {
        return bytes(0x9d);
    }

    /** jmp [slot]. */
    Assembler jumpThrough(String slot) {
        return bytes(0xff, 0x25).relative(slot);
    }

    /** A 64-bit data slot. */
    Assembler slot(String name, long value) {
        while ((code.position() & 7) != 0) {
            bytes(0xcc);
        }
        label(name);
        code.putLong(value);
        return this;
    }

    byte[] assemble() {
        for (Fixup fixup : fixups) {
            code.putInt(fixup.position, labels.get(fixup.label) - (fixup.position + 4));
        }
        byte[] result = new byte[code.position()];
        code.get(0, result);
        return result;
    }
}
