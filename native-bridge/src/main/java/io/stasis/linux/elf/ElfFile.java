package io.stasis.linux.elf;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HexFormat;
import java.util.Optional;

/** Facts from ELF files on disk, elf(5); little-endian ones, of 32 and 64 bits. */
public final class ElfFile {
    /** The first four bytes, as a little-endian int. */
    static final int MAGIC = 0x464c457f;

    private static final int PT_NOTE = 4;
    private static final int NT_GNU_BUILD_ID = 3;
    private static final int GNU = 0x00554e47;
    private static final int LARGEST_NOTE = 1 << 20;

    private ElfFile() {}

    /** The linker's build id in hexadecimal; empty when the file has none or is no ELF file. */
    public static Optional<String> buildId(Path file) {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            ByteBuffer header = read(channel, 0, 64);
            if (header.remaining() < 52 || header.getInt(0) != MAGIC || header.get(5) != 1) {
                return Optional.empty();
            }
            boolean wide = header.get(4) == 2;
            long table = wide ? header.getLong(32) : Integer.toUnsignedLong(header.getInt(28));
            int entrySize = Short.toUnsignedInt(header.getShort(wide ? 54 : 42));
            int entries = Short.toUnsignedInt(header.getShort(wide ? 56 : 44));
            ByteBuffer programs = read(channel, table, entrySize * entries);
            for (int at = 0; entrySize >= (wide ? 56 : 32) && at + entrySize <= programs.limit(); at += entrySize) {
                if (programs.getInt(at) == PT_NOTE) {
                    long offset = wide ? programs.getLong(at + 8) : Integer.toUnsignedLong(programs.getInt(at + 4));
                    long size = wide ? programs.getLong(at + 32) : Integer.toUnsignedLong(programs.getInt(at + 16));
                    Optional<String> id = inNotes(read(channel, offset, (int) Math.min(size, LARGEST_NOTE)));
                    if (id.isPresent()) {
                        return id;
                    }
                }
            }
            return Optional.empty();
        } catch (IOException e) {
            throw new UncheckedIOException("reading the build id of " + file, e);
        }
    }

    private static Optional<String> inNotes(ByteBuffer notes) {
        int at = 0;
        while (at + 12 <= notes.limit()) {
            int nameSize = notes.getInt(at);
            int size = notes.getInt(at + 4);
            long description = at + 12L + align(nameSize);
            if (nameSize < 0 || size < 0 || description + size > notes.limit()) {
                break;
            }
            if (notes.getInt(at + 8) == NT_GNU_BUILD_ID && nameSize == 4 && notes.getInt(at + 12) == GNU) {
                byte[] id = new byte[size];
                notes.get((int) description, id);
                return Optional.of(HexFormat.of().formatHex(id));
            }
            long next = description + align(size);
            if (next > notes.limit()) {
                break;
            }
            at = (int) next;
        }
        return Optional.empty();
    }

    private static long align(int size) {
        return size + 3L & ~3L;
    }

    private static ByteBuffer read(FileChannel channel, long offset, int length) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
        while (offset >= 0 && buffer.hasRemaining() && channel.read(buffer, offset + buffer.position()) > 0) {
            // a short read
        }
        return buffer.flip();
    }
}
