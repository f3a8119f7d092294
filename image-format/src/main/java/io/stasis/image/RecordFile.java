package io.stasis.image;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.zip.CRC32C;

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
 * The checksum is checked before the payload is looked at.
 */
public final class RecordFile {
    private static final byte[] MAGIC = {'S', 'T', 'A', 'S', 'I', 'S', 'R', '1'};
    private static final int HEADER = 16;
    private static final int TRAILER = 4;
    private static final long LONGEST = 1L << 30;

    private static final ThreadLocal<Kryo> KRYO = ThreadLocal.withInitial(RecordTypes::kryo);
    private static final ThreadLocal<Output> OUTPUT = ThreadLocal.withInitial(() -> new Output(64 * 1024, -1));

    private RecordFile() {}

    /** Writes {@code graph} to a new file. */
    public static FileSummary write(Path file, Object graph) {
        Output output = OUTPUT.get();
        output.reset();
        KRYO.get().writeClassAndObject(output, graph);
        int length = output.position();
        ByteBuffer buffer = ByteBuffer.allocate(HEADER + length + TRAILER).order(ByteOrder.LITTLE_ENDIAN);
        buffer.put(MAGIC).putInt(FormatVersion.CURRENT).putInt(length).put(output.getBuffer(), 0, length);
        buffer.putInt(crc(buffer.array(), HEADER + length));
        buffer.flip();
        CRC32C whole = new CRC32C();
        whole.update(buffer.duplicate());
        FileSummary summary = new FileSummary(buffer.remaining(), (int) whole.getValue());
        try (FileChannel channel = PrivateFiles.create(file)) {
            PrivateFiles.writeFully(channel, buffer, file);
        } catch (IOException e) {
            throw ImageException.io("write", file, e);
        }
        return summary;
    }

    /** Reads the record that {@link #write} wrote. */
    public static <T> T read(Path file, Class<T> type) {
        byte[] bytes = readChecked(file);
        try {
            Object graph = KRYO.get().readClassAndObject(new Input(bytes, HEADER, bytes.length - HEADER - TRAILER));
            return type.cast(graph);
        } catch (RuntimeException e) {
            // The checksum was right: written by another program, or by a version with other records.
            throw new ImageException(
                    file + " holds no " + type.getSimpleName() + " of image format " + FormatVersion.CURRENT + ": "
                            + e.getMessage(),
                    e);
        }
    }

    private static byte[] readChecked(Path file) {
        try (FileChannel channel = PrivateFiles.openForReading(file)) {
            long size = channel.size();
            if (size < HEADER + TRAILER || size > LONGEST) {
                throw ImageException.damaged(file, "it has " + size + " bytes");
            }
            ByteBuffer buffer = ByteBuffer.allocate((int) size).order(ByteOrder.LITTLE_ENDIAN);
            PrivateFiles.readFully(channel, buffer, 0, file);
            for (int i = 0; i < MAGIC.length; i++) {
                if (buffer.get(i) != MAGIC[i]) {
                    throw ImageException.damaged(file, "it does not begin like a record file");
                }
            }
            int expected = buffer.getInt((int) size - TRAILER);
            if (crc(buffer.array(), (int) size - TRAILER) != expected) {
                throw ImageException.damaged(file, "its checksum is wrong");
            }
            FormatVersion.check(buffer.getInt(8), file.toString());
            if (buffer.getInt(12) != size - HEADER - TRAILER) {
                throw ImageException.damaged(file, "its length is wrong");
            }
            return buffer.array();
        } catch (IOException e) {
            throw ImageException.io("read", file, e);
        }
    }

    private static int crc(byte[] bytes, int length) {
        CRC32C crc = new CRC32C();
        crc.update(bytes, 0, length);
        return (int) crc.getValue();
    }
}
