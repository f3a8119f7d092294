package io.stasis.linux.time;

import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.ProcFiles;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalLong;

/**
 * How the scheduler's clock (the time stamps of {@code /proc/PID/task/TID/sched}) and CLOCK_MONOTONIC differ, processor
 * by processor: stolen time and the time of interrupts are missing from the scheduler's clock, on each processor its
 * own (kernel/sched/core.c, {@code update_rq_clock_task}). As both only grow, measure close to the use.
 *
 * <p>Every inexactness here makes a moment seem later than it was, never earlier: what is computed from it, such as the
 * time that a sleep has left, is never too short.
 */
public final class SchedulerClock {
    /** Bytes of a processor mask: 1024 processors, as glibc has it. */
    private static final int MASK_BYTES = 128;

    private static final int CLOCK_MONOTONIC = 1;
    private static final int SAMPLES = 3;
    private static final int SLEEP_NANOS = 1000;

    private final Map<Integer, Long> offsets;
    private final long least;

    private SchedulerClock(Map<Integer, Long> offsets) {
        this.offsets = offsets;
        this.least = offsets.values().stream().mapToLong(Long::longValue).min().orElse(0);
    }

    /**
     * Measures on every processor that this thread may run on. Takes some ten microseconds a processor, during which
     * the thread moves from one to the next. Where the kernel has no {@code sched} files nothing is measured.
     */
    public static SchedulerClock measure() {
        ByteBuffer allowed = Libc.buffer(MASK_BYTES);
        Map<Integer, Long> offsets = new HashMap<>();
        if (Libc.call(SystemCall.SCHED_GETAFFINITY, 0, MASK_BYTES, Libc.address(allowed)) <= 0) {
            return new SchedulerClock(offsets);
        }
        ByteBuffer one = Libc.buffer(MASK_BYTES);
        try {
            for (int processor = 0; processor < MASK_BYTES * 8; processor++) {
                int bit = 1 << (processor & 7);
                if ((allowed.get(processor / 8) & bit) != 0) {
                    one.put(processor / 8, (byte) bit);
                    long moved = Libc.call(SystemCall.SCHED_SETAFFINITY, 0, MASK_BYTES, Libc.address(one));
                    one.put(processor / 8, (byte) 0);
                    OptionalLong offset = moved == 0 ? here() : OptionalLong.empty();
                    if (offset.isPresent()) {
                        offsets.put(processor, offset.getAsLong());
                    }
                }
            }
        } finally {
            Libc.call(SystemCall.SCHED_SETAFFINITY, 0, MASK_BYTES, Libc.address(allowed));
        }
        return new SchedulerClock(offsets);
    }

    /** A clock of which nothing is known yet. */
    public static SchedulerClock unknown() {
        return new SchedulerClock(Map.of());
    }

    /** True when at least one processor was measured. */
    public boolean isKnown() {
        return !offsets.isEmpty();
    }

    /**
     * A time stamp of the scheduler as CLOCK_MONOTONIC nanoseconds.
     *
     * @param stamp in nanoseconds, as {@link ProcFiles#schedExecStart} gives it
     * @param processor where it was taken; for one that was not measured the latest possible moment is told
     */
    public long monotonic(long stamp, int processor) {
        return stamp - offsets.getOrDefault(processor, least);
    }

    /**
     * The scheduler's clock minus CLOCK_MONOTONIC on the processor this thread runs on. A thread's time stamp is exact
     * just after it was put on a processor, so it sleeps before each sample; the best sample has the least delay.
     */
    private static OptionalLong here() {
        ByteBuffer time = Libc.buffer(32);
        long address = Libc.address(time);
        Pid self = new Pid((int) Libc.call(SystemCall.GETPID));
        Tid thread = new Tid((int) Libc.call(SystemCall.GETTID));
        long best = Long.MIN_VALUE;
        for (int i = 0; i < SAMPLES; i++) {
            time.putLong(16, 0).putLong(24, SLEEP_NANOS);
            Libc.call(SystemCall.NANOSLEEP, address + 16, 0);
            // The stamp first: a clock that is read late errs on the safe side.
            OptionalLong start = ProcFiles.schedExecStart(self, thread);
            Libc.check(Libc.call(SystemCall.CLOCK_GETTIME, CLOCK_MONOTONIC, address), "clock_gettime");
            if (start.isEmpty()) {
                return OptionalLong.empty();
            }
            long now = time.getLong(0) * 1_000_000_000L + time.getLong(8);
            best = Math.max(best, start.getAsLong() - now);
        }
        return OptionalLong.of(best);
    }
}
