package io.stasis.linux.proc;

import io.stasis.linux.Errno;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.StatMode;
import io.stasis.linux.libc.SystemCall;
import java.nio.ByteBuffer;

/**
 * What statx(2) says about a file.
 *
 * @param dev device as stat(2) encodes it, see {@link #device}
 * @param mode type and permissions
 * @param mtimeNanos last modification in nanoseconds since 1970
 * @param exists false when there is no such file; everything else is then 0
 */
public record FileStatus(
        long dev,
        long ino,
        int mode,
        int nlink,
        int uid,
        int gid,
        long rdev,
        long size,
        long mtimeNanos,
        boolean exists) {

    private static final int STATX_BASIC_STATS = 0x7ff;
    private static final int STATFS = 120;
    private static final FileStatus ABSENT = new FileStatus(0, 0, 0, 0, 0, 0, 0, 0, 0, false);

    /** Of the file {@code path} leads to, symbolic links followed. */
    public static FileStatus of(String path) {
        return ofResult(Procfs.statx(Fcntl.AT_FDCWD, path, 0, STATX_BASIC_STATS), "statx of " + path);
    }

    /** Of {@code path} itself when it is a symbolic link. */
    public static FileStatus ofLink(String path) {
        long result = Procfs.statx(Fcntl.AT_FDCWD, path, Fcntl.AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS);
        return ofResult(result, "statx of " + path);
    }

    /** Of an open descriptor of ours. */
    public static FileStatus ofFd(int fd) {
        long result = Procfs.statx(fd, "", Fcntl.AT_EMPTY_PATH, STATX_BASIC_STATS);
        return ofResult(result, "statx of descriptor " + fd);
    }

    /** Of an open descriptor of a process. It need not have a name. */
    public static FileStatus ofProcFd(Pid pid, int fd) {
        return of(Procfs.file(pid, "fd/" + fd));
    }

    /** The kind of file system that {@code path} lies on, a magic number of {@code <linux/magic.h>}, see statfs(2). */
    public static long fileSystemType(String path) {
        ByteBuffer text = Libc.string(path);
        ByteBuffer status = Libc.buffer(STATFS);
        Libc.check(Libc.call(SystemCall.STATFS, Libc.address(text), Libc.address(status)), "statfs of " + path);
        java.lang.ref.Reference.reachabilityFence(text);
        return status.getLong(0);
    }

    public boolean isRegular() {
        return isType(StatMode.S_IFREG);
    }

    public boolean isDirectory() {
        return isType(StatMode.S_IFDIR);
    }

    public boolean isSymbolicLink() {
        return isType(StatMode.S_IFLNK);
    }

    public boolean isFifo() {
        return isType(StatMode.S_IFIFO);
    }

    public boolean isSocket() {
        return isType(StatMode.S_IFSOCK);
    }

    public boolean isCharacterDevice() {
        return isType(StatMode.S_IFCHR);
    }

    public boolean isBlockDevice() {
        return isType(StatMode.S_IFBLK);
    }

    public boolean isSameFileAs(FileStatus other) {
        return exists && other.exists && dev == other.dev && ino == other.ino;
    }

    /** makedev(3). */
    public static long device(int major, int minor) {
        long ma = Integer.toUnsignedLong(major);
        long mi = Integer.toUnsignedLong(minor);
        return (ma & 0xfff) << 8 | mi & 0xff | (mi & ~0xffL) << 12 | (ma & ~0xfffL) << 32;
    }

    /** major(3). */
    public static int major(long device) {
        return (int) (device >>> 8 & 0xfff | device >>> 32 & ~0xfffL);
    }

    /** minor(3). */
    public static int minor(long device) {
        return (int) (device & 0xff | device >>> 12 & ~0xffL);
    }

    private boolean isType(int type) {
        return (mode & StatMode.S_IFMT) == type;
    }

    private static FileStatus ofResult(long result, String what) {
        if (result == -Errno.ENOENT || result == -Errno.ENOTDIR) {
            return ABSENT;
        }
        Libc.check(result, what);
        ByteBuffer b = Procfs.chunk();
        return new FileStatus(
                device(b.getInt(136), b.getInt(140)),
                b.getLong(32),
                Short.toUnsignedInt(b.getShort(28)),
                b.getInt(16),
                b.getInt(20),
                b.getInt(24),
                device(b.getInt(128), b.getInt(132)),
                b.getLong(40),
                b.getLong(112) * 1_000_000_000L + b.getInt(120),
                true);
    }
}
