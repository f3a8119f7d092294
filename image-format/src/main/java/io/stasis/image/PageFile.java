package io.stasis.image;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

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
 * Numbers are little-endian. Addresses ascend; runs do not overlap.
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

    /**
     * Consecutive pages.
     *
     * @param address of the first page
     * @param fileOffset where they lie in the file, page aligned
     * @param crc CRC-32C of all of them
     */
    public record Run(long address, int pages, long fileOffset, int crc) {}

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
            throw e instanceof IOException io ? ImageException.io("read", file, io) : (RuntimeException) e;
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
        if (indexOffset < PAGE || count < 0 || count > size / ENTRY || indexOffset + count * ENTRY + FOOTER != size) {
            throw ImageException.damaged(file, "its index does not fit");
        }
        ByteBuffer index = little((int) (count * ENTRY));
        PrivateFiles.readFully(channel, index, indexOffset, file);
        if (crc(index, index.capacity()) != footer.getInt(24)) {
            throw ImageException.damaged(file, "the checksum of its index is wrong");
        }
        return parse(file, index, indexOffset);
    }

    private static List<Run> parse(Path file, ByteBuffer index, long indexOffset) {
        List<Run> runs = new ArrayList<>(index.capacity() / ENTRY);
        long expected = PAGE;
        for (int at = 0; at < index.capacity(); at += ENTRY) {
            Run run = new Run(index.getLong(at), index.getInt(at + 8), index.getLong(at + 16), index.getInt(at + 12));
            if (run.pages <= 0 || run.fileOffset != expected) {
                throw ImageException.damaged(file, "entry " + at / ENTRY + " of its index is wrong");
            }
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

    /** Reads every page and checks it. */
    public void verify() {
        ByteBuffer buffer = ByteBuffer.allocateDirect(CHUNK);
        for (Run run : runs) {
            CRC32C crc = new CRC32C();
            long done = 0;
            long length = (long) run.pages * PAGE;
            while (done < length) {
                buffer.clear().limit((int) Math.min(CHUNK, length - done));
                PrivateFiles.readFully(channel, buffer, run.fileOffset + done, file);
                done += buffer.position();
                crc.update(buffer.flip());
            }
            if ((int) crc.getValue() != run.crc) {
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
            throw ImageException.io("close", file, e);
        }
    }

    private static ByteBuffer little(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static int crc(ByteBuffer buffer, int length) {
        CRC32C crc = new CRC32C();
        crc.update(buffer.array(), 0, length);
        return (int) crc.getValue();
    }

    private static boolean startsWith(ByteBuffer buffer, int at, byte[] magic) {
        for (int i = 0; i < magic.length; i++) {
            if (buffer.get(at + i) != magic[i]) {
                return false;
            }
        }
        return true;
    }

    /** Writes a page file front to back. Not for use by two threads. */
    public static final class Writer implements AutoCloseable {
        private final Path file;
        private final FileChannel channel;
        private final List<Run> runs = new ArrayList<>();
        private final CRC32C whole = new CRC32C();
        private final CRC32C run = new CRC32C();
        private final int headerCrc;
        private long offset;
        private long pages;

        private Writer(Path file, FileChannel channel) {
            this.file = file;
            this.channel = channel;
            ByteBuffer header = little(PAGE);
            header.put(MAGIC).putInt(FormatVersion.CURRENT).rewind();
            headerCrc = crc(header, PAGE);
            put(header);
        }

        /** Appends whole pages that belong at {@code address}: all that remains in the buffer, best a direct one. */
        public void append(long address, ByteBuffer data) {
            int length = data.remaining();
            if (length == 0 || length % PAGE != 0) {
                throw new IllegalArgumentException(length + " bytes are no whole pages");
            }
            run.reset();
            run.update(data.duplicate());
            runs.add(new Run(address, length / PAGE, offset, (int) run.getValue()));
            pages += length / PAGE;
            put(data);
        }

        private void put(ByteBuffer data) {
            whole.update(data.duplicate());
            offset += data.remaining();
            PrivateFiles.writeFully(channel, data, file);
        }

        /** Writes index and footer. Nothing may be appended afterwards. */
        public FileSummary finish() {
            long indexOffset = offset;
            ByteBuffer index = little(runs.size() * ENTRY);
            for (Run entry : runs) {
                index.putLong(entry.address)
                        .putInt(entry.pages)
                        .putInt(entry.crc)
                        .putLong(entry.fileOffset);
            }
            int indexCrc = crc(index, index.capacity());
            put(index.flip());
            ByteBuffer footer = little(FOOTER);
            footer.putLong(indexOffset)
                    .putLong(runs.size())
                    .putLong(pages)
                    .putInt(indexCrc)
                    .putInt(headerCrc);
            footer.putInt(FOOTER_CRC, crc(footer, FOOTER_CRC));
            footer.put(FOOTER - END_MAGIC.length, END_MAGIC);
            put(footer.rewind());
            return new FileSummary(offset, (int) whole.getValue());
        }

        @Override
        public void close() {
            try {
                channel.close();
            } catch (IOException e) {
                throw ImageException.io("close", file, e);
            }
        }
    }
}
