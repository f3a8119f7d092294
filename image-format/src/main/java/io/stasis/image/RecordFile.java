package io.stasis.image;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.io.Output;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * One record of the image model in a file of its own.
 *
 * <pre>
 *   0   8  magic "STASISR1"
 *   8   4  format version, little-endian like all numbers
 *   12  4  length of the payload in bytes
 *   16  n  payload: the record as Kryo writes it, classes by the numbers of {@link RecordTypes}
 *   16+n 4 CRC-32C over everything before
 * </pre>
 *
 * The checksum is checked before the payload is looked at, and lengths in the payload are not trusted even then.
 */
public final class RecordFile {
    private static final byte[] MAGIC = {'S', 'T', 'A', 'S', 'I', 'S', 'R', '1'};
    private static final int HEADER = 16;
    private static final int TRAILER = 4;
    private static final int LONGEST = 1 << 30;
    /** Larger buffers are not kept: an agent lives for weeks. */
    private static final int KEPT = 1 << 20;

    private static final ThreadLocal<Kryo> KRYO = ThreadLocal.withInitial(RecordTypes::kryo);
    private static final ThreadLocal<Output> OUTPUT = ThreadLocal.withInitial(() -> new Output(64 * 1024, LONGEST));

    private RecordFile() {}

    /** Writes {@code graph} to a new file. */
    public static FileSummary write(Path file, Object graph) {
        Output output = OUTPUT.get();
        try {
            output.setPosition(HEADER);
            KRYO.get().writeClassAndObject(output, graph);
            int length = output.position() - HEADER;
            output.writeInt(0); // room for the trailer
            return write(file, output.getBuffer(), length);
        } catch (KryoException | IllegalArgumentException e) {
            throw new ImageWriteException("cannot write " + file + ": a "
                    + graph.getClass().getSimpleName() + " has no form in image format " + FormatVersion.CURRENT + " ("
                    + firstLine(e) + ")");
        } finally {
            if (output.getBuffer().length > KEPT) {
                OUTPUT.remove();
            }
        }
    }

    /** @param bytes with the payload in its place, and room for header and trailer */
    private static FileSummary write(Path file, byte[] bytes, int length) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes, 0, HEADER + length + TRAILER).order(ByteOrder.LITTLE_ENDIAN);
        buffer.put(MAGIC).putInt(FormatVersion.CURRENT).putInt(length);
        int crc = Crc32c.of(bytes, 0, HEADER + length);
        buffer.putInt(HEADER + length, crc).rewind();
        int whole = Crc32c.combine(crc, Crc32c.of(bytes, HEADER + length, TRAILER), TRAILER);
        FileSummary summary = new FileSummary(buffer.remaining(), whole);
        try (FileChannel channel = PrivateFiles.create(file)) {
            PrivateFiles.writeFully(channel, buffer, 0, file);
        } catch (IOException e) {
            throw ImageWriteException.writing("write", file, e);
        }
        return summary;
    }

    /**
     * Reads the record that {@link #write} wrote. Lists in it cannot be changed.
     *
     * @throws ImageException also when the checksum is right and the rest is not, as a program other than Stasis may
     *     have written it
     */
    public static <T> T read(Path file, Class<T> type) {
        byte[] bytes = readChecked(file);
        int length = bytes.length - HEADER - TRAILER;
        try (RecordKryo.BoundedInput input = new RecordKryo.BoundedInput(bytes, HEADER, length)) {
            T graph = type.cast(KRYO.get().readClassAndObject(input));
            if (graph == null || input.position() != HEADER + length) {
                throw new KryoException("it ends elsewhere");
            }
            return graph;
        } catch (RuntimeException e) {
            // Kryo throws whatever the bytes lead to: KryoException, IndexOutOfBounds, ClassCast, IllegalArgument...
            throw new ImageException(
                    file + " holds no " + type.getSimpleName() + " of image format " + FormatVersion.CURRENT + " ("
                            + firstLine(e) + "); restart from another generation",
                    e);
        }
    }

    /** Kryo goes on with a trace of objects, line by line. */
    private static String firstLine(RuntimeException e) {
        return e.getMessage() == null
                ? e.getClass().getSimpleName()
                : e.getMessage().lines().findFirst().orElse("");
    }

    private static byte[] readChecked(Path file) {
        try (FileChannel channel = PrivateFiles.openForReading(file)) {
            long size = channel.size();
            if (size < HEADER + TRAILER || size > LONGEST) {
                throw ImageException.damaged(file, "it has " + size + " bytes");
            }
            ByteBuffer buffer = ByteBuffer.allocate((int) size).order(ByteOrder.LITTLE_ENDIAN);
            PrivateFiles.readFully(channel, buffer, 0, file);
            if (!Arrays.equals(buffer.array(), 0, MAGIC.length, MAGIC, 0, MAGIC.length)) {
                throw ImageException.damaged(file, "it does not begin like a record file");
            }
            if (Crc32c.of(buffer.array(), 0, (int) size - TRAILER) != buffer.getInt((int) size - TRAILER)) {
                throw ImageException.damaged(file, "its checksum is wrong");
            }
            FormatVersion.check(buffer.getInt(8), file.toString());
            if (buffer.getInt(12) != size - HEADER - TRAILER) {
                throw ImageException.damaged(file, "its length is wrong");
            }
            return buffer.array();
        } catch (IOException e) {
            throw ImageException.reading("read", file, e);
        }
    }
}
