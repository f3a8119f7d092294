package io.stasis.linux.ptrace;

import static io.stasis.linux.ptrace.PtraceRequest.*;

import io.stasis.linux.Errno;
import io.stasis.linux.KernelException;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.seccomp.SeccompFilter;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;

/**
 * One thread under ptrace(2), seized.
 *
 * <pre>{@code
 * Tracee tracee = Tracee.seize(tid, 0);
 * tracee.interrupt();
 * Stop stop = tracee.awaitFrozen(deadline);
 * Registers registers = tracee.registers();
 * tracee.detach(0);
 * }</pre>
 *
 * The one rule: every call comes from the platform thread that seized it; the kernel answers ESRCH to any other.
 */
public final class Tracee {
    private static final int P_PID = 1;
    private static final int WNOHANG = 1;
    private static final int WSTOPPED = 2;
    private static final int WEXITED = 4;
    private static final int WNOWAIT = 0x01000000;
    private static final int WALL = 0x40000000;
    private static final int CLD_EXITED = 1;
    private static final int CLD_TRAPPED = 4;

    private static final int SECCOMP_FILTER_FLAG_LOG = 2;
    private static final int SIGINFO_BYTES = 128;
    private static final int XSTATE_MAX = 16384;

    /** Native memory for one request at a time; a tracer thread has many tracees but makes one call at a time. */
    private static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(Scratch::new);

    private final Tid tid;

    private Tracee(Tid tid) {
        this.tid = tid;
    }

    /**
     * PTRACE_SEIZE: the thread runs on until {@link #interrupt}.
     *
     * @param options PTRACE_O_* bits
     * @throws KernelException EPERM when it is a zombie, is traced already or belongs to somebody else; ESRCH when gone
     */
    public static Tracee seize(Tid tid, int options) {
        check(ptrace(PTRACE_SEIZE, tid, 0, options), "PTRACE_SEIZE", tid);
        return new Tracee(tid);
    }

    /** A thread that the kernel attached by itself, being the child of a tracee with PTRACE_O_TRACECLONE or -FORK. */
    public static Tracee autoAttached(Tid tid) {
        return new Tracee(tid);
    }

    public Tid tid() {
        return tid;
    }

    /** Asks for a PTRACE_EVENT_STOP. */
    public void interrupt() {
        check(ptrace(PTRACE_INTERRUPT, tid, 0, 0), "PTRACE_INTERRUPT", tid);
    }

    /**
     * Waits until the thread is in PTRACE_EVENT_STOP. Signals that come first are delivered, not swallowed: they are
     * looked at with WNOWAIT and handed on, so that none is lost even when this process dies in between.
     *
     * @param deadlineNanos {@link System#nanoTime} by which it must have stopped
     * @return the stop, or {@link Stop.Gone}; empty when the deadline passed
     */
    public Optional<Stop> awaitFrozen(long deadlineNanos) {
        for (int round = 0; ; round++) {
            Stop stop = peek(WNOHANG);
            if (stop == null) {
                if (System.nanoTime() > deadlineNanos) {
                    return Optional.empty();
                }
                // The first rounds only give way: a stop takes some ten microseconds.
                if (round < 20) {
                    Thread.yield();
                } else {
                    LockSupport.parkNanos(Math.min(2_000_000L, 10_000L * round));
                }
                continue;
            }
            switch (stop) {
                case Stop.Event event
                when event.isEventStop() -> {
                    consume();
                    return Optional.of(stop);
                }
                case Stop.Event event -> resume(0);
                case Stop.Signal(int signal) -> resume(signal);
                case Stop.Gone gone -> {
                    // Taken from the kernel too: a thread that its tracer has not waited for stays a zombie.
                    consume();
                    return Optional.of(gone);
                }
            }
        }
    }

    /** Waits, without a deadline, for the next stop and consumes it. */
    public Stop await() {
        Stop stop = peek(0);
        consume();
        return stop;
    }

    /** The next stop if there is one already, without consuming it; null otherwise. */
    public Stop poll() {
        return peek(WNOHANG);
    }

    /** PTRACE_CONT, delivering {@code signal} (0 for none). */
    public void resume(int signal) {
        long result = ptrace(PTRACE_CONT, tid, 0, signal);
        if (result != -Errno.ESRCH) { // ESRCH: killed meanwhile; the next wait tells
            check(result, "PTRACE_CONT", tid);
        }
    }

    /** PTRACE_SETOPTIONS. A thread that is gone is no error. */
    public void setOptions(int options) {
        long result = ptrace(PTRACE_SETOPTIONS, tid, 0, options);
        if (result != -Errno.ESRCH) {
            check(result, "PTRACE_SETOPTIONS", tid);
        }
    }

    /** PTRACE_DETACH, delivering {@code signal} (0 for none). A thread that is gone is no error. */
    public void detach(int signal) {
        long result = ptrace(PTRACE_DETACH, tid, 0, signal);
        if (result != -Errno.ESRCH) {
            check(result, "PTRACE_DETACH", tid);
        }
    }

    public Registers registers() {
        Scratch s = SCRATCH.get();
        check(ptrace(PTRACE_GETREGS, tid, 0, s.address), "PTRACE_GETREGS", tid);
        return Registers.read(s.buffer);
    }

    public void setRegisters(Registers registers) {
        Scratch s = SCRATCH.get();
        registers.write(s.buffer);
        check(ptrace(PTRACE_SETREGS, tid, 0, s.address), "PTRACE_SETREGS", tid);
    }

    /** The XSAVE area, in the standard format, as long as this processor makes it. */
    public byte[] extendedState() {
        Scratch s = SCRATCH.get();
        s.iovec(XSTATE_MAX);
        check(ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, s.iovec), "PTRACE_GETREGSET NT_X86_XSTATE", tid);
        byte[] state = new byte[(int) s.vector.getLong(8)];
        s.buffer.get(0, state);
        return state;
    }

    public void setExtendedState(byte[] state) {
        Scratch s = SCRATCH.get();
        if (state.length > XSTATE_MAX) {
            throw new IllegalArgumentException("extended state of " + state.length + " bytes");
        }
        s.buffer.put(0, state);
        s.iovec(state.length);
        check(ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, s.iovec), "PTRACE_SETREGSET NT_X86_XSTATE", tid);
    }

    /** Blocked signals, bit n-1 for signal n. */
    public long signalMask() {
        Scratch s = SCRATCH.get();
        check(ptrace(PTRACE_GETSIGMASK, tid, 8, s.address), "PTRACE_GETSIGMASK", tid);
        return s.buffer.getLong(0);
    }

    public void setSignalMask(long mask) {
        Scratch s = SCRATCH.get();
        s.buffer.putLong(0, mask);
        check(ptrace(PTRACE_SETSIGMASK, tid, 8, s.address), "PTRACE_SETSIGMASK", tid);
    }

    /**
     * The filters of seccomp(2), oldest first; empty when the thread has none.
     *
     * @throws KernelException EACCES when the tracer lacks CAP_SYS_ADMIN or is under seccomp itself
     */
    public List<SeccompFilter> seccompFilters() {
        Scratch s = SCRATCH.get();
        List<SeccompFilter> filters = new ArrayList<>();
        while (true) {
            long count = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, filters.size(), 0);
            if (count == -Errno.EINVAL || count == -Errno.ENOENT) {
                return filters; // not in filter mode; behind the last one
            }
            check(count, "PTRACE_SECCOMP_GET_FILTER", tid);
            ByteBuffer code = Libc.buffer((int) count * SeccompFilter.INSTRUCTION);
            check(
                    ptrace(PTRACE_SECCOMP_GET_FILTER, tid, filters.size(), Libc.address(code)),
                    "PTRACE_SECCOMP_GET_FILTER",
                    tid);
            byte[] instructions = new byte[code.capacity()];
            code.get(0, instructions);
            s.vector.putLong(0, filters.size()).putLong(8, 0);
            check(ptrace(PTRACE_SECCOMP_GET_METADATA, tid, 16, s.iovec), "PTRACE_SECCOMP_GET_METADATA", tid);
            filters.add(new SeccompFilter(instructions, (s.vector.getLong(8) & SECCOMP_FILTER_FLAG_LOG) != 0));
        }
    }

    /** What rseq(2) was registered with. */
    public record RseqConfiguration(long address, int size, int signature, int flags) {}

    /** The rseq registration; empty when there is none or the kernel (before 5.13) cannot tell. */
    public Optional<RseqConfiguration> rseq() {
        Scratch s = SCRATCH.get();
        long result = ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, 24, s.address);
        if (result == -Errno.EIO || result == -Errno.EINVAL) {
            return Optional.empty();
        }
        check(result, "PTRACE_GET_RSEQ_CONFIGURATION", tid);
        long address = s.buffer.getLong(0);
        return address == 0
                ? Optional.empty()
                : Optional.of(
                        new RseqConfiguration(address, s.buffer.getInt(8), s.buffer.getInt(12), s.buffer.getInt(16)));
    }

    /**
     * The signals in a queue, as siginfo_t structures of 128 bytes, oldest first.
     *
     * @param shared the queue of the whole process, or this thread's own
     */
    public List<byte[]> pendingSignals(boolean shared) {
        Scratch s = SCRATCH.get();
        List<byte[]> signals = new ArrayList<>();
        int room = XSTATE_MAX / SIGINFO_BYTES;
        while (true) {
            s.vector.putLong(0, signals.size());
            s.vector.putInt(8, shared ? PTRACE_PEEKSIGINFO_SHARED : 0);
            s.vector.putInt(12, room);
            long count = check(ptrace(PTRACE_PEEKSIGINFO, tid, s.iovec, s.address), "PTRACE_PEEKSIGINFO", tid);
            for (int i = 0; i < count; i++) {
                byte[] info = new byte[SIGINFO_BYTES];
                s.buffer.get(i * SIGINFO_BYTES, info);
                signals.add(info);
            }
            if (count < room) {
                return signals;
            }
        }
    }

    /**
     * Ends a stopped process by {@code signal}, as if it had been delivered, and takes its exit status. The signal's
     * action must be the default one.
     */
    public void killBy(int signal) {
        setSignalMask(0);
        Libc.call(SystemCall.KILL, tid.value(), signal);
        resume(0);
        while (!(peek(0) instanceof Stop.Gone)) {
            resume(signal);
        }
        reap();
    }

    /**
     * Waits for the end of a thread that was killed, and takes its exit status. For a leader this comes after all other
     * threads are reaped; its real parent can wait for it only then.
     */
    public void reap() {
        Scratch s = SCRATCH.get();
        while (true) {
            long result = Libc.call(SystemCall.WAITID, P_PID, tid.value(), s.address, WEXITED | WALL);
            if (result != -Errno.EINTR) {
                return;
            }
        }
    }

    /** PTRACE_GETEVENTMSG: after a clone or fork event the new thread's id. */
    public int eventMessage() {
        Scratch s = SCRATCH.get();
        check(ptrace(PTRACE_GETEVENTMSG, tid, 0, s.address), "PTRACE_GETEVENTMSG", tid);
        return (int) s.buffer.getLong(0);
    }

    private Stop peek(int noHang) {
        Scratch s = SCRATCH.get();
        s.buffer.putLong(8, 0).putLong(16, 0);
        long result;
        do {
            result = Libc.call(
                    SystemCall.WAITID, P_PID, tid.value(), s.address, WSTOPPED | WEXITED | WNOWAIT | WALL | noHang);
        } while (result == -Errno.EINTR);
        if (result == -Errno.ECHILD) {
            return new Stop.Gone(true, 9);
        }
        check(result, "waitid", tid);
        if (s.buffer.getInt(16) == 0) {
            return null;
        }
        int code = s.buffer.getInt(8);
        int status = s.buffer.getInt(24);
        if (code < CLD_TRAPPED) {
            return new Stop.Gone(code != CLD_EXITED, status);
        }
        int event = status >> 8;
        return event != 0 ? new Stop.Event(event, status & 0x7f) : new Stop.Signal(status & 0x7f);
    }

    private void consume() {
        Scratch s = SCRATCH.get();
        Libc.call(SystemCall.WAITID, P_PID, tid.value(), s.address, WSTOPPED | WEXITED | WALL | WNOHANG);
    }

    private static long ptrace(int request, Tid tid, long address, long data) {
        return Libc.call(SystemCall.PTRACE, request, tid.value(), address, data);
    }

    private static long check(long result, String request, Tid tid) {
        return Libc.isError(result) ? Libc.check(result, request + " of thread " + tid) : result;
    }

    @Override
    public String toString() {
        return "thread " + tid;
    }

    private static final class Scratch {
        final ByteBuffer buffer = Libc.buffer(XSTATE_MAX);
        final ByteBuffer vector = Libc.buffer(16);
        final long address = Libc.address(buffer);
        final long iovec = Libc.address(vector);

        void iovec(long length) {
            vector.putLong(0, address).putLong(8, length);
        }
    }
}
