package io.stasis.linux.time;

import io.stasis.linux.Fd;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.nio.ByteBuffer;

/** timerfd_gettime(2), timerfd_settime(2) and their clocks. */
public final class TimerFd {
    public static final int CLOCK_REALTIME = 0;
    public static final int CLOCK_REALTIME_ALARM = 8;

    public static final int TFD_TIMER_ABSTIME = 1;

    private static final int TFD_IOC_SET_TICKS = 0x40085400;
    private static final long SECOND = 1_000_000_000L;
    private static final int TIMESPEC_BYTES = 16;

    /**
     * {@code struct itimerspec}.
     *
     * @param valueNanos time until the next expiration, or when it is; 0 for a disarmed timer
     * @param intervalNanos time between expirations, 0 for a single one
     */
    public record Setting(long valueNanos, long intervalNanos) {}

    private TimerFd() {}

    /** What is left until the next expiration. */
    public static Setting get(Fd timer) {
        ByteBuffer buffer = Libc.buffer(2 * TIMESPEC_BYTES);
        long result = Libc.call(SystemCall.TIMERFD_GETTIME, timer.value(), Libc.address(buffer), 0, 0);
        Libc.check(result, "timerfd_gettime of descriptor " + timer.value());
        return new Setting(nanos(buffer, TIMESPEC_BYTES), nanos(buffer, 0));
    }

    /**
     * Arms the timer and forgets what it has counted.
     *
     * @param flags TFD_TIMER_ABSTIME when the value is a time of its clock, TFD_TIMER_CANCEL_ON_SET
     */
    public static void set(Fd timer, int flags, Setting setting) {
        ByteBuffer buffer = Libc.buffer(2 * TIMESPEC_BYTES);
        put(buffer, 0, setting.intervalNanos);
        put(buffer, TIMESPEC_BYTES, setting.valueNanos);
        long result = Libc.call(SystemCall.TIMERFD_SETTIME, timer.value(), flags, Libc.address(buffer), 0);
        Libc.check(result, "timerfd_settime of descriptor " + timer.value());
    }

    /**
     * Sets the number of expirations that the next read gives; at least 1.
     *
     * @throws io.stasis.linux.KernelException ENOTTY when the kernel has no CONFIG_CHECKPOINT_RESTORE
     */
    public static void setTicks(Fd timer, long ticks) {
        ByteBuffer buffer = Libc.buffer(8);
        buffer.putLong(0, ticks);
        long result = Libc.call(SystemCall.IOCTL, timer.value(), TFD_IOC_SET_TICKS, Libc.address(buffer), 0);
        Libc.check(result, "set the expirations of timer descriptor " + timer.value());
    }

    /** The time of a clock of clock_gettime(2) in nanoseconds. */
    public static long now(int clock) {
        ByteBuffer buffer = Libc.buffer(TIMESPEC_BYTES);
        Libc.check(Libc.call(SystemCall.CLOCK_GETTIME, clock, Libc.address(buffer), 0, 0), "clock_gettime of " + clock);
        return nanos(buffer, 0);
    }

    private static long nanos(ByteBuffer buffer, int offset) {
        return buffer.getLong(offset) * SECOND + buffer.getLong(offset + 8);
    }

    private static void put(ByteBuffer buffer, int offset, long nanos) {
        buffer.putLong(offset, nanos / SECOND).putLong(offset + 8, nanos % SECOND);
    }
}
