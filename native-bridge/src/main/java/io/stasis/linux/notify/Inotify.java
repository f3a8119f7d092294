package io.stasis.linux.notify;

import io.stasis.linux.Fd;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.nio.ByteBuffer;

/** Instances of inotify(7), through descriptors of ours. */
public final class Inotify {
    /** Fails rather than changes a watch that the instance has of the same file, see inotify_add_watch(2). */
    public static final int IN_MASK_CREATE = 0x10000000;

    /** Watches a symbolic link itself. */
    public static final int IN_DONT_FOLLOW = 0x02000000;

    private static final int FIONREAD = 0x541b;
    /** {@code _IOW('I', 0, __s32)} of {@code <linux/inotify.h>}; there with CONFIG_CHECKPOINT_RESTORE. */
    private static final int INOTIFY_IOC_SETNEXTWD = 0x40044900;

    private Inotify() {}

    /** Bytes of the events that nobody has read yet, see inotify(7). Takes nothing. */
    public static int unread(Fd instance) {
        ByteBuffer count = Libc.buffer(Integer.BYTES);
        Libc.check(
                Libc.call(SystemCall.IOCTL, instance.value(), FIONREAD, Libc.address(count)),
                "count the events of inotify descriptor " + instance.value());
        return count.getInt(0);
    }

    /** Lets the next watch that is added get {@code number}, if no watch has it, or else the next free one above. */
    public static void chooseNext(Fd instance, int number) {
        Libc.check(
                Libc.call(SystemCall.IOCTL, instance.value(), INOTIFY_IOC_SETNEXTWD, number),
                "choose " + number + " as the next watch of an inotify descriptor");
    }

    /** Returns the number of the new watch. */
    public static int add(Fd instance, String path, int mask) {
        ByteBuffer text = Libc.string(path);
        long number = Libc.call(
                SystemCall.INOTIFY_ADD_WATCH,
                instance.value(),
                Libc.address(text),
                Integer.toUnsignedLong(mask | IN_MASK_CREATE));
        java.lang.ref.Reference.reachabilityFence(text);
        return (int) Libc.check(number, "watch " + path + " with inotify");
    }
}
