package io.stasis.tools.terminal;

import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;

/**
 * Brings signals that this process receives to a Java thread, all of them, those the JVM keeps for itself (SIGQUIT,
 * SIGUSR2) included.
 *
 * <p>The handler is ten machine instructions in a page of its own: it writes the {@code siginfo_t} to a pipe, which is
 * safe at any moment in any thread (signal-safety(7)). A thread of this class reads the pipe.
 */
public final class SignalRelay {
    public static final int SIGHUP = 1;
    public static final int SIGINT = 2;
    public static final int SIGQUIT = 3;
    public static final int SIGUSR1 = 10;
    public static final int SIGUSR2 = 12;
    public static final int SIGTERM = 15;
    public static final int SIGCONT = 18;
    public static final int SIGTSTP = 20;
    public static final int SIGWINCH = 28;

    /** What is relayed. SIGSTOP and SIGKILL cannot be caught. */
    private static final int[] RELAYED = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGCONT, SIGTSTP, SIGWINCH
    };

    private static final int SIGINFO_BYTES = 128;
    private static final int O_CLOEXEC = 02000000;
    private static final int O_NONBLOCK = 04000;
    private static final int F_SETFL = 4;
    private static final long SA_SIGINFO = 4;
    private static final long SA_RESTORER = 0x04000000;
    private static final long SA_RESTART = 0x10000000;
    private static final int PAGE = 4096;
    private static final int EINTR = 4;

    /** Told of every signal, one after the other, on a thread of the relay. */
    public interface Listener {
        /**
         * @param kernel whether the kernel sent it (the terminal's interrupt key, a new window size), not a process
         */
        void received(int signal, boolean kernel);
    }

    private SignalRelay() {}

    /** Takes over the signals for the rest of this process's life. */
    public static void start(Listener listener) {
        ByteBuffer ends = Libc.buffer(8);
        Libc.check(Libc.call(SystemCall.PIPE2, Libc.address(ends), O_CLOEXEC), "pipe2 for the signal relay");
        int readEnd = ends.getInt(0);
        int writeEnd = ends.getInt(4);
        Libc.check(Libc.call(SystemCall.FCNTL, writeEnd, F_SETFL, O_NONBLOCK), "fcntl of the signal relay's pipe");
        Thread thread = new Thread(() -> read(readEnd, listener), "signal-relay");
        thread.setDaemon(true);
        thread.start();
        install(writeEnd);
    }

    private static void install(int pipe) {
        // void handler(int signal, siginfo_t *info, void *context) { write(pipe, info, 128); }
        ByteBuffer code = Libc.buffer(64);
        code.put((byte) 0xb8).putInt(SystemCall.WRITE); // mov eax, SYS_write
        code.put((byte) 0xbf).putInt(pipe); // mov edi, pipe; rsi holds the siginfo
        code.put((byte) 0xba).putInt(SIGINFO_BYTES); // mov edx, 128
        code.put((byte) 0x0f).put((byte) 0x05).put((byte) 0xc3); // syscall; ret
        int restorer = 32;
        code.position(restorer);
        code.put((byte) 0xb8).putInt(SystemCall.RT_SIGRETURN); // mov eax, SYS_rt_sigreturn
        code.put((byte) 0x0f).put((byte) 0x05); // syscall
        long page = executablePage(code.position(64).flip());
        ByteBuffer action = Libc.buffer(32);
        action.putLong(0, page);
        action.putLong(8, SA_SIGINFO | SA_RESTORER | SA_RESTART);
        action.putLong(16, page + restorer);
        for (int signal : RELAYED) {
            Libc.check(
                    Libc.call(SystemCall.RT_SIGACTION, signal, Libc.address(action), 0, 8),
                    "rt_sigaction for signal " + signal);
        }
        Reference.reachabilityFence(action);
    }

    private static long executablePage(ByteBuffer code) {
        int readWrite = 3;
        int readExecute = 5;
        int privateAnonymous = 0x22;
        long page = Libc.check(
                Libc.call(SystemCall.MMAP, 0, PAGE, readWrite, privateAnonymous, -1, 0), "mmap for the signal relay");
        Libc.memory(page, code.remaining()).put(code);
        Libc.check(Libc.call(SystemCall.MPROTECT, page, PAGE, readExecute), "mprotect for the signal relay");
        return page;
    }

    private static void read(int pipe, Listener listener) {
        ByteBuffer info = Libc.buffer(SIGINFO_BYTES);
        while (true) {
            long count = Libc.call(SystemCall.READ, pipe, Libc.address(info), SIGINFO_BYTES);
            if (count == SIGINFO_BYTES) {
                listener.received(info.getInt(0), info.getInt(8) > 0);
            } else if (count != -EINTR) {
                return;
            }
        }
    }
}
