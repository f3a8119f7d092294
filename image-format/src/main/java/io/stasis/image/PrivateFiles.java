package io.stasis.image;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.zip.CRC32C;

/** Files only their owner may read, complete writes, and checksums. Symbolic links are not followed. */
final class PrivateFiles {
    static final FileAttribute<Set<PosixFilePermission>> FILE =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    static final FileAttribute<Set<PosixFilePermission>> DIRECTORY =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
    private static final int CHUNK = 1 << 20;

    private PrivateFiles() {}

    static FileChannel create(Path file) {
        try {
            return FileChannel.open(file, Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE), FILE);
        } catch (IOException e) {
            throw ImageException.io("create", file, e);
        }
    }

    static FileChannel openForReading(Path file) {
        try {
            return FileChannel.open(file, Set.of(StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS));
        } catch (java.nio.file.NoSuchFileException e) {
            throw new ImageException(
                    "the image is incomplete: " + file + " is missing; restart from another generation", e);
        } catch (IOException e) {
            throw ImageException.io("open", file, e);
        }
    }

    static void writeFully(FileChannel channel, ByteBuffer bytes, Path file) {
        try {
            while (bytes.hasRemaining()) {
                channel.write(bytes);
            }
        } catch (IOException e) {
            throw ImageException.io("write", file, e);
        }
    }

    /** Fills {@code target} from {@code offset}; a file that ends before is damaged. */
    static void readFully(FileChannel channel, ByteBuffer target, long offset, Path file) {
        try {
            long at = offset;
            while (target.hasRemaining()) {
                int got = channel.read(target, at);
                if (got < 0) {
                    throw ImageException.damaged(file, "it ends at byte " + at + ", before its end");
                }
                at += got;
            }
        } catch (IOException e) {
            throw ImageException.io("read", file, e);
        }
    }

    /** Size and checksum of a whole file. */
    static FileSummary summarize(Path file) {
        try (FileChannel channel = openForReading(file)) {
            ByteBuffer buffer = ByteBuffer.allocateDirect(CHUNK);
            CRC32C crc = new CRC32C();
            long size = 0;
            while (channel.read(buffer.clear()) >= 0) {
                buffer.flip();
                size += buffer.remaining();
                crc.update(buffer);
            }
            return new FileSummary(size, (int) crc.getValue());
        } catch (IOException e) {
            throw ImageException.io("read", file, e);
        }
    }

    /** Forces a file's bytes, or a directory's entries, to the disk. */
    static void force(Path path) {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            channel.force(true);
        } catch (IOException e) {
            throw ImageException.io("force to disk", path, e);
        }
    }
}
