package io.stasis.image;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Pages of memory with the addresses they belong to. The data is page aligned, so that a process can read a run straight
 * into its place.
 *
 * <pre>
 *   0      4096  header: magic "STASISP1", format version (4), zeroes
 *   4096   ...   pages, run behind run
 *   ...    24 n  index, one entry a run: address (8), number of pages (4), CRC-32C of the pages (4), file offset (8)
 *   end-64 64    footer: index offset (8), number of runs (8), number of pages (8), CRC-32C of the index (4),
 *                CRC-32C of the header (4), zeroes, CRC-32C of the footer so far (4, at 52), magic "STASISPE"
 * </pre>
 *
 * Numbers are little-endian. Addresses ascend; runs do not overlap. The header is the same for all files and everything
 * behind it is appended in order, so that the checksum of the whole file is known when the last byte is written.
 */
public final class PageFile implements AutoCloseable {
    /** Size of a page in bytes. */
    public static final int PAGE = 4096;

    private static final byte[] MAGIC = {'S', 'T', 'A', 'S', 'I', 'S', 'P', '1'};
    private static final byte[] END_MAGIC = {'S', 'T', 'A', 'S', 'I', 'S', 'P', 'E'};
    private static final int ENTRY = 24;
    private static final int FOOTER = 64;
    private static final int FOOTER_CRC = 52;
    private static final int CHUNK = 1 << 20;
    private static final int LONGEST_INDEX = 1 << 30;

    /**
     * Consecutive pages.
     *
     * @param address of the first page, in bytes
     * @param fileOffset where they lie in the file, page aligned
     * @param crc CRC-32C of all of them
     */
    public record Run(long address, int pages, long fileOffset, int crc) {
        private long end() {
            return address + (long) pages * PAGE;
        }
    }

    private final Path file;
    private final FileChannel channel;
    private final List<Run> runs;

    private PageFile(Path file, FileChannel channel, List<Run> runs) {
        this.file = file;
        this.channel = channel;
        this.runs = runs;
    }

    public static Writer create(Path file) {
        return new Writer(file, PrivateFiles.create(file));
    }

    /**
     * Where a page file lies that a record names.
     *
     * @throws ImageException when the name leads out of the generation
     */
    public static Path inside(Path generation, String name) {
        Path file = generation.resolve(name).normalize();
        if (!file.startsWith(generation.normalize()) || name.contains("..")) {
            throw new ImageException("the image in " + generation + " is damaged: it names the page file " + name
                    + ", which does not belong to it; restart from another generation");
        }
        return file;
    }

    /** Opens a file and checks all of it but the pages. */
    public static PageFile open(Path file) {
        FileChannel channel = PrivateFiles.openForReading(file);
        try {
            return new PageFile(file, channel, readIndex(file, channel));
        } catch (RuntimeException | IOException e) {
            try {
                channel.close();
            } catch (IOException suppressed) {
                e.addSuppressed(suppressed);
            }
            throw e instanceof IOException io ? ImageException.reading("read", file, io) : (RuntimeException) e;
        }
    }

    private static List<Run> readIndex(Path file, FileChannel channel) throws IOException {
        long size = channel.size();
        if (size < PAGE + FOOTER) {
            throw ImageException.damaged(file, "it has only " + size + " bytes");
        }
        ByteBuffer header = little(PAGE);
        PrivateFiles.readFully(channel, header, 0, file);
        ByteBuffer footer = little(FOOTER);
        PrivateFiles.readFully(channel, footer, size - FOOTER, file);
        if (!startsWith(footer, FOOTER - END_MAGIC.length, END_MAGIC)
                || footer.getInt(FOOTER_CRC) != crc(footer, FOOTER_CRC)) {
            throw ImageException.damaged(file, "its footer is wrong or cut off");
        }
        if (!startsWith(header, 0, MAGIC) || footer.getInt(28) != crc(header, PAGE)) {
            throw ImageException.damaged(file, "its header is wrong");
        }
        FormatVersion.check(header.getInt(MAGIC.length), file.toString());
        long indexOffset = footer.getLong(0);
        long count = footer.getLong(8);
        if (indexOffset < PAGE
                || indexOffset > size - FOOTER
                || count < 0
                || count > LONGEST_INDEX / ENTRY
                || count * ENTRY != size - FOOTER - indexOffset) {
            throw ImageException.damaged(file, "its index does not fit");
        }
        ByteBuffer index = little((int) (count * ENTRY));
        PrivateFiles.readFully(channel, index, indexOffset, file);
        if (crc(index, index.capacity()) != footer.getInt(24)) {
            throw ImageException.damaged(file, "the checksum of its index is wrong");
        }
        if (footer.getLong(16) != (indexOffset - PAGE) / PAGE) {
            throw ImageException.damaged(file, "it counts its pages wrong");
        }
        return parse(file, index, indexOffset);
    }

    private static List<Run> parse(Path file, ByteBuffer index, long indexOffset) {
        List<Run> runs = new ArrayList<>(index.capacity() / ENTRY);
        long expected = PAGE;
        long free = 0;
        for (int at = 0; at < index.capacity(); at += ENTRY) {
            Run run = new Run(index.getLong(at), index.getInt(at + 8), index.getLong(at + 16), index.getInt(at + 12));
            if (run.pages <= 0
                    || run.fileOffset != expected
                    || run.address % PAGE != 0
                    || Long.compareUnsigned(run.address, free) < 0) {
                throw ImageException.damaged(file, "entry " + at / ENTRY + " of its index is wrong");
            }
            free = run.end();
            expected += (long) run.pages * PAGE;
            runs.add(run);
        }
        if (expected != indexOffset) {
            throw ImageException.damaged(file, "its index does not cover its pages");
        }
        return List.copyOf(runs);
    }

    /** Runs in ascending order of addresses. */
    public List<Run> runs() {
        return runs;
    }

    /**
     * Fills {@code target} with bytes of this file.
     *
     * @param fileOffset where they begin, inside the pages of a run
     */
    public void read(long fileOffset, ByteBuffer target) {
        PrivateFiles.readFully(channel, target, fileOffset, file);
    }

    /** Reads every page and checks it. */
    public void verify() {
        ByteBuffer buffer = ByteBuffer.allocateDirect(CHUNK);
        for (Run run : runs) {
            if (PrivateFiles.sum(channel, run.fileOffset, (long) run.pages * PAGE, file, buffer) != run.crc) {
                throw ImageException.damaged(
                        file,
                        "the pages of address 0x" + Long.toHexString(run.address) + " (file offset " + run.fileOffset
                                + ") have a wrong checksum");
            }
        }
    }

    @Override
    public void close() {
        try {
            channel.close();
        } catch (IOException e) {
            throw ImageException.reading("close", file, e);
        }
    }

    private static ByteBuffer little(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static int crc(ByteBuffer buffer, int length) {
        return Crc32c.of(buffer.array(), 0, length);
    }

    private static boolean startsWith(ByteBuffer buffer, int at, byte[] magic) {
        for (int i = 0; i < magic.length; i++) {
            if (buffer.get(at + i) != magic[i]) {
                return false;
            }
        }
        return true;
    }

    /** Writes a page file front to back. Not for use by two threads. Without {@link #finish} the file is no page file. */
    public static final class Writer implements AutoCloseable {
        private final Path file;
        private final FileChannel channel;
        private final List<Run> runs = new ArrayList<>();
        private final int headerCrc;
        private int whole;
        private long offset;
        private boolean finished;

        private Writer(Path file, FileChannel channel) {
            this.file = file;
            this.channel = channel;
            ByteBuffer header = little(PAGE);
            header.put(MAGIC).putInt(FormatVersion.CURRENT).rewind();
            headerCrc = put(header);
        }

        /**
         * Appends whole pages that belong at {@code address}: all that remains in the buffer, best a direct one.
         *
         * @throws IllegalArgumentException when these are no whole pages, or belong before the end of the run before
         */
        public void append(long address, ByteBuffer data) {
            int length = data.remaining();
            if (length == 0 || length % PAGE != 0 || address % PAGE != 0) {
                throw new IllegalArgumentException(
                        length + " bytes at 0x" + Long.toHexString(address) + " are no whole pages");
            }
            if (!runs.isEmpty() && Long.compareUnsigned(address, runs.getLast().end()) < 0) {
                throw new IllegalArgumentException("pages at 0x" + Long.toHexString(address)
                        + " cannot follow those that end at 0x"
                        + Long.toHexString(runs.getLast().end()));
            }
            long at = offset;
            runs.add(new Run(address, length / PAGE, at, put(data)));
        }

        /** Writes behind what there is. Returns the checksum of these bytes. */
        private int put(ByteBuffer data) {
            if (finished) {
                throw new IllegalStateException(file + " is finished");
            }
            int length = data.remaining();
            int crc = Crc32c.of(data);
            PrivateFiles.writeFully(channel, data, offset, file);
            whole = Crc32c.combine(whole, crc, length);
            offset += length;
            return crc;
        }

        /** Writes index and footer. Nothing may be appended afterwards. */
        public FileSummary finish() {
            long indexOffset = offset;
            if (runs.size() > LONGEST_INDEX / ENTRY) {
                throw new ImageWriteException(
                        "cannot write " + file + ": " + runs.size() + " runs of pages are too many");
            }
            ByteBuffer index = little(runs.size() * ENTRY);
            for (Run run : runs) {
                index.putLong(run.address).putInt(run.pages).putInt(run.crc).putLong(run.fileOffset);
            }
            int indexCrc = put(index.flip());
            ByteBuffer footer = little(FOOTER);
            footer.putLong(indexOffset)
                    .putLong(runs.size())
                    .putLong((indexOffset - PAGE) / PAGE)
                    .putInt(indexCrc)
                    .putInt(headerCrc);
            footer.putInt(FOOTER_CRC, crc(footer, FOOTER_CRC));
            footer.put(FOOTER - END_MAGIC.length, END_MAGIC);
            put(footer.rewind());
            finished = true;
            return new FileSummary(offset, whole);
        }

        @Override
        public void close() {
            try {
                channel.close();
            } catch (IOException e) {
                throw ImageWriteException.writing("close", file, e);
            }
        }
    }
}
