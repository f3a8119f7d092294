package io.stasis.engine.resource.timer;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.UnsupportedResourceException;
import io.stasis.image.model.ProcessImage.PosixTimer;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.ProcFiles;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.proc.Tasks;
import io.stasis.linux.ptrace.CallTable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * timer_create(2): /proc/PID/timers tells what a process has, timer_gettime(2) in the process what they have left. A timer
 * goes on with that; the kernel does not tell which ones were set to a time of day. Expirations that were counted beside a
 * pending signal (timer_getoverrun(2)) are lost.
 */
public final class PosixTimers {
    private static final int PR_TIMER_CREATE_RESTORE_IDS = 77;
    private static final int RESTORE_IDS_OFF = 0;
    private static final int RESTORE_IDS_ON = 1;

    private static final int SIGEV_NONE = 1;
    private static final int SIGEV_THREAD_ID = 4;
    /** Bytes of {@code struct sigevent}. */
    private static final int SIGEVENT_BYTES = 64;

    /** Bytes of {@code struct itimerspec}: interval, then value. */
    private static final int SETTING_BYTES = 32;

    private static final long SECOND = 1_000_000_000L;
    /** How many timers are asked in one table. */
    private static final int BATCH = 256;

    // A negative clock: in its lowest bits the kind, 3 for a device's; a thread's or a process's; above, its id,
    // inverted.
    private static final int CLOCK_KIND = 3;
    private static final int CLOCK_OF_DEVICE = 3;
    private static final int CLOCK_OF_THREAD = 4;
    private static final int CLOCK_ID_SHIFT = 3;

    // siginfo_t
    private static final int SI_CODE = 8;
    private static final int SI_TIMERID = 16;
    private static final int SI_TIMER = -2;

    private PosixTimers() {}

    /** What of the process's timers cannot be captured. */
    public static List<Problem> problems(Pid pid) {
        List<Problem> problems = new ArrayList<>();
        for (ProcFiles.PosixTimer timer : ProcFiles.posixTimers(pid)) {
            String reason = reason(pid, timer.clock());
            if (reason != null) {
                problems.add(new Problem(
                        pid.value(),
                        -1,
                        "POSIX timer " + timer.id() + " of clock " + timer.clock(),
                        reason,
                        "delete it before the checkpoint"));
            }
        }
        return problems;
    }

    /** Why a timer of the clock cannot be made again in the process, null if it can. */
    private static String reason(Pid pid, int clock) {
        if (clock >= 0) {
            return null;
        }
        if ((clock & CLOCK_KIND) == CLOCK_OF_DEVICE) {
            return "it is the clock of a device";
        }
        int id = ~(clock >> CLOCK_ID_SHIFT);
        if ((clock & CLOCK_OF_THREAD) == 0) {
            return id == 0 || isItself(ProcStatus.find(pid), id) ? null : "it is the clock of process " + id;
        }
        if (id == 0) {
            return Tasks.threads(pid).length == 1
                    ? null
                    : "it is the clock of the thread that made it, and the kernel does not tell which one that was";
        }
        return hasThreadItself(pid, id) ? null : "it is the clock of thread " + id + ", which is none of this process";
    }

    /** Clocks name threads as their process sees them. */
    private static boolean hasThreadItself(Pid pid, int tid) {
        return IntStream.of(Tasks.threads(pid)).anyMatch(each -> isItself(ProcStatus.find(pid, new Tid(each)), tid));
    }

    private static boolean isItself(Optional<ProcStatus> status, int id) {
        return status.filter(s -> s.nspid()[s.nspid().length - 1] == id).isPresent();
    }

    private static boolean isThread(Pid pid, int tid) {
        return Files.exists(Path.of("/proc/" + pid + "/task/" + tid));
    }

    /**
     * The timers of a frozen process, by id.
     *
     * @param run makes calls in the process
     * @throws UnsupportedResourceException when one was made after the survey that cannot be captured
     */
    public static List<PosixTimer> read(Pid pid, Function<CallTable, CallTable.Results> run) {
        List<ProcFiles.PosixTimer> found = new ArrayList<>(ProcFiles.posixTimers(pid));
        List<Problem> problems = found.isEmpty() ? List.of() : problems(pid);
        if (!problems.isEmpty()) {
            throw new UnsupportedResourceException(problems);
        }
        found.sort(Comparator.comparingInt(ProcFiles.PosixTimer::id));
        List<PosixTimer> timers = new ArrayList<>();
        for (int from = 0; from < found.size(); from += BATCH) {
            List<ProcFiles.PosixTimer> batch = found.subList(from, Math.min(from + BATCH, found.size()));
            CallTable calls = new CallTable();
            long data = calls.reserve(batch.size() * SETTING_BYTES);
            for (int i = 0; i < batch.size(); i++) {
                int id = batch.get(i).id();
                calls.must("ask for timer " + id, SystemCall.TIMER_GETTIME, id, data + (long) SETTING_BYTES * i);
            }
            CallTable.Results results = run.apply(calls);
            for (int i = 0; i < batch.size(); i++) {
                int at = SETTING_BYTES * i;
                timers.add(image(pid, batch.get(i), nanos(results, data, at + 16), nanos(results, data, at)));
            }
        }
        return timers;
    }

    private static long nanos(CallTable.Results results, long data, int offset) {
        return results.dataLong(data, offset) * SECOND + results.dataLong(data, offset + 8);
    }

    private static PosixTimer image(Pid pid, ProcFiles.PosixTimer timer, long value, long interval) {
        // Nobody gets the signal of a timer whose thread has ended.
        boolean orphan = (timer.notification() & SIGEV_THREAD_ID) != 0 && !isThread(pid, timer.target());
        return new PosixTimer(
                timer.id(),
                timer.clock(),
                orphan ? SIGEV_NONE : timer.notification(),
                timer.signal(),
                timer.value(),
                orphan ? pid.value() : timer.target(),
                value,
                interval);
    }

    /**
     * Disarms the timers that expired for the only time after they were read: their signal is among those that are
     * pending, and would come twice.
     *
     * @param pending siginfo_t structures, read later than the timers
     */
    public static List<PosixTimer> withoutExpired(List<PosixTimer> timers, List<byte[]> pending) {
        Set<Integer> expired = new HashSet<>();
        for (byte[] info : pending) {
            ByteBuffer buffer = ByteBuffer.wrap(info).order(ByteOrder.nativeOrder());
            if (buffer.getInt(SI_CODE) == SI_TIMER) {
                expired.add(buffer.getInt(SI_TIMERID));
            }
        }
        return timers.stream()
                .map(t -> t.intervalNanos() == 0 && expired.contains(t.id())
                        ? new PosixTimer(t.id(), t.clock(), t.notification(), t.signal(), t.sigval(), t.target(), 0, 0)
                        : t)
                .toList();
    }

    /** Adds the call after which timer_create(2) takes ids; it fails before Linux 6.15. Returns its index. */
    public static int chooseIds(CallTable calls) {
        return calls.query(SystemCall.PRCTL, PR_TIMER_CREATE_RESTORE_IDS, RESTORE_IDS_ON);
    }

    /**
     * Adds the calls that make the timers in a process that never had any, by its main thread.
     *
     * @param timers by id
     * @param choosing whether {@link #chooseIds} succeeded; without it the kernel counts ids from 0 on, and those in
     *     between are used up
     */
    public static void create(List<PosixTimer> timers, boolean choosing, Supplier<CallTable> calls) {
        int next = 0;
        for (PosixTimer timer : timers) {
            while (!choosing && next < timer.id()) {
                make(timer, calls.get());
                calls.get().must("delete timer " + next, SystemCall.TIMER_DELETE, next);
                next++;
            }
            make(timer, calls.get());
            CallTable table = calls.get();
            table.must("find timer " + timer.id(), SystemCall.TIMER_GETTIME, timer.id(), table.reserve(SETTING_BYTES));
            next++;
        }
        if (choosing) {
            calls.get()
                    .must(
                            "let the kernel choose timer ids",
                            SystemCall.PRCTL,
                            PR_TIMER_CREATE_RESTORE_IDS,
                            RESTORE_IDS_OFF);
        }
    }

    private static void make(PosixTimer timer, CallTable calls) {
        ByteBuffer event = ByteBuffer.allocate(SIGEVENT_BYTES).order(ByteOrder.nativeOrder());
        event.putLong(timer.sigval())
                .putInt(timer.signal())
                .putInt(timer.notification())
                .putInt(timer.target());
        calls.must(
                "make timer " + timer.id(),
                SystemCall.TIMER_CREATE,
                timer.clock(),
                calls.data(event.array()),
                calls.longs(timer.id()));
    }

    /** Adds the calls that let the timers run. */
    public static void arm(List<PosixTimer> timers, Supplier<CallTable> calls) {
        for (PosixTimer timer : timers) {
            if (timer.valueNanos() > 0) {
                CallTable table = calls.get();
                long setting = table.longs(
                        timer.intervalNanos() / SECOND,
                        timer.intervalNanos() % SECOND,
                        timer.valueNanos() / SECOND,
                        timer.valueNanos() % SECOND);
                table.must("arm timer " + timer.id(), SystemCall.TIMER_SETTIME, timer.id(), 0, setting, 0);
            }
        }
    }
}
