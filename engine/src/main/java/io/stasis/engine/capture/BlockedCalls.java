package io.stasis.engine.capture;

import io.stasis.image.model.ThreadImage.BlockedCall;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.memory.ProcessMemory;
import io.stasis.linux.proc.ProcFiles;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.ptrace.Registers;
import io.stasis.linux.ptrace.Registers.Register;
import io.stasis.linux.seccomp.SeccompFilter;
import io.stasis.linux.time.SchedulerClock;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * System calls that threads are blocked in when they are frozen, and the time they have left.
 *
 * <p>Three kinds, by what the kernel left in rax (signal(7), "Interruption of system calls"):
 *
 * <ul>
 *   <li>ERESTARTSYS, -NOINTR, -NOHAND: the registers alone restart the call; nothing to do.
 *   <li>ERESTART_RESTARTBLOCK (nanosleep, clock_nanosleep, poll, futex with a timeout): the kernel keeps the deadline.
 *       The thread goes on by itself; for the image the time left is found out.
 *   <li>EINTR from calls that the kernel never restarts (epoll_wait, sigtimedwait, semop, socket calls with a timeout):
 *       a program would see an EINTR that no signal of its own caused. They are rewound, with what is left of their
 *       timeout where that is in a register; a timeout in memory starts anew.
 * </ul>
 *
 * The kernel does not tell when a sleep began. It tells when the thread last ran (se.exec_start in
 * /proc/PID/task/TID/sched), which for a blocked thread is the same moment to some microseconds, or a later one on a
 * machine whose time is stolen; it must be read before the thread is disturbed. Where the file is missing the sleep is taken to have just begun.
 */
public final class BlockedCalls {
    private static final long EINTR = -4;
    private static final int TIMER_ABSTIME = 1;
    private static final int FUTEX_CMD_MASK = 0x7f;
    private static final int FUTEX_WAIT = 0;
    /** Bytes below the stack pointer that a function may use without moving it. */
    private static final int RED_ZONE = 128;

    private static final Set<Integer> NEVER_RESTARTED = Set.of(
            SystemCall.EPOLL_WAIT,
            SystemCall.EPOLL_PWAIT,
            SystemCall.EPOLL_PWAIT2,
            SystemCall.RT_SIGTIMEDWAIT,
            SystemCall.SEMOP,
            SystemCall.SEMTIMEDOP,
            SystemCall.IO_GETEVENTS,
            SystemCall.READ,
            SystemCall.READV,
            SystemCall.RECVFROM,
            SystemCall.RECVMSG,
            SystemCall.RECVMMSG,
            SystemCall.ACCEPT,
            SystemCall.ACCEPT4);

    private static final Set<Integer> TIMED = Set.of(
            SystemCall.NANOSLEEP,
            SystemCall.CLOCK_NANOSLEEP,
            SystemCall.POLL,
            SystemCall.FUTEX,
            SystemCall.EPOLL_WAIT,
            SystemCall.EPOLL_PWAIT,
            SystemCall.RESTART_SYSCALL);

    /**
     * Calls that go on through restart_syscall(2), by thread: at a second checkpoint the registers no longer tell which
     * call it was, nor when it ends.
     */
    private static final Map<Integer, Restarted> RESTARTED = new ConcurrentHashMap<>();

    private static volatile SchedulerClock schedulerClock = SchedulerClock.unknown();

    private record Restarted(long startTime, long stackPointer, long number, long deadlineNanos) {}

    private BlockedCalls() {}

    /** Measures the scheduler's clock; to be called shortly before processes are frozen, as it sleeps a little. */
    static void calibrate() {
        schedulerClock = SchedulerClock.measure();
    }

    /**
     * When the thread fell asleep in a call that has a timeout, as CLOCK_MONOTONIC nanoseconds; 0 when it is in none.
     * To be asked before the thread is interrupted.
     */
    static long asleepSince(Pid pid, Tid tid) {
        long number = ProcFiles.currentSystemCall(pid, tid);
        if (!TIMED.contains((int) number)) {
            return 0;
        }
        SchedulerClock clock = schedulerClock;
        var started = ProcFiles.schedExecStart(pid, tid);
        var stat = ProcStat.find(pid, tid);
        return started.isEmpty() || stat.isEmpty() || !clock.isKnown()
                ? 0
                : clock.monotonic(started.getAsLong(), stat.get().processor());
    }

    /** The registers the thread must go on with: rewound when it would otherwise see an EINTR of our making. */
    static Registers withoutSpuriousInterrupt(Registers registers, long asleepSince, long now, boolean signalDue) {
        int number = (int) registers.get(Register.ORIG_RAX);
        if (registers.get(Register.RAX) != EINTR || !NEVER_RESTARTED.contains(number) || signalDue) {
            return registers;
        }
        Registers rewound = registers.rewound();
        int timeout = (int) registers.get(Register.R10);
        boolean milliseconds = number == SystemCall.EPOLL_WAIT || number == SystemCall.EPOLL_PWAIT;
        if (milliseconds && timeout > 0 && asleepSince != 0) {
            long left = Math.max(0, timeout - (now - asleepSince) / 1_000_000);
            rewound = rewound.with(Register.R10, left);
        }
        return rewound;
    }

    /** What the image must know to make the call again; null when the registers are enough. */
    static BlockedCall describe(
            Pid pid, Tid tid, long startTime, Registers registers, ProcessMemory memory, long asleepSince, long now) {
        if (!registers.restartsFromBlock()) {
            RESTARTED.remove(tid.value());
            return null;
        }
        long number = registers.get(Register.ORIG_RAX);
        long[] arguments = registers.systemCallArguments();
        long stackPointer = registers.get(Register.RSP);
        if (number == SystemCall.RESTART_SYSCALL) {
            Restarted known = RESTARTED.get(tid.value());
            if (known != null && known.startTime == startTime && known.stackPointer == stackPointer) {
                long left = known.deadlineNanos == Long.MAX_VALUE ? -1 : Math.max(0, known.deadlineNanos - now);
                return new BlockedCall(known.number, arguments, left);
            }
            number = fromWaitChannel(ProcFiles.wchan(pid, tid), arguments);
        }
        long left = remaining(number, arguments, memory, asleepSince, now);
        RESTARTED.put(
                tid.value(), new Restarted(startTime, stackPointer, number, left < 0 ? Long.MAX_VALUE : now + left));
        return new BlockedCall(number, arguments, left);
    }

    /** Remembers the call of a thread that has just been restored. */
    public static void remember(int tid, long startTime, long stackPointer, BlockedCall call, long now) {
        long deadline = call.remainingNanos() < 0 ? Long.MAX_VALUE : now + call.remainingNanos();
        RESTARTED.put(tid, new Restarted(startTime, stackPointer, call.number(), deadline));
    }

    /** Whether the thread's seccomp filters punish restart_syscall(2), by which the kernel would go on with the call. */
    static boolean mayNotRestart(List<SeccompFilter> filters, Registers registers) {
        if (filters.isEmpty()) {
            return false;
        }
        int action = SeccompFilter.action(filters, SystemCall.RESTART_SYSCALL, registers.instructionPointer());
        return action != SeccompFilter.SECCOMP_RET_ALLOW && action != SeccompFilter.SECCOMP_RET_LOG;
    }

    /**
     * Registers with which the thread makes its call again with the time that is left, instead of restarting it. A
     * timeout in memory is written below its stack, where nothing is kept.
     */
    static Registers madeAnew(Registers registers, BlockedCall call, ProcessMemory memory) {
        Registers again = registers.rewound().with(Register.RAX, call.number());
        long left = call.remainingNanos();
        if (left < 0) {
            return again;
        }
        long place = (registers.get(Register.RSP) - RED_ZONE - 16) & -16L;
        ByteBuffer timeout = Libc.buffer(16);
        timeout.putLong(0, left / 1_000_000_000L).putLong(8, left % 1_000_000_000L);
        memory.write(place, timeout);
        return switch ((int) call.number()) {
            case SystemCall.NANOSLEEP -> again.with(Register.RDI, place);
            case SystemCall.CLOCK_NANOSLEEP -> again.with(Register.RDX, place);
            case SystemCall.FUTEX -> again.with(Register.R10, place);
            default -> again.with(Register.RDX, Math.min(Integer.MAX_VALUE, (left + 999_999) / 1_000_000)); // poll
        };
    }

    private static long fromWaitChannel(String channel, long[] arguments) {
        if (channel.contains("nanosleep")) {
            // clock_nanosleep's first argument is a small clock id, nanosleep's a pointer.
            return arguments[0] >= 0 && arguments[0] < 64 ? SystemCall.CLOCK_NANOSLEEP : SystemCall.NANOSLEEP;
        }
        return channel.contains("futex") ? SystemCall.FUTEX : SystemCall.POLL;
    }

    private static long remaining(long number, long[] arguments, ProcessMemory memory, long asleepSince, long now) {
        long slept = asleepSince == 0 ? 0 : Math.max(0, now - asleepSince);
        if (number == SystemCall.NANOSLEEP) {
            return sleepLeft(memory, arguments[0], arguments[1], slept);
        }
        if (number == SystemCall.CLOCK_NANOSLEEP && (arguments[1] & TIMER_ABSTIME) == 0) {
            return sleepLeft(memory, arguments[2], arguments[3], slept);
        }
        if (number == SystemCall.POLL) {
            int timeout = (int) arguments[2];
            return timeout < 0 ? -1 : Math.max(0, timeout * 1_000_000L - slept);
        }
        if (number == SystemCall.FUTEX && arguments[3] != 0 && (arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT) {
            return Math.max(0, timespec(memory, arguments[3]) - slept);
        }
        return -1;
    }

    /** nanosleep(2) wrote the exact rest to its second argument when it was given one. */
    private static long sleepLeft(ProcessMemory memory, long request, long rest, long slept) {
        return rest != 0 ? timespec(memory, rest) : Math.max(0, timespec(memory, request) - slept);
    }

    private static long timespec(ProcessMemory memory, long address) {
        ByteBuffer buffer = Libc.buffer(16);
        memory.read(address, buffer);
        return buffer.getLong(0) * 1_000_000_000L + buffer.getLong(8);
    }
}
