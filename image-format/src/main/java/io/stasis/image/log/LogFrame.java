package io.stasis.image.log;

import io.stasis.image.log.EventLog.Draft;
import io.stasis.image.log.EventLog.Entry;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import java.util.zip.CRC32C;

/**
 * Events as the bytes of a frame and back, see {@link EventLog} for the picture. Each record is bound to the one before
 * it by {@link Link}.
 */
final class LogFrame {
    /** Bytes before the body. */
    static final int HEADER = 16;
    /** Longest body in bytes. */
    static final int LONGEST = 256 << 20;

    private static final int CHAIN = 32;
    private static final int LONGEST_TEXT = 0xffff;
    /** A record without its texts and payload, but with their lengths. */
    private static final int FIXED = 4 + 4 * 8 + 4 + 2 + 2 + 4 + CHAIN;

    private static final ThreadLocal<MessageDigest> DIGEST = ThreadLocal.withInitial(LogFrame::sha256);

    private LogFrame() {}

    /** The last record of a chain: its number and hash. */
    record Link(long sequence, byte[] chain) {
        static final Link FIRST = new Link(0, new byte[CHAIN]);

        static Link of(Entry entry) {
            return new Link(entry.sequence(), entry.chain());
        }
    }

    /** A frame is not what it should be; the message says what is wrong, without the file. */
    static final class BrokenFrameException extends Exception {
        BrokenFrameException(String message) {
            super(message);
        }
    }

    /** @param frame header and body, ready to be written */
    record Encoded(ByteBuffer frame, List<Entry> entries) {}

    /** @throws IllegalArgumentException when the drafts do not fit into a frame */
    static Encoded encode(List<Draft> drafts, long[] wallNanos, long[] monotonicNanos, Link last) {
        List<byte[]> entities = new ArrayList<>(drafts.size());
        List<byte[]> types = new ArrayList<>(drafts.size());
        long room = 0;
        for (Draft draft : drafts) {
            entities.add(bytes("entity", draft.entity()));
            types.add(bytes("type", draft.type()));
            room += FIXED + entities.getLast().length + types.getLast().length + draft.payload().length;
        }
        if (room > LONGEST) {
            throw new IllegalArgumentException(room + " bytes at once are more than " + LONGEST);
        }
        ByteBuffer out = little(HEADER + (int) room).position(HEADER);
        List<Entry> entries = new ArrayList<>(drafts.size());
        byte[] chain = last.chain;
        for (int i = 0; i < drafts.size(); i++) {
            Draft draft = drafts.get(i);
            byte[] entity = entities.get(i);
            byte[] type = types.get(i);
            long sequence = last.sequence + 1 + i;
            int start = out.position();
            out.putInt(FIXED - 4 + entity.length + type.length + draft.payload().length)
                    .putLong(sequence)
                    .putLong(wallNanos[i])
                    .putLong(monotonicNanos[i])
                    .putLong(draft.entitySequence())
                    .putInt(draft.generation());
            out.putShort((short) entity.length).put(entity);
            out.putShort((short) type.length).put(type);
            out.putInt(draft.payload().length).put(draft.payload());
            chain = hash(chain, out.array(), start, out.position() - start);
            out.put(chain);
            entries.add(new Entry(
                    sequence,
                    wallNanos[i],
                    monotonicNanos[i],
                    draft.entity(),
                    draft.entitySequence(),
                    draft.generation(),
                    draft.type(),
                    draft.payload(),
                    chain));
        }
        out.putInt(0, (int) room).putInt(4, drafts.size()).putInt(8, crc(out.array(), HEADER, (int) room));
        out.putInt(12, crc(out.array(), 0, 12));
        return new Encoded(out.rewind(), entries);
    }

    private static byte[] bytes(String what, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        if (bytes.length > LONGEST_TEXT) {
            throw new IllegalArgumentException(
                    "the name of an " + what + " of " + bytes.length + " bytes is longer than " + LONGEST_TEXT);
        }
        return bytes;
    }

    /** Whether the 16 bytes are a frame's header. */
    static boolean isHeader(ByteBuffer header) {
        int length = header.getInt(0);
        return crc(header.array(), 0, 12) == header.getInt(12)
                && length >= FIXED
                && length <= LONGEST
                && header.getInt(4) > 0
                && header.getInt(4) <= length / FIXED;
    }

    static int bodyLength(ByteBuffer header) {
        return header.getInt(0);
    }

    /** Whether the checksum in the header is that of the body. */
    static boolean isIntact(ByteBuffer header, byte[] body) {
        return crc(body, 0, body.length) == header.getInt(8);
    }

    /** The records of an intact body, that follow {@code last}. */
    static List<Entry> decode(ByteBuffer header, byte[] body, Link last) throws BrokenFrameException {
        ByteBuffer in = ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN);
        int records = header.getInt(4);
        List<Entry> entries = new ArrayList<>(records);
        Link link = last;
        try {
            for (int i = 0; i < records; i++) {
                Entry entry = record(in, link);
                entries.add(entry);
                link = Link.of(entry);
            }
        } catch (BufferUnderflowException e) {
            throw new BrokenFrameException(
                    "the frame after record " + link.sequence + " does not hold the " + records + " records it claims");
        }
        if (in.hasRemaining()) {
            throw new BrokenFrameException(
                    "the frame that ends with record " + link.sequence + " is longer than its records");
        }
        return entries;
    }

    private static Entry record(ByteBuffer in, Link last) throws BrokenFrameException {
        int start = in.position();
        int length = in.getInt(start);
        Entry entry = record(in);
        if (in.position() - start - 4 != length
                || entry.sequence() != last.sequence + 1
                || !Arrays.equals(entry.chain(), hash(last.chain, in.array(), start, in.position() - start - CHAIN))) {
            throw new BrokenFrameException("record " + entry.sequence() + " of " + entry.entity()
                    + " does not follow record " + last.sequence
                    + ": a record was removed, moved, added or altered");
        }
        return entry;
    }

    /** A record as it stands, whatever its hash. */
    private static Entry record(ByteBuffer in) {
        in.getInt();
        long sequence = in.getLong();
        long wallNanos = in.getLong();
        long monotonicNanos = in.getLong();
        long entitySequence = in.getLong();
        int generation = in.getInt();
        String entity = new String(take(in, Short.toUnsignedInt(in.getShort())), StandardCharsets.UTF_8);
        String type = new String(take(in, Short.toUnsignedInt(in.getShort())), StandardCharsets.UTF_8);
        byte[] payload = take(in, in.getInt());
        byte[] chain = take(in, CHAIN);
        return new Entry(sequence, wallNanos, monotonicNanos, entity, entitySequence, generation, type, payload, chain);
    }

    /** The records of a body as they stand, whatever its checksum; false when they do not fill it exactly. */
    static boolean read(ByteBuffer header, byte[] body, Consumer<Entry> each) {
        ByteBuffer in = ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN);
        try {
            for (int i = 0; i < header.getInt(4); i++) {
                each.accept(record(in));
            }
        } catch (BufferUnderflowException e) {
            return false;
        }
        return !in.hasRemaining();
    }

    /** The hash that a record must have behind another. */
    static byte[] chain(Entry entry, Link last) {
        Draft draft =
                new Draft(entry.entity(), entry.entitySequence(), entry.generation(), entry.type(), entry.payload());
        return encode(List.of(draft), new long[] {entry.wallNanos()}, new long[] {entry.monotonicNanos()}, last)
                .entries()
                .getFirst()
                .chain();
    }

    private static byte[] take(ByteBuffer in, int length) {
        if (length < 0 || length > in.remaining()) {
            throw new BufferUnderflowException();
        }
        byte[] bytes = new byte[length];
        in.get(bytes);
        return bytes;
    }

    private static byte[] hash(byte[] before, byte[] bytes, int from, int length) {
        MessageDigest digest = DIGEST.get();
        digest.update(before);
        digest.update(bytes, from, length);
        return digest.digest();
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }

    private static int crc(byte[] bytes, int from, int length) {
        CRC32C crc = new CRC32C();
        crc.update(bytes, from, length);
        return (int) crc.getValue();
    }

    static ByteBuffer little(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
}
