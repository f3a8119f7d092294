package io.stasis.engine.resource.file;

import io.stasis.engine.resource.Descriptor;
import io.stasis.image.model.ComputationImage.NamelessFile;
import io.stasis.image.model.FileReference;
import io.stasis.linux.Fd;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.StatMode;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.MappingInfo;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The regular files of a frozen tree that no path leads to: unlinked ones and those of O_TMPFILE and memfd_create(2).
 * Each is one entry, however many descriptors and mappings of however many processes lead to it.
 *
 * <p>Whoever outside the tree shares such a file goes on with the old one when the tree is restarted.
 */
public final class NamelessFiles implements AutoCloseable {
    static final String MEMORY = "/memfd:";

    private static final int PRIVATE_MODE = 0600;
    private static final int UNKNOWN = -1;
    private static final long NANOS_PER_MILLI = 1_000_000;

    /** One file, by the number it has in the image. */
    public record Found(int index, String path, InodeContent content) {
        /**
         * What the image keeps of it.
         *
         * @param file it open; empty when that cannot be done: then it is taken for a private file of the restarter
         * @param size in bytes
         * @param pageFile relative to the generation directory
         */
        public NamelessFile image(Optional<Fd> file, long size, String pageFile) {
            boolean memory = path.startsWith(MEMORY);
            if (file.isEmpty()) {
                long now = System.currentTimeMillis() * NANOS_PER_MILLI;
                var reference = new FileReference(path, 0, 0, StatMode.S_IFREG | PRIVATE_MODE, size, now);
                return new NamelessFile(reference, UNKNOWN, UNKNOWN, memory, memory ? Fcntl.F_SEAL_SEAL : 0, pageFile);
            }
            int fd = file.get().value();
            FileStatus status = FileStatus.ofFd(fd);
            int seals = memory ? (int) Libc.check(Libc.call(SystemCall.FCNTL, fd, Fcntl.F_GET_SEALS, 0), path) : 0;
            var reference =
                    new FileReference(path, status.dev(), status.ino(), status.mode(), size, status.mtimeNanos());
            return new NamelessFile(reference, status.uid(), status.gid(), memory, seals, pageFile);
        }
    }

    private record Inode(long device, long inode) {}

    private final Map<Inode, Found> byInode = new HashMap<>();
    private final List<Found> found = new ArrayList<>();

    /** The file behind a descriptor. */
    Found of(Descriptor descriptor, String path) {
        FileStatus status = descriptor.status();
        Found file = find(status.dev(), status.ino(), path);
        file.content.addDescriptor(descriptor.pid(), descriptor.fd(), status);
        return file;
    }

    /** The file behind a mapping. */
    public Found of(Pid pid, MappingInfo info) {
        // On some file systems the numbers of /proc/PID/maps are not those of stat(2), which descriptors show.
        Found file = InodeContent.status(pid, info)
                .map(status -> find(status.dev(), status.ino(), info.path()))
                .orElseGet(() -> find(FileStatus.device(info.devMajor(), info.devMinor()), info.inode(), info.path()));
        file.content.addMapping(pid, info);
        return file;
    }

    private Found find(long device, long inode, String path) {
        return byInode.computeIfAbsent(new Inode(device, inode), key -> {
            Found file = new Found(found.size(), path, new InodeContent());
            found.add(file);
            return file;
        });
    }

    public List<Found> found() {
        return List.copyOf(found);
    }

    @Override
    public void close() {
        found.forEach(file -> file.content.close());
    }

    /**
     * Another name in the same directory, for a file whose own name is gone but that has further links.
     *
     * @param path the name that is gone
     */
    static Optional<String> otherName(String path, FileStatus status) {
        Path directory = Path.of(path).getParent();
        if (status.nlink() == 0 || directory == null) {
            return Optional.empty();
        }
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(directory)) {
            for (Path entry : entries) {
                if (FileStatus.ofLink(entry.toString()).isSameFileAs(status)) {
                    return Optional.of(entry.toString());
                }
            }
        } catch (IOException | java.nio.file.DirectoryIteratorException e) {
            // The directory is gone or not to be read: the name is not to be found either.
        }
        return Optional.empty();
    }

    /** As {@link #otherName(String, FileStatus)}, for a mapping. */
    public static Optional<String> otherName(Pid pid, MappingInfo info) {
        return InodeContent.status(pid, info).flatMap(status -> otherName(info.path(), status));
    }

    /** Why the file behind a mapping cannot be kept. */
    public static Optional<String> problem(Pid pid, MappingInfo info) {
        Optional<FileStatus> status = InodeContent.status(pid, info);
        if (status.isPresent() && status.get().nlink() > 0) {
            return otherName(info.path(), status.get()).isPresent()
                    ? Optional.empty()
                    : Optional.of("its name was removed and it has others, which are not in the same directory");
        }
        return Optional.empty();
    }
}
