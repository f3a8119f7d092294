package io.stasis.linux.proc;

import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Raw access to proc(5): whole files, links and directories of numbers, through buffers that each thread keeps, because
 * most of this runs while a program stands still.
 *
 * <p>A process that is gone is a {@link NoSuchProcessException}; every other failure a {@link KernelException}. An
 * ordinary user gets {@code EACCES} or {@code EPERM} for much of a process of somebody else, and of one that is not
 * dumpable, prctl(2) PR_SET_DUMPABLE.
 */
public final class Procfs {
    private static final ThreadLocal<Procfs> LOCAL = ThreadLocal.withInitial(Procfs::new);
    private static final int CHUNK = 64 * 1024;

    private final ByteBuffer path = Libc.buffer(8192);
    private final long pathAddress = Libc.address(path);
    private final ByteBuffer chunk = Libc.buffer(CHUNK);
    private final long chunkAddress = Libc.address(chunk);
    private final ProcText text = new ProcText();

    private Procfs() {}

    static String file(Pid pid, String name) {
        return "/proc/" + pid.value() + "/" + name;
    }

    static String file(Pid pid, Tid tid, String name) {
        return "/proc/" + pid.value() + "/task/" + tid.value() + "/" + name;
    }

    /** Opens a file of process {@code pid} with O_CLOEXEC added. */
    public static Fd open(Pid pid, String path, int flags) {
        long fd = LOCAL.get().openat(path, flags);
        if (Libc.isError(fd)) {
            throw failure(pid, "opening " + path, (int) -fd);
        }
        return new Fd((int) fd);
    }

    static ProcText read(Pid pid, String path) {
        long length = tryRead(path);
        if (length < 0) {
            throw failure(pid, "reading " + path, (int) -length);
        }
        return LOCAL.get().text;
    }

    /** Reads a file that is no process's. */
    static ProcText read(String path) {
        Libc.check(tryRead(path), "reading " + path);
        return LOCAL.get().text;
    }

    static byte[] readBytes(Pid pid, String path) {
        ProcText text = read(pid, path);
        return Arrays.copyOf(text.bytes, text.length);
    }

    /** Reads a file into this thread's text, see {@link #lastText}: its length, or the negated errno. */
    static long tryRead(String path) {
        return LOCAL.get().readWhole(path);
    }

    /** What the last successful {@link #tryRead} of this thread read. */
    static ProcText lastText() {
        return LOCAL.get().text;
    }

    static void write(Pid pid, String path, String value) {
        Procfs local = LOCAL.get();
        try (Fd fd = open(pid, path, Fcntl.O_WRONLY)) {
            byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
            local.chunk.put(0, bytes);
            long written = Libc.call(SystemCall.WRITE, fd.value(), local.chunkAddress, bytes.length);
            if (written != bytes.length) {
                throw failure(
                        pid, "writing " + value + " to " + path, Libc.isError(written) ? (int) -written : Errno.EIO);
            }
        }
    }

    /** The target of a symbolic link, decoded as UTF-8 (bytes that are none become U+FFFD). */
    static String link(Pid pid, String path) {
        Procfs local = LOCAL.get();
        local.setPath(path);
        long length =
                Libc.call(SystemCall.READLINKAT, Fcntl.AT_FDCWD, local.pathAddress, local.chunkAddress, CHUNK, 0, 0);
        if (Libc.isError(length)) {
            throw failure(pid, "readlink of " + path, (int) -length);
        }
        byte[] bytes = new byte[(int) length];
        local.chunk.get(0, bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** The entries of a directory whose names are numbers, ascending. */
    static int[] numbers(Pid pid, String path) {
        Procfs local = LOCAL.get();
        int[] values = new int[64];
        int count = 0;
        try (Fd fd = open(pid, path, Fcntl.O_RDONLY | Fcntl.O_DIRECTORY)) {
            while (true) {
                long length = Libc.call(SystemCall.GETDENTS64, fd.value(), local.chunkAddress, CHUNK);
                if (Libc.isError(length)) {
                    throw failure(pid, "listing " + path, (int) -length);
                }
                if (length == 0) {
                    break;
                }
                for (int entry = 0; entry < length; entry += local.chunk.getShort(entry + 16)) {
                    int number = local.nameAsNumber(entry + 19);
                    if (number >= 0) {
                        if (count == values.length) {
                            values = Arrays.copyOf(values, 2 * count);
                        }
                        values[count++] = number;
                    }
                }
            }
        }
        values = Arrays.copyOf(values, count);
        Arrays.sort(values);
        return values;
    }

    /** The exception for a failed access to something of {@code pid}: whether it is gone is looked up now. */
    public static RuntimeException failure(Pid pid, String what, int errno) {
        if (errno == Errno.ESRCH) {
            return new NoSuchProcessException(pid, what);
        }
        if (errno == Errno.ENOENT) {
            Procfs local = LOCAL.get();
            local.setPath("/proc/" + pid.value());
            if (Libc.isError(Libc.call(SystemCall.ACCESS, local.pathAddress, 0))) {
                return new NoSuchProcessException(pid, what);
            }
        }
        return new KernelException(what, errno);
    }

    /** statx(2) into this thread's buffer: 0 or the negated errno. */
    static long statx(int directory, String path, int flags, int mask) {
        Procfs local = LOCAL.get();
        local.setPath(path);
        return Libc.call(SystemCall.STATX, directory, local.pathAddress, flags, mask, local.chunkAddress, 0);
    }

    /** The buffer that {@link #statx} filled. */
    static ByteBuffer chunk() {
        return LOCAL.get().chunk;
    }

    private int nameAsNumber(int start) {
        int value = 0;
        int i = start;
        for (byte b = chunk.get(i); b != 0; b = chunk.get(++i)) {
            if (b < '0' || b > '9') {
                return -1;
            }
            value = value * 10 + b - '0';
        }
        return i == start ? -1 : value;
    }

    private void setPath(String name) {
        byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
        if (bytes.length >= path.capacity()) {
            throw new KernelException("path " + name, Errno.ENAMETOOLONG);
        }
        path.put(0, bytes).put(bytes.length, (byte) 0);
    }

    private long openat(String name, int flags) {
        setPath(name);
        return Libc.call(SystemCall.OPENAT, Fcntl.AT_FDCWD, pathAddress, flags | Fcntl.O_CLOEXEC, 0);
    }

    private long readWhole(String name) {
        long fd = openat(name, Fcntl.O_RDONLY);
        if (Libc.isError(fd)) {
            return fd;
        }
        try {
            text.position = 0;
            text.length = 0;
            while (true) {
                long got = Libc.call(SystemCall.READ, fd, chunkAddress, CHUNK);
                if (got == -Errno.EINTR) {
                    continue;
                }
                if (got <= 0) {
                    return got == 0 ? text.length : got;
                }
                int needed = text.length + (int) got;
                if (needed > text.bytes.length) {
                    text.bytes = Arrays.copyOf(text.bytes, Math.max(needed, 2 * text.bytes.length));
                }
                chunk.get(0, text.bytes, text.length, (int) got);
                text.length = needed;
            }
        } finally {
            Libc.close((int) fd);
        }
    }
}
