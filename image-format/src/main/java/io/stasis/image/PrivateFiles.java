package io.stasis.image;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.zip.CRC32C;

/** Files only their owner may read, complete writes, and checksums. Symbolic links are not followed. */
final class PrivateFiles {
    static final FileAttribute<Set<PosixFilePermission>> FILE =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    static final FileAttribute<Set<PosixFilePermission>> DIRECTORY =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
    /** Bytes a system call: heap buffers are copied into direct ones of this size, which the JDK keeps. */
    private static final int CHUNK = 1 << 20;
    /** Below this many bytes a second thread is not worth its start. */
    private static final long PART = 16L << 20;

    private PrivateFiles() {}

    static FileChannel create(Path file) {
        try {
            return FileChannel.open(file, Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE), FILE);
        } catch (IOException e) {
            throw ImageWriteException.writing("create", file, e);
        }
    }

    static FileChannel openForReading(Path file) {
        try {
            return FileChannel.open(file, Set.of(StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS));
        } catch (NoSuchFileException e) {
            throw new ImageException(
                    "the image is incomplete: " + file + " is missing; restart from another generation", e);
        } catch (IOException e) {
            throw ImageException.reading("open", file, e);
        }
    }

    /** Writes all that remains at the channel's position, which is {@code offset}. */
    static void writeFully(FileChannel channel, ByteBuffer bytes, long offset, Path file) {
        int begin = bytes.position();
        int end = bytes.limit();
        try {
            while (bytes.position() < end) {
                bytes.limit(Math.min(end, bytes.position() + CHUNK));
                channel.write(bytes);
            }
        } catch (IOException e) {
            throw ImageWriteException.writing("write at byte " + (offset + bytes.position() - begin) + " of", file, e);
        } finally {
            bytes.limit(end);
        }
    }

    /** Fills {@code target} from {@code offset}; a file that ends before is damaged. */
    static void readFully(FileChannel channel, ByteBuffer target, long offset, Path file) {
        long at = offset;
        int end = target.limit();
        try {
            while (target.position() < end) {
                target.limit(Math.min(end, target.position() + CHUNK));
                int got = channel.read(target, at);
                if (got < 0) {
                    throw ImageException.damaged(
                            file, "it ends at byte " + at + ", " + (end - target.position()) + " bytes too early");
                }
                at += got;
            }
        } catch (IOException e) {
            throw ImageException.reading("read at byte " + at + " of", file, e);
        } finally {
            target.limit(end);
        }
    }

    /** Size and checksum of a whole file, read once; a large one by as many threads as there are processors. */
    static FileSummary summarize(Path file) {
        try (FileChannel channel = openForReading(file)) {
            long size = channel.size();
            int parts = Math.clamp(size / PART, 1, Runtime.getRuntime().availableProcessors());
            long part = size / parts;
            List<Integer> sums = IntStream.range(0, parts)
                    .parallel()
                    .mapToObj(i -> sum(channel, i * part, lengthOf(i, parts, part, size), file))
                    .toList();
            int whole = sums.getFirst();
            for (int i = 1; i < parts; i++) {
                whole = Crc32c.combine(whole, sums.get(i), lengthOf(i, parts, part, size));
            }
            return new FileSummary(size, whole);
        } catch (IOException e) {
            throw ImageException.reading("read", file, e);
        }
    }

    private static long lengthOf(int i, int parts, long part, long size) {
        return i < parts - 1 ? part : size - i * part;
    }

    /** Checksum of a part of a file. */
    static int sum(FileChannel channel, long offset, long length, Path file) {
        return sum(channel, offset, length, file, ByteBuffer.allocateDirect(Math.clamp(length, 1, CHUNK)));
    }

    /** @param buffer of any size, for what is read */
    static int sum(FileChannel channel, long offset, long length, Path file, ByteBuffer buffer) {
        CRC32C crc = new CRC32C();
        long done = 0;
        while (done < length) {
            buffer.clear().limit((int) Math.min(buffer.capacity(), length - done));
            readFully(channel, buffer, offset + done, file);
            done += buffer.position();
            crc.update(buffer.flip());
        }
        return (int) crc.getValue();
    }

    /** Forces a file's bytes, or a directory's entries, to the disk. */
    static void force(Path path) {
        try (FileChannel channel = FileChannel.open(path, Set.of(StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS))) {
            channel.force(true);
        } catch (IOException e) {
            throw ImageWriteException.writing("force to disk", path, e);
        }
    }
}
