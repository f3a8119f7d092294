package io.stasis.image.log;

import io.stasis.image.FileSummary;
import io.stasis.image.FormatVersion;
import io.stasis.image.ImageException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.zip.CRC32C;

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
 * crash it is there as a whole or not at all. A frame that the file's end cuts off is a torn tail: it is cut away when the
 * log is opened for writing, and reported. A byte that was changed, and a record that was removed, moved or put in, breaks
 * a checksum or the chain and is named.
 *
 * <p>Safe for use by several threads. Appends are not forced to disk until {@link #force}.
 */
public final class EventLog implements AutoCloseable {
    private static final byte[] MAGIC = {'S', 'T', 'A', 'S', 'I', 'S', 'L', '1'};
    private static final int HEADER = 16;
    private static final int FRAME_HEADER = 16;
    private static final int CHAIN = 32;
    private static final int LONGEST_FRAME = 256 << 20;

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

    /** @param bytes bytes of a torn tail that were cut away, 0 when there was none */
    public record Recovery(long records, long bytes) {}

    private final Path file;
    private final FileChannel channel;
    private final boolean writable;
    private final Recovery recovery;
    private final MessageDigest digest = sha256();
    private long sequence;
    private byte[] head;
    private long end;

    private EventLog(Path file, FileChannel channel, boolean writable, Consumer<Entry> each) throws IOException {
        this.file = file;
        this.channel = channel;
        this.writable = writable;
        this.head = new byte[CHAIN];
        if (writable && channel.size() < HEADER) {
            channel.truncate(0);
            ByteBuffer header =
                    little(HEADER).put(MAGIC).putInt(FormatVersion.CURRENT).rewind();
            writeFully(header, 0);
        }
        checkHeader();
        long size = channel.size();
        end = scan(HEADER, size, each);
        recovery = new Recovery(sequence, size - end);
        if (writable && end < size) {
            channel.truncate(end);
            channel.force(true);
        }
    }

    /** Opens for appending, creating it when it does not exist. */
    public static EventLog open(Path file) {
        return open(file, entry -> {});
    }

    /** Opens for appending and shows every record there is, in one pass. */
    public static EventLog open(Path file, Consumer<Entry> each) {
        try {
            FileChannel channel = FileChannel.open(
                    file,
                    Set.of(StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE),
                    PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
            return opened(file, channel, true, each);
        } catch (IOException e) {
            throw failure("open", file, e);
        }
    }

    /** Opens for reading, also while another process appends; a torn tail is ignored. */
    public static EventLog openReadOnly(Path file) {
        return openReadOnly(file, entry -> {});
    }

    public static EventLog openReadOnly(Path file, Consumer<Entry> each) {
        try {
            return opened(file, FileChannel.open(file, StandardOpenOption.READ), false, each);
        } catch (IOException e) {
            throw failure("open", file, e);
        }
    }

    private static EventLog opened(Path file, FileChannel channel, boolean writable, Consumer<Entry> each)
            throws IOException {
        try {
            return new EventLog(file, channel, writable, each);
        } catch (RuntimeException | IOException e) {
            channel.close();
            throw e;
        }
    }

    private void checkHeader() throws IOException {
        ByteBuffer header = little(HEADER);
        readFully(header, 0);
        if (!Arrays.equals(Arrays.copyOf(header.array(), MAGIC.length), MAGIC) || header.getInt(12) != 0) {
            throw damaged("it does not begin like an event log");
        }
        int version = header.getInt(MAGIC.length);
        if (version != FormatVersion.CURRENT) {
            throw new ImageException(file + " has log format " + version + " and this version of Stasis reads "
                    + FormatVersion.CURRENT + "; use the version of Stasis that wrote it");
        }
    }

    /** Reads frames from {@code from} on. Returns where the last complete one ends. */
    private long scan(long from, long size, Consumer<Entry> each) throws IOException {
        long at = from;
        while (size - at >= FRAME_HEADER) {
            ByteBuffer header = little(FRAME_HEADER);
            readFully(header, at);
            int length = header.getInt(0);
            if (crc(header.array(), 12) != header.getInt(12)) {
                if (isAllZero(header)) {
                    return at; // a tail that the file system extended but never filled
                }
                throw damaged("the frame at byte " + at + ", after record " + sequence + ", has a wrong header");
            }
            if (length < 0 || length > LONGEST_FRAME) {
                throw damaged("the frame at byte " + at + " claims " + length + " bytes");
            }
            if (size - at - FRAME_HEADER < length) {
                return at;
            }
            ByteBuffer body = little(length);
            readFully(body, at + FRAME_HEADER);
            if (crc(body.array(), length) != header.getInt(8)) {
                if (at + FRAME_HEADER + length == size && writable) {
                    return at; // the last frame, whose bytes did not all reach the disk
                }
                throw damaged("the frame at byte " + at + ", after record " + sequence + ", has a wrong checksum");
            }
            parseFrame(body.rewind(), header.getInt(4), at, each);
            at += FRAME_HEADER + length;
        }
        return at;
    }

    private static boolean isAllZero(ByteBuffer buffer) {
        for (byte b : buffer.array()) {
            if (b != 0) {
                return false;
            }
        }
        return true;
    }

    private void parseFrame(ByteBuffer body, int records, long at, Consumer<Entry> each) {
        try {
            for (int i = 0; i < records; i++) {
                int start = body.position();
                int length = body.getInt();
                long number = body.getLong();
                long wall = body.getLong();
                long monotonic = body.getLong();
                long entitySequence = body.getLong();
                int generation = body.getInt();
                String entity = text(body);
                String type = text(body);
                byte[] payload = new byte[body.getInt()];
                body.get(payload);
                byte[] expected = chain(body.array(), start, body.position() - start);
                byte[] chain = new byte[CHAIN];
                body.get(chain);
                if (body.position() - start - 4 != length || !Arrays.equals(chain, expected)) {
                    throw damaged("record " + number + " of " + entity
                            + " does not follow the record before it: one was removed, moved, added or altered");
                }
                if (number != sequence + 1) {
                    throw damaged("record " + number + " follows record " + sequence);
                }
                sequence = number;
                head = chain;
                each.accept(
                        new Entry(number, wall, monotonic, entity, entitySequence, generation, type, payload, chain));
            }
        } catch (java.nio.BufferUnderflowException | NegativeArraySizeException e) {
            throw damaged("the frame at byte " + at + " does not hold the " + records + " records it claims");
        }
    }

    private static String text(ByteBuffer body) {
        byte[] bytes = new byte[Short.toUnsignedInt(body.getShort())];
        body.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private byte[] chain(byte[] bytes, int from, int length) {
        digest.update(head);
        digest.update(bytes, from, length);
        return digest.digest();
    }

    /** Appends one record. */
    public Entry append(Draft draft) {
        return append(List.of(draft)).getFirst();
    }

    /** Appends records at once: after a crash all of them are there or none. */
    public List<Entry> append(List<Draft> drafts) {
        long[] wall = new long[drafts.size()];
        long[] monotonic = new long[drafts.size()];
        Arrays.fill(wall, wallClock());
        Arrays.fill(monotonic, System.nanoTime());
        return append(drafts, wall, monotonic);
    }

    private synchronized List<Entry> append(List<Draft> drafts, long[] wall, long[] monotonic) {
        int room = 0;
        List<byte[][]> texts = new ArrayList<>(drafts.size());
        for (Draft draft : drafts) {
            byte[][] text = {draft.entity.getBytes(StandardCharsets.UTF_8), draft.type.getBytes(StandardCharsets.UTF_8)
            };
            texts.add(text);
            room += 4 + 8 * 4 + 4 + 2 + text[0].length + 2 + text[1].length + 4 + draft.payload.length + CHAIN;
        }
        if (room > LONGEST_FRAME) {
            throw new ImageException("cannot log " + room + " bytes at once in " + file);
        }
        ByteBuffer out = little(FRAME_HEADER + room);
        out.position(FRAME_HEADER);
        List<Entry> entries = new ArrayList<>(drafts.size());
        byte[] oldHead = head;
        for (int i = 0; i < drafts.size(); i++) {
            Draft d = drafts.get(i);
            byte[][] text = texts.get(i);
            int start = out.position();
            int length = 8 * 4 + 4 + 2 + text[0].length + 2 + text[1].length + 4 + d.payload.length + CHAIN;
            long number = sequence + 1 + i;
            out.putInt(length).putLong(number).putLong(wall[i]).putLong(monotonic[i]);
            out.putLong(d.entitySequence).putInt(d.generation);
            out.putShort((short) text[0].length).put(text[0]);
            out.putShort((short) text[1].length).put(text[1]);
            out.putInt(d.payload.length).put(d.payload);
            head = chain(out.array(), start, out.position() - start);
            out.put(head);
            entries.add(new Entry(
                    number, wall[i], monotonic[i], d.entity, d.entitySequence, d.generation, d.type, d.payload, head));
        }
        CRC32C body = new CRC32C();
        body.update(out.array(), FRAME_HEADER, room);
        out.putInt(0, room).putInt(4, drafts.size()).putInt(8, (int) body.getValue());
        out.putInt(12, crc(out.array(), 12));
        try {
            writeFully(out.rewind(), end);
        } catch (IOException e) {
            head = oldHead;
            cutBack();
            throw failure("append to", file, e);
        }
        end += FRAME_HEADER + room;
        sequence += drafts.size();
        return entries;
    }

    /** Takes back a frame that could not be written whole. */
    private void cutBack() {
        try {
            channel.truncate(end);
        } catch (IOException e) {
            // Opening cuts the torn tail away too.
            return;
        }
    }

    private static long wallClock() {
        var now = java.time.Instant.now();
        return TimeUnit.SECONDS.toNanos(now.getEpochSecond()) + now.getNano();
    }

    /** Forces everything appended so far to the disk. */
    public void force() {
        try {
            channel.force(false);
        } catch (IOException e) {
            throw failure("force to disk", file, e);
        }
    }

    /** All records from {@code from} on, in order, as far as they are written now. */
    public List<Entry> read(long from) {
        List<Entry> entries = new ArrayList<>();
        EventLog reader = openReadOnly(file, entry -> {
            if (entry.sequence >= from) {
                entries.add(entry);
            }
        });
        reader.close();
        return entries;
    }

    /** Shows records that were appended by another process since the last look. */
    public synchronized void poll(Consumer<Entry> each) {
        if (writable) {
            throw new IllegalStateException("only a log that is open for reading can be polled");
        }
        try {
            end = scan(end, channel.size(), each);
        } catch (IOException e) {
            throw failure("read", file, e);
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
            slice.copy(entries);
            return new Slice(slice.head(), FileSummary.of(target));
        }
    }

    private synchronized void copy(List<Entry> entries) {
        List<Draft> drafts = entries.stream()
                .map(e -> new Draft(e.entity, e.entitySequence, e.generation, e.type, e.payload))
                .toList();
        if (!drafts.isEmpty()) {
            append(
                    drafts,
                    entries.stream().mapToLong(Entry::wallNanos).toArray(),
                    entries.stream().mapToLong(Entry::monotonicNanos).toArray());
        }
    }

    public synchronized long lastSequence() {
        return sequence;
    }

    /** Hash of the last record; zeroes for an empty log. */
    public synchronized byte[] head() {
        return head.clone();
    }

    /** Size in bytes. */
    public synchronized long size() {
        return end;
    }

    /** False once it was closed, or broken by an interrupt. */
    public boolean isOpen() {
        return channel.isOpen();
    }

    public Recovery recovered() {
        return recovery;
    }

    public Path file() {
        return file;
    }

    @Override
    public void close() {
        try {
            channel.close();
        } catch (IOException e) {
            throw failure("close", file, e);
        }
    }

    private void writeFully(ByteBuffer bytes, long offset) throws IOException {
        long at = offset;
        while (bytes.hasRemaining()) {
            at += channel.write(bytes, at);
        }
    }

    private void readFully(ByteBuffer target, long offset) throws IOException {
        long at = offset;
        while (target.hasRemaining()) {
            int got = channel.read(target, at);
            if (got < 0) {
                throw damaged("it ends at byte " + at);
            }
            at += got;
        }
    }

    private static ByteBuffer little(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static int crc(byte[] bytes, int length) {
        CRC32C crc = new CRC32C();
        crc.update(bytes, 0, length);
        return (int) crc.getValue();
    }

    private ImageException damaged(String what) {
        return new ImageException(file + " is damaged: " + what);
    }

    private static ImageException failure(String doing, Path file, IOException e) {
        return new ImageException("cannot " + doing + " the event log " + file + ": " + e.getMessage(), e);
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }
}
