package io.stasis.linux.notify;

import io.stasis.linux.Fd;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FileStatus;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** Finds the path of a file of which only the handle is known, see open_by_handle_at(2). */
public final class FileHandles {
    /** {@code struct file_handle} without its bytes. */
    private static final int HEADER = 8;

    private FileHandles() {}

    /**
     * A path that leads to the file.
     *
     * @param device of the file system, as stat(2) encodes it
     * @param type handle_type
     * @param handle f_handle
     * @return empty when there is none, or when this user may not look (CAP_DAC_READ_SEARCH)
     */
    public static Optional<String> path(long device, int type, byte[] handle) {
        return mountPoints(device).stream()
                .map(mount -> path(mount, type, handle))
                .flatMap(Optional::stream)
                .findFirst();
    }

    private static Optional<String> path(String mount, int type, byte[] handle) {
        ByteBuffer text = Libc.string(mount);
        long opened = Libc.call(
                SystemCall.OPENAT,
                Fcntl.AT_FDCWD,
                Libc.address(text),
                Fcntl.O_RDONLY | Fcntl.O_NONBLOCK | Fcntl.O_NOCTTY | Fcntl.O_CLOEXEC,
                0);
        java.lang.ref.Reference.reachabilityFence(text);
        if (Libc.isError(opened)) {
            return Optional.empty();
        }
        try (Fd root = new Fd((int) opened)) {
            ByteBuffer buffer = Libc.buffer(HEADER + handle.length);
            buffer.putInt(handle.length).putInt(type).put(handle);
            long file = Libc.call(
                    SystemCall.OPEN_BY_HANDLE_AT, root.value(), Libc.address(buffer), Fcntl.O_PATH | Fcntl.O_CLOEXEC);
            if (Libc.isError(file)) {
                return Optional.empty();
            }
            try (Fd found = new Fd((int) file)) {
                return pathOf(found);
            }
        }
    }

    /** The kernel's name of it, unless that leads elsewhere: it may be unlinked, covered by a mount, or have no name. */
    private static Optional<String> pathOf(Fd file) {
        try {
            String path = Files.readSymbolicLink(Path.of("/proc/self/fd/" + file.value()))
                    .toString();
            boolean same = FileStatus.ofLink(path).isSameFileAs(FileStatus.ofFd(file.value()));
            return same ? Optional.of(path) : Optional.empty();
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read /proc/self/fd/" + file.value(), e);
        }
    }

    /** Lines such as "36 35 98:0 /root /mount/point rw,noatime master:1 - ext3 /dev/root rw", see proc_pid_mountinfo(5). */
    private static List<String> mountPoints(long device) {
        String number = FileStatus.major(device) + ":" + FileStatus.minor(device);
        try (var lines = Files.lines(Path.of("/proc/self/mountinfo"), StandardCharsets.UTF_8)) {
            return lines.map(line -> line.split(" "))
                    .filter(words -> words[2].equals(number))
                    .map(words -> unescape(words[4]))
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read /proc/self/mountinfo", e);
        }
    }

    /** Blanks and the like are three octal digits there. */
    private static String unescape(String text) {
        return text.replace("\\040", " ")
                .replace("\\011", "\t")
                .replace("\\012", "\n")
                .replace("\\134", "\\");
    }
}
