package io.stasis.linux.proc;

import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/**
 * The small files of {@code /proc/P}, see proc(5). Reading personality, auxv, environ and wchan needs ptrace read
 * access; timerslack of another process CAP_SYS_NICE as well.
 */
public final class ProcFiles {
    /** RLIM_INFINITY. */
    public static final long UNLIMITED = -1;

    private static final int RLIM_NLIMITS = 16;
    private static final int SIGEV_NONE = 1;
    private static final int SIGEV_THREAD = 2;
    private static final int SIGEV_THREAD_ID = 4;

    private ProcFiles() {}

    public static int oomScoreAdj(Pid pid) {
        return Procfs.read(pid, Procfs.file(pid, "oom_score_adj")).integer();
    }

    /** To lower it below the last value set by root needs CAP_SYS_RESOURCE ({@code EACCES}). */
    public static void writeOomScoreAdj(Pid pid, int value) {
        Procfs.write(pid, Procfs.file(pid, "oom_score_adj"), Integer.toString(value));
    }

    public static int coredumpFilter(Pid pid) {
        return (int) Procfs.read(pid, Procfs.file(pid, "coredump_filter")).hex();
    }

    public static void writeCoredumpFilter(Pid pid, int value) {
        Procfs.write(pid, Procfs.file(pid, "coredump_filter"), "0x" + Integer.toHexString(value));
    }

    public static long personality(Pid pid) {
        return Procfs.read(pid, Procfs.file(pid, "personality")).hex();
    }

    /** Pairs of native longs, ended by AT_NULL. */
    public static byte[] auxv(Pid pid) {
        return Procfs.readBytes(pid, Procfs.file(pid, "auxv"));
    }

    /** NAME=value entries, each ended by a zero byte, as they stand in memory now. */
    public static byte[] environ(Pid pid) {
        return Procfs.readBytes(pid, Procfs.file(pid, "environ"));
    }

    /** Arguments; empty for zombies and kernel threads. */
    public static List<String> cmdline(Pid pid) {
        ProcText text = Procfs.read(pid, Procfs.file(pid, "cmdline"));
        List<String> arguments = new ArrayList<>();
        int start = 0;
        for (int i = 0; i < text.length; i++) {
            if (text.bytes[i] == 0) {
                arguments.add(text.text(start, i));
                start = i + 1;
            }
        }
        if (start < text.length) {
            arguments.add(text.text(start, text.length));
        }
        return List.copyOf(arguments);
    }

    /** Timer slack of the main thread in nanoseconds. */
    public static long timerslack(Pid pid) {
        return timerslack(pid, pid.leader());
    }

    /** Timer slack of a thread in nanoseconds. */
    public static long timerslack(Pid pid, Tid tid) {
        // Not below task/, but any thread id leads to its entry in /proc.
        return Procfs.read(pid, "/proc/" + tid.value() + "/timerslack_ns").decimal();
    }

    /** The kernel function a thread sleeps in; "0" when it runs, is ours to trace no more, or the kernel hides it. */
    public static String wchan(Pid pid, Tid tid) {
        return Procfs.read(pid, Procfs.file(pid, tid, "wchan")).restOfLine();
    }

    /** Number of the system call a thread is blocked in, see proc_pid_syscall(5); -1 when it runs or is gone. */
    public static long currentSystemCall(Pid pid, Tid tid) {
        if (Procfs.tryRead(Procfs.file(pid, tid, "syscall")) <= 0) {
            return -1;
        }
        ProcText text = Procfs.lastText();
        int first = text.peek();
        return first >= '0' && first <= '9' ? text.decimal() : -1;
    }

    /**
     * A timer of timer_create(2).
     *
     * @param id its timer_t for the kernel
     * @param signal {@code sigev_signo}
     * @param value {@code sigev_value}
     * @param notification {@code sigev_notify}: SIGEV_SIGNAL (0), SIGEV_NONE (1), SIGEV_THREAD (2), SIGEV_THREAD_ID (4)
     * @param target the process that gets the signal, or with SIGEV_THREAD_ID the thread
     * @param clock clock of clock_gettime(2); a negative one is a processor time clock, or a device's
     */
    public record PosixTimer(int id, int signal, long value, int notification, int target, int clock) {}

    /** The process's timers of timer_create(2); empty when it is gone or the kernel does not list them. */
    public static List<PosixTimer> posixTimers(Pid pid) {
        return Procfs.tryRead(Procfs.file(pid, "timers")) > 0 ? parsePosixTimers(Procfs.lastText()) : List.of();
    }

    static List<PosixTimer> parsePosixTimers(ProcText text) {
        List<PosixTimer> timers = new ArrayList<>();
        while (!text.atEnd()) {
            text.key();
            int id = text.integer();
            text.skipLine();
            text.key();
            int signal = text.integer();
            text.position++;
            long value = text.hex();
            text.skipLine();
            text.key();
            // Such as "signal/tid.4711".
            String[] words = text.restOfLine().split("[/.]");
            int notification = (words[0].equals("none") ? SIGEV_NONE : words[0].equals("thread") ? SIGEV_THREAD : 0)
                    | (words[1].equals("tid") ? SIGEV_THREAD_ID : 0);
            text.key();
            timers.add(new PosixTimer(id, signal, value, notification, Integer.parseInt(words[2]), text.integer()));
            text.skipLine();
        }
        return timers;
    }

    /** Whether ptrace(2) would let us read the process: the kernel asks the same question for its auxiliary vector. */
    public static boolean mayTrace(Pid pid) {
        return Procfs.tryRead(Procfs.file(pid, "auxv")) >= 0;
    }

    /** Soft and hard limit of each RLIMIT_ number, {@link #UNLIMITED} for RLIM_INFINITY; getrlimit(2). */
    public static long[][] limits(Pid pid) {
        return parseLimits(Procfs.read(pid, Procfs.file(pid, "limits")));
    }

    static long[][] parseLimits(ProcText text) {
        long[][] limits = new long[RLIM_NLIMITS][2];
        text.skipLine();
        for (int i = 0; i < RLIM_NLIMITS; i++) {
            // A name of 25 columns, then two columns of numbers; the lines are in the order of the RLIMIT_ numbers.
            text.position += 25;
            limits[i][0] = limit(text);
            limits[i][1] = limit(text);
            text.skipLine();
        }
        return limits;
    }

    private static long limit(ProcText text) {
        text.skipBlanks();
        if (text.startsWith("unlimited")) {
            text.position += "unlimited".length();
            return UNLIMITED;
        }
        return text.decimal();
    }

    /**
     * When a thread was last put on a processor or accounted there, in nanoseconds of the scheduler's clock: for one that
     * sleeps about the time it fell asleep at the latest. Empty when the kernel has no {@code sched} file.
     */
    public static OptionalLong schedExecStart(Pid pid, Tid tid) {
        return Procfs.tryRead(Procfs.file(pid, tid, "sched")) < 0
                ? OptionalLong.empty()
                : parseExecStart(Procfs.lastText());
    }

    static OptionalLong parseExecStart(ProcText text) {
        while (!text.atEnd()) {
            if (text.startsWith("se.exec_start")) {
                text.key();
                long millis = text.decimal();
                text.position++;
                return OptionalLong.of(millis * 1_000_000 + text.decimal());
            }
            text.skipLine();
        }
        return OptionalLong.empty();
    }
}
