package io.stasis.linux.libc;

/** Bit numbers of capabilities(7), {@code <linux/capability.h>}. */
public final class Capability {
    public static final int CAP_CHOWN = 0;
    public static final int CAP_DAC_OVERRIDE = 1;
    public static final int CAP_KILL = 5;
    public static final int CAP_SETGID = 6;
    public static final int CAP_SETUID = 7;
    public static final int CAP_SETPCAP = 8;
    public static final int CAP_NET_BIND_SERVICE = 10;
    public static final int CAP_NET_ADMIN = 12;
    public static final int CAP_NET_RAW = 13;
    public static final int CAP_SYS_CHROOT = 18;
    public static final int CAP_SYS_PTRACE = 19;
    public static final int CAP_SYS_ADMIN = 21;
    public static final int CAP_SYS_NICE = 23;
    public static final int CAP_SYS_RESOURCE = 24;
    public static final int CAP_CHECKPOINT_RESTORE = 40;

    private Capability() {}
}
