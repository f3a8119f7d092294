package io.stasis.engine.resource;

import io.stasis.image.model.FileReference;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.proc.FdInfo;
import io.stasis.linux.proc.FdTable;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.NoSuchProcessException;
import java.util.Optional;

/**
 * One descriptor of a process as /proc shows it.
 *
 * @param link where /proc/PID/fd/FD leads: a path, or "pipe:[123]" and the like
 */
public record Descriptor(int pid, int fd, String link, FileStatus status, FdInfo info) {
    /** Empty when the descriptor or the process is gone. */
    public static Optional<Descriptor> read(int pid, int fd) {
        Pid id = new Pid(pid);
        try {
            return Optional.of(
                    new Descriptor(pid, fd, FdTable.link(id, fd), FileStatus.ofProcFd(id, fd), FdInfo.read(id, fd)));
        } catch (NoSuchProcessException | KernelException e) {
            return Optional.empty();
        }
    }

    public boolean closeOnExec() {
        return (info.flags() & Fcntl.O_CLOEXEC) != 0;
    }

    /** File status flags and access mode, FD_CLOEXEC left out. */
    public int statusFlags() {
        return info.flags() & ~Fcntl.O_CLOEXEC;
    }

    public boolean isPathOnly() {
        return (info.flags() & Fcntl.O_PATH) != 0;
    }

    public boolean isReadable() {
        return (info.flags() & Fcntl.O_ACCMODE) != Fcntl.O_WRONLY;
    }

    public boolean isWritable() {
        return (info.flags() & Fcntl.O_ACCMODE) != Fcntl.O_RDONLY;
    }

    public FileReference reference() {
        return new FileReference(link, status.dev(), status.ino(), status.mode(), status.size(), status.mtimeNanos());
    }
}
