package io.stasis.linux.libc;

/** Open flags and {@code *at} flags of x86-64, {@code <asm-generic/fcntl.h>} and {@code <linux/fcntl.h>}. */
public final class Fcntl {
    public static final int O_RDONLY = 0;
    public static final int O_WRONLY = 1;
    public static final int O_RDWR = 2;
    public static final int O_ACCMODE = 3;
    public static final int O_CREAT = 0100;
    public static final int O_EXCL = 0200;
    public static final int O_NOCTTY = 0400;
    public static final int O_TRUNC = 01000;
    public static final int O_APPEND = 02000;
    public static final int O_NONBLOCK = 04000;
    public static final int O_DSYNC = 010000;
    public static final int FASYNC = 020000;
    public static final int O_DIRECT = 040000;
    public static final int O_LARGEFILE = 0100000;
    public static final int O_DIRECTORY = 0200000;
    public static final int O_NOFOLLOW = 0400000;
    public static final int O_NOATIME = 01000000;
    public static final int O_CLOEXEC = 02000000;
    public static final int O_SYNC = 04010000;
    public static final int O_PATH = 010000000;
    public static final int O_TMPFILE = 020200000;

    public static final int F_ADD_SEALS = 1033;
    public static final int F_GET_SEALS = 1034;
    public static final int F_SEAL_SEAL = 0x1;

    public static final int AT_FDCWD = -100;
    public static final int AT_SYMLINK_NOFOLLOW = 0x100;
    public static final int AT_SYMLINK_FOLLOW = 0x400;
    public static final int AT_EMPTY_PATH = 0x1000;

    /** Command of fcntl(2). */
    public static final int F_DUPFD_CLOEXEC = 1030;

    private Fcntl() {}
}
