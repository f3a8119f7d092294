package io.stasis.engine.resource.file;

import io.stasis.engine.EngineException;
import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.MappingInfo;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Where the bytes of an inode that no path leads to can be read while the tree is frozen: through the links of
 * /proc/PID/fd and /proc/PID/map_files, see proc(5), or else through the memory of whoever maps it.
 *
 * <p>A link is opened once more, so that no offset of the program moves and, where the kernel permits it, no access time
 * changes. Links of map_files can be followed with CAP_CHECKPOINT_RESTORE only.
 */
public final class InodeContent implements AutoCloseable {
    /** A shared mapping of {@code length} bytes at {@code offset} of the file. */
    public record Mapped(int pid, long address, long offset, long length) {}

    private final List<String> links = new ArrayList<>();
    private final List<Mapped> mappings = new ArrayList<>();
    private FileStatus identity;
    private Fd held;

    /** @param status what the file is, for a look whether a link still leads to it */
    void addDescriptor(int pid, int fd, FileStatus status) {
        identity = status;
        String link = "/proc/" + pid + "/fd/" + fd;
        links.addFirst(link);
        if (pid == ProcessHandle.current().pid() && held == null) {
            // On its way through a socket and with us for a moment only.
            long own = open(link, 0);
            held = own < 0 ? null : new Fd((int) own);
        }
    }

    public void addMapping(Pid pid, MappingInfo info) {
        if (links.isEmpty()) {
            links.add(link(pid, info));
        }
        if (info.shared()) {
            mappings.add(new Mapped(pid.value(), info.start(), info.offset(), info.size()));
        }
    }

    private static String link(Pid pid, MappingInfo info) {
        return "/proc/" + pid + "/map_files/" + Long.toHexString(info.start()) + "-" + Long.toHexString(info.end());
    }

    /** Whether we have the privilege to open the file behind a mapping. */
    public static boolean canBeOpened(Pid pid, MappingInfo info) {
        return status(pid, info).isPresent();
    }

    /** What the file behind a mapping is; empty without the privilege to follow its link. */
    static Optional<FileStatus> status(Pid pid, MappingInfo info) {
        try {
            return Optional.of(FileStatus.of(link(pid, info))).filter(FileStatus::exists);
        } catch (KernelException e) {
            return Optional.empty();
        }
    }

    /** Whether we may read the file behind a descriptor. */
    static boolean canBeRead(int pid, int fd) {
        long own = open("/proc/" + pid + "/fd/" + fd, 0);
        if (own >= 0) {
            new Fd((int) own).close();
        }
        return own != -Errno.EACCES;
    }

    /**
     * The file open for reading, to be closed by the caller; empty when it can only be read as memory.
     *
     * @throws EngineException when it can be read in no way, or only in part
     */
    public Optional<Fd> open() {
        if (held != null) {
            links.addFirst("/proc/self/fd/" + held.value());
        }
        for (String link : links) {
            long fd = open(link, Fcntl.O_NOATIME);
            if (fd == -Errno.EPERM) {
                fd = open(link, 0); // for owners only
            }
            if (fd < 0) {
                continue;
            }
            if (identity == null || FileStatus.ofFd((int) fd).isSameFileAs(identity)) {
                return Optional.of(new Fd((int) fd));
            }
            new Fd((int) fd).close();
        }
        if (identity != null || mappings.isEmpty()) {
            throw new EngineException(
                    EngineException.Kind.UNSUPPORTED,
                    "cannot read the deleted file behind " + links.getLast() + "; run as root");
        }
        return Optional.empty();
    }

    /** O_NONBLOCK for a file that somebody holds a lease on. */
    private static long open(String link, int flags) {
        ByteBuffer path = Libc.string(link);
        return Libc.call(
                SystemCall.OPENAT,
                Fcntl.AT_FDCWD,
                Libc.address(path),
                Fcntl.O_RDONLY | Fcntl.O_CLOEXEC | Fcntl.O_NONBLOCK | flags,
                0);
    }

    @Override
    public void close() {
        if (held != null) {
            held.close();
            held = null;
        }
    }

    /** All shared mappings of it in the tree. */
    public List<Mapped> mappings() {
        return List.copyOf(mappings);
    }
}
