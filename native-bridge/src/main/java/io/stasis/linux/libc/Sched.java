package io.stasis.linux.libc;

/** Flags of unshare(2) and clone(2) that make namespaces, {@code <linux/sched.h>}; see namespaces(7). */
public final class Sched {
    public static final int CLONE_NEWNS = 0x00020000;
    public static final int CLONE_NEWIPC = 0x08000000;
    public static final int CLONE_NEWUSER = 0x10000000;
    public static final int CLONE_NEWPID = 0x20000000;

    private Sched() {}
}
