package io.stasis.image.log;

import io.stasis.image.FileSummary;
import io.stasis.image.FormatVersion;
import io.stasis.image.ImageException;
import io.stasis.image.ImageWriteException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * An append-only log of events in one file, written by one process.
 *
 * <pre>
 *   file:    magic "STASISL1" (8), format version (4), zero (4), then frames
 *   frame:   length of the body (4), number of records (4), CRC-32C of the body (4), CRC-32C of these 12 bytes (4),
 *            body: records one behind the other
 *   record:  length of the rest (4), sequence (8), wall clock nanoseconds since 1970 (8), CLOCK_MONOTONIC nanoseconds (8),
 *            sequence within the entity (8), generation (4), entity (2 + n), type (2 + n), payload (4 + n),
 *            chain (32): SHA-256 over the chain of the record before and this record up to here
 * </pre>
 *
 * <p>Numbers are little-endian, texts UTF-8 with their length before them. A frame is what was appended at once: after a
 * crash it is there as a whole or not at all. A torn tail is what the end of the file cuts off, or what reads as zeros to
 * the end because its last pages did not reach the disk: it is cut away when the log is opened for writing, and reported.
 * A byte that was changed, and a record that was removed, moved or put in, breaks a checksum or the chain and is named.
 *
 * <p>One append is one write(2). Appends are not forced to disk until {@link #force}. Safe for use by several threads.
 */
public final class EventLog implements AutoCloseable {
    private static final byte[] MAGIC = {'S', 'T', 'A', 'S', 'I', 'S', 'L', '1'};
    private static final int HEADER = 16;
    private static final int PAGE = 4096;
    /** Bytes that are read at a time. */
    private static final int WINDOW = 256 << 10;
    /** Records of a slice that are written at a time. */
    private static final int SLICE_FRAME = 512;

    /** What is to be appended. */
    public record Draft(String entity, long entitySequence, int generation, String type, byte[] payload) {}

    /**
     * One record.
     *
     * @param sequence number in the log, from 1
     * @param entitySequence number within its entity, from 1
     * @param generation generation it belongs to, 0 for none
     * @param chain hash that covers all records up to this one
     */
    public record Entry(
            long sequence,
            long wallNanos,
            long monotonicNanos,
            String entity,
            long entitySequence,
            int generation,
            String type,
            byte[] payload,
            byte[] chain) {}

    /**
     * @param records complete ones that were found
     * @param bytes of a torn tail behind them, 0 when there was none
     */
    public record Recovery(long records, long bytes) {}

    private final Path file;
    private final LogFile bytes;
    private final boolean writable;
    private final Recovery recovery;
    private LogFrame.Link last = LogFrame.Link.FIRST;
    private long end = HEADER;
    private boolean torn;

    private EventLog(Path file, LogFile bytes, boolean writable, Consumer<Entry> each) throws IOException {
        this.file = file;
        this.bytes = bytes;
        this.writable = writable;
        if (writable && bytes.size() < HEADER) {
            bytes.truncate(0);
            bytes.write(
                    LogFrame.little(HEADER)
                            .put(MAGIC)
                            .putInt(FormatVersion.CURRENT)
                            .rewind(),
                    0);
        }
        checkHeader();
        long size = bytes.size();
        scan(size, each);
        recovery = new Recovery(last.sequence(), size - end);
        if (writable && end < size) {
            bytes.truncate(end);
            bytes.force();
        }
    }

    /** Opens for appending, creating it when it does not exist. */
    public static EventLog open(Path file) {
        return open(file, entry -> {});
    }

    /** Opens for appending and shows every record there is, in one pass. */
    public static EventLog open(Path file, Consumer<Entry> each) {
        return open(file, true, each);
    }

    /** Opens for reading, also while another process appends; a torn tail is left out, and reported. */
    public static EventLog openReadOnly(Path file) {
        return openReadOnly(file, entry -> {});
    }

    /** Opens for reading and shows every record there is, in one pass. */
    public static EventLog openReadOnly(Path file, Consumer<Entry> each) {
        return open(file, false, each);
    }

    private static EventLog open(Path file, boolean writable, Consumer<Entry> each) {
        try {
            LogFile bytes = LogFile.open(file, writable);
            try {
                return new EventLog(file, bytes, writable, each);
            } catch (RuntimeException | IOException e) {
                bytes.close();
                throw e;
            }
        } catch (IOException e) {
            throw writable
                    ? ImageWriteException.writing("open the event log", file, e)
                    : ImageException.reading("open the event log", file, e);
        }
    }

    private void checkHeader() throws IOException {
        ByteBuffer header = LogFrame.little(HEADER);
        bytes.read(header, 0);
        if (!Arrays.equals(header.array(), 0, MAGIC.length, MAGIC, 0, MAGIC.length)
                || header.getInt(12) != 0
                || header.hasRemaining()) {
            throw damaged("it does not begin like an event log");
        }
        FormatVersion.check(header.getInt(MAGIC.length), file.toString());
    }

    /** Shows the records of the frames from {@code end} on and moves it behind the last complete one. */
    private void scan(long size, Consumer<Entry> each) throws IOException {
        Window window = new Window(size);
        while (size - end >= LogFrame.HEADER) {
            ByteBuffer header =
                    ByteBuffer.wrap(window.read(end, LogFrame.HEADER)).order(ByteOrder.LITTLE_ENDIAN);
            if (!LogFrame.isHeader(header)) {
                if (isUnwritten(end + LogFrame.HEADER, size)) {
                    return;
                }
                throw damaged(
                        "the frame at byte " + end + ", after record " + last.sequence() + ", has a wrong header");
            }
            long next = end + LogFrame.HEADER + LogFrame.bodyLength(header);
            if (next > size) {
                return;
            }
            byte[] body = window.read(end + LogFrame.HEADER, LogFrame.bodyLength(header));
            if (!LogFrame.isIntact(header, body)) {
                // Whoever reads only cannot tell a last frame that a crash tore from one that was altered.
                if (next == size && writable || isUnwritten(next, size)) {
                    return;
                }
                throw damaged(
                        "the frame at byte " + end + ", after record " + last.sequence() + ", has a wrong checksum");
            }
            List<Entry> entries;
            try {
                entries = LogFrame.decode(header, body, last);
            } catch (LogFrame.BrokenFrameException e) {
                throw damaged(e.getMessage());
            }
            last = LogFrame.Link.of(entries.getLast());
            end = next;
            entries.forEach(each);
        }
    }

    /**
     * Whether the file is zero to its end from before {@code frameEnd} on: the file system had room for the frame, but a
     * crash came before its last pages, and all pages behind them, were written.
     */
    private boolean isUnwritten(long frameEnd, long size) throws IOException {
        long zeroFrom = Math.min(frameEnd, size) - 1;
        zeroFrom = Math.max(end, zeroFrom - zeroFrom % PAGE);
        Window window = new Window(size);
        for (long at = zeroFrom; at < size; at += WINDOW) {
            for (byte b : window.read(at, (int) Math.min(WINDOW, size - at))) {
                if (b != 0) {
                    return false;
                }
            }
        }
        return true;
    }

    /** Reads the file in large pieces, as far as it was long when the window was opened. */
    private final class Window {
        private final long size;
        private long from;
        private byte[] held = new byte[0];

        Window(long size) {
            this.size = size;
        }

        byte[] read(long at, int length) throws IOException {
            if (at < from || at + length > from + held.length) {
                ByteBuffer piece = ByteBuffer.allocate((int) Math.min(Math.max(length, WINDOW), size - at));
                bytes.read(piece, at);
                if (piece.position() < length) {
                    throw damaged("it ends at byte " + (at + piece.position()));
                }
                from = at;
                held = Arrays.copyOf(piece.array(), piece.position());
            }
            int start = (int) (at - from);
            return Arrays.copyOfRange(held, start, start + length);
        }
    }

    /** Appends one record. */
    public Entry append(Draft draft) {
        return append(List.of(draft)).getFirst();
    }

    /** Appends records at once: after a crash all of them are there or none. */
    public synchronized List<Entry> append(List<Draft> drafts) {
        long[] wall = new long[drafts.size()];
        long[] monotonic = new long[drafts.size()];
        Arrays.fill(wall, wallClock());
        Arrays.fill(monotonic, System.nanoTime());
        return append(drafts, wall, monotonic);
    }

    private List<Entry> append(List<Draft> drafts, long[] wall, long[] monotonic) {
        if (!writable) {
            throw new IllegalStateException(file + " is open for reading only");
        }
        if (drafts.isEmpty()) {
            return List.of();
        }
        LogFrame.Encoded encoded;
        try {
            encoded = LogFrame.encode(drafts, wall, monotonic, last);
        } catch (IllegalArgumentException e) {
            throw new ImageWriteException("cannot append to the event log " + file + ": " + e.getMessage());
        }
        int length = encoded.frame().remaining();
        try {
            if (torn) {
                bytes.truncate(end);
                torn = false;
            }
            torn = true;
            bytes.write(encoded.frame(), end);
            torn = false;
        } catch (IOException e) {
            cutBack();
            throw ImageWriteException.writing("append at byte " + end + " of the event log", file, e);
        }
        end += length;
        last = LogFrame.Link.of(encoded.entries().getLast());
        return encoded.entries();
    }

    /** Takes back a frame that could not be written whole. When that fails too, the next append or opening does it. */
    private void cutBack() {
        try {
            bytes.truncate(end);
            torn = false;
        } catch (IOException e) {
            torn = true;
        }
    }

    private static long wallClock() {
        var now = java.time.Instant.now();
        return TimeUnit.SECONDS.toNanos(now.getEpochSecond()) + now.getNano();
    }

    /** Forces everything appended so far to the disk. */
    public void force() {
        try {
            bytes.force();
        } catch (IOException e) {
            throw ImageWriteException.writing("force to disk the event log", file, e);
        }
    }

    /** All records from {@code from} on, in order, as far as they are written now. */
    public List<Entry> read(long from) {
        List<Entry> entries = new ArrayList<>();
        openReadOnly(file, entry -> {
                    if (entry.sequence >= from) {
                        entries.add(entry);
                    }
                })
                .close();
        return entries;
    }

    /** Shows records that were appended by another process since the last look. */
    public synchronized void poll(Consumer<Entry> each) {
        if (writable) {
            throw new IllegalStateException("only a log that is open for reading can be polled");
        }
        try {
            scan(bytes.size(), each);
        } catch (IOException e) {
            throw ImageException.reading("read the event log", file, e);
        }
    }

    /**
     * A slice that has been written.
     *
     * @param head hash of its last record
     */
    public record Slice(byte[] head, FileSummary summary) {}

    /**
     * Writes records of a log to a new one, the slice that a generation keeps: with their times, numbered from 1 on. It is
     * not forced to disk: whoever commits the generation does that.
     */
    public static Slice writeSlice(Path target, List<Entry> entries) {
        try (EventLog slice = open(target)) {
            for (int from = 0; from < entries.size(); from += SLICE_FRAME) {
                slice.copy(entries.subList(from, Math.min(entries.size(), from + SLICE_FRAME)));
            }
            return new Slice(slice.head(), FileSummary.of(target));
        }
    }

    private synchronized void copy(List<Entry> entries) {
        List<Draft> drafts = entries.stream()
                .map(e -> new Draft(e.entity, e.entitySequence, e.generation, e.type, e.payload))
                .toList();
        append(
                drafts,
                entries.stream().mapToLong(Entry::wallNanos).toArray(),
                entries.stream().mapToLong(Entry::monotonicNanos).toArray());
    }

    public synchronized long lastSequence() {
        return last.sequence();
    }

    /** Hash of the last record; zeroes for an empty log. */
    public synchronized byte[] head() {
        return last.chain().clone();
    }

    /** Size in bytes. */
    public synchronized long size() {
        return end;
    }

    /** False once it was closed. */
    public boolean isOpen() {
        return bytes.isOpen();
    }

    /** What was found when it was opened. */
    public Recovery recovered() {
        return recovery;
    }

    public Path file() {
        return file;
    }

    @Override
    public void close() {
        try {
            bytes.close();
        } catch (IOException e) {
            throw ImageException.reading("close the event log", file, e);
        }
    }

    private ImageException damaged(String what) {
        return new ImageException(
                file + " is damaged: " + what + (writable ? "; move it away, and a new one is begun" : ""));
    }
}
