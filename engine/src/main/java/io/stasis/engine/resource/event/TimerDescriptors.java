package io.stasis.engine.resource.event;

import io.stasis.engine.Outcome;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.engine.resource.StubDescriptors;
import io.stasis.image.model.OpenDescription.TimerDescriptor;
import io.stasis.linux.Fd;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FdInfo;
import io.stasis.linux.ptrace.CallTable;
import io.stasis.linux.time.TimerFd;
import java.util.List;
import java.util.SortedMap;

/**
 * timerfd_create(2). Time does not pass for a timer while its process is away, and it goes on with what it had left; only
 * one that was set to a time of day keeps it, and is due at once when that is over.
 *
 * <p>That such a timer was cancelled by a change of the clock (ECANCELED) and not read since, the kernel does not tell.
 */
public final class TimerDescriptors implements DescriptorKind<TimerDescriptor> {
    private static final String LINK = "anon_inode:[timerfd]";

    @Override
    public Class<TimerDescriptor> type() {
        return TimerDescriptor.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        return descriptor.link().equals(LINK);
    }

    @Override
    public TimerDescriptor capture(Descriptor descriptor) {
        try (StubDescriptors copies = new StubDescriptors(descriptor.pid());
                Fd timer = copies.copy(descriptor.fd())) {
            // Asked for, an interval timer that expired counts the intervals that are over and runs again: only then
            // does
            // the kernel know how much is left of the current one.
            TimerFd.get(timer);
        }
        FdInfo info = Descriptor.read(descriptor.pid(), descriptor.fd())
                .orElse(descriptor)
                .info();
        long timeOfDay = TimerFd.now(TimerFd.CLOCK_REALTIME);
        int clock = info.value("clockid").map(Integer::parseInt).orElse(TimerFd.CLOCK_REALTIME);
        int flags = info.value("settime flags")
                .map(text -> Integer.parseInt(text, 8))
                .orElse(0);
        long ticks = info.value("ticks").map(Long::parseUnsignedLong).orElse(0L);
        long interval = info.value("it_interval").map(TimerDescriptors::nanos).orElse(0L);
        long value = info.value("it_value").map(TimerDescriptors::nanos).orElse(0L);
        if (value == 0 && ticks != 0) {
            value = interval; // it expired between the question and the answer
        }
        long deadline = value > 0 && isTimeOfDay(clock, flags) ? sum(timeOfDay, value) : 0;
        return new TimerDescriptor(descriptor.statusFlags(), clock, flags, ticks, value, interval, deadline);
    }

    /** Seconds and nanoseconds such as "(0, 987150679)". */
    private static long nanos(String pair) {
        String[] numbers = pair.replaceAll("[()\\s]", "").split(",");
        return Long.parseLong(numbers[0]) * 1_000_000_000L + Long.parseLong(numbers[1]);
    }

    /** The kernel's end of time for what lies beyond it. */
    private static long sum(long time, long nanos) {
        return time + Math.min(nanos, Long.MAX_VALUE - time);
    }

    private static boolean isTimeOfDay(int clock, int flags) {
        return (flags & TimerFd.TFD_TIMER_ABSTIME) != 0
                && (clock == TimerFd.CLOCK_REALTIME || clock == TimerFd.CLOCK_REALTIME_ALARM);
    }

    @Override
    public void open(TimerDescriptor description, int target, StubCalls stub) {
        CallTable calls = stub.calls();
        int made = calls.must(
                "make a timerfd",
                SystemCall.TIMERFD_CREATE,
                description.clock(),
                (description.statusFlags() & Fcntl.O_NONBLOCK) | Fcntl.O_CLOEXEC);
        stub.place(made, target);
    }

    @Override
    public List<Outcome.Connection> complete(SortedMap<Integer, TimerDescriptor> byTarget, StubDescriptors stub) {
        byTarget.forEach((target, description) -> {
            try (Fd timer = stub.copy(target)) {
                arm(timer, description);
            }
        });
        return List.of();
    }

    private static void arm(Fd timer, TimerDescriptor description) {
        long ticks = description.ticks();
        long value = description.valueNanos();
        if (value > 0 || description.intervalNanos() > 0) {
            if (description.deadlineNanos() > 0) {
                value = description.deadlineNanos();
                if (ticks > 0 && value <= TimerFd.now(description.clock())) {
                    ticks++; // it expires at once, and the ticks set below are to include that
                }
            } else if (value > 0 && (description.flags() & TimerFd.TFD_TIMER_ABSTIME) != 0) {
                value = sum(TimerFd.now(description.clock()), value);
            }
            TimerFd.set(timer, description.flags(), new TimerFd.Setting(value, description.intervalNanos()));
        }
        if (ticks != 0) {
            TimerFd.setTicks(timer, ticks);
        }
    }
}
