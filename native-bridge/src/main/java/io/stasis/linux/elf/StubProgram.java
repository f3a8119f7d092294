package io.stasis.linux.elf;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;

/**
 * A program of one page that does nothing: the empty process a restore fills. It lets anybody of the same user trace it
 * (PR_SET_PTRACER, for hosts with Yama; an error is ignored), then pauses for ever.
 *
 * <pre>
 *   0x000  ELF header, ET_EXEC, x86-64
 *   0x040  PT_LOAD    offset 0, 4096 bytes at the page's address, readable, writable, executable
 *   0x078  PT_GNU_STACK, not executable
 *   0x0b0  code: prctl(PR_SET_PDEATHSIG, SIGKILL); prctl(PR_SET_PTRACER, -1); for (;;) pause();
 *   0x100  room for the restore's first steps, zeros, to 0x1000
 * </pre>
 *
 * @param file the executable, mode 0700
 * @param page address of the page
 * @param entry address of the first instruction
 */
public record StubProgram(Path file, long page, long entry) {
    /** Bytes of the only page. */
    public static final int SIZE = 4096;

    /** Where the unused rest of the page begins, relative to it. */
    public static final int ROOM = 0x100;

    private static final int CODE = 0xb0;
    private static final byte[] INSTRUCTIONS = {
        (byte) 0xbf,
        1,
        0,
        0,
        0, // mov edi, PR_SET_PDEATHSIG: no stub outlives whoever started it
        (byte) 0xbe,
        9,
        0,
        0,
        0, // mov esi, SIGKILL
        (byte) 0xb8,
        (byte) 157,
        0,
        0,
        0, // mov eax, SYS_prctl
        0x0f,
        0x05, // syscall
        (byte) 0xbf,
        0x61,
        0x6d,
        0x61,
        0x59, // mov edi, PR_SET_PTRACER
        0x48,
        (byte) 0xc7,
        (byte) 0xc6,
        -1,
        -1,
        -1,
        -1, // mov rsi, PR_SET_PTRACER_ANY
        0x31,
        (byte) 0xd2, // xor edx, edx
        0x4d,
        0x31,
        (byte) 0xd2, // xor r10, r10
        0x4d,
        0x31,
        (byte) 0xc0, // xor r8, r8
        (byte) 0xb8,
        (byte) 157,
        0,
        0,
        0, // mov eax, SYS_prctl
        0x0f,
        0x05, // syscall
        (byte) 0xb8,
        34,
        0,
        0,
        0, // mov eax, SYS_pause
        0x0f,
        0x05, // syscall
        (byte) 0xeb,
        (byte) 0xf7 // jmp to the second mov eax
    };

    /**
     * Writes the program.
     *
     * @param page address of a page that neither the kernel (vm.mmap_min_addr, usually 64 KiB) nor the restored program
     *     uses
     */
    public static StubProgram write(Path file, long page) {
        if ((page & SIZE - 1) != 0 || page <= 0) {
            throw new IllegalArgumentException("0x" + Long.toHexString(page) + " is no address of a page");
        }
        ByteBuffer b = ByteBuffer.allocate(SIZE).order(ByteOrder.LITTLE_ENDIAN);
        b.putInt(ElfFile.MAGIC).put((byte) 2).put((byte) 1).put((byte) 1).position(16);
        b.putShort((short) 2).putShort((short) 62).putInt(1); // ET_EXEC, EM_X86_64
        b.putLong(page + CODE).putLong(64).putLong(0); // entry, program headers, no sections
        b.putInt(0).putShort((short) 64).putShort((short) 56).putShort((short) 2);
        b.position(64);
        program(b, 1, 7, page, SIZE, SIZE); // PT_LOAD
        program(b, 0x6474e551, 6, 0, 0, 16); // PT_GNU_STACK
        b.put(INSTRUCTIONS).clear();
        try {
            Files.deleteIfExists(file);
            var ownerOnly = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
            try (var channel = Files.newByteChannel(
                    file, java.util.Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE), ownerOnly)) {
                while (b.hasRemaining()) {
                    channel.write(b);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException("writing the restore stub " + file, e);
        }
        return new StubProgram(file, page, page + CODE);
    }

    private static void program(ByteBuffer b, int type, int flags, long address, long size, long alignment) {
        b.putInt(type).putInt(flags).putLong(0).putLong(address).putLong(address);
        b.putLong(size).putLong(size).putLong(alignment);
    }
}
