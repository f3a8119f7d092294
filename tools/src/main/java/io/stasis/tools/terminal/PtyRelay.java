package io.stasis.tools.terminal;

import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.Optional;

/**
 * A pseudo-terminal for the restarted program, pty(7), whose other end this process connects with its own terminal: what
 * is typed there goes to the program, what the program writes goes there. The own terminal is in raw mode meanwhile; the
 * program's has the settings of the program.
 */
final class PtyRelay {
    private static final int TIOCGPTN = 0x80045430;
    private static final int TIOCSPTLCK = 0x40045431;
    private static final int TIOCGWINSZ = 0x5413;
    private static final int TIOCSWINSZ = 0x5414;
    private static final int TCGETS2 = 0x802c542a;
    private static final short POLLIN = 1;
    private static final int POLL_MILLIS = 100;
    private static final int BUFFER_BYTES = 64 * 1024;
    private static final int EINTR = 4;
    private static final byte END_OF_TRANSMISSION = 4;
    private static final int STANDARD = 3;

    private final Optional<Terminal> own;
    private final int master;
    private final int slave;
    private Thread output;
    private volatile boolean ending;

    private PtyRelay(Optional<Terminal> own, int master, int slave) {
        this.own = own;
        this.master = master;
        this.slave = slave;
    }

    /** @param own this process's terminal, if it has one */
    static PtyRelay open(Optional<Terminal> own) {
        int flags = Fcntl.O_RDWR | Fcntl.O_NOCTTY | Fcntl.O_CLOEXEC;
        int master = openFile("/dev/ptmx", flags);
        ByteBuffer number = Libc.buffer(4);
        Libc.check(
                Libc.call(SystemCall.IOCTL, master, TIOCSPTLCK, Libc.address(number)), "unlock a new pseudo-terminal");
        Libc.check(
                Libc.call(SystemCall.IOCTL, master, TIOCGPTN & 0xffffffffL, Libc.address(number)),
                "ask for the number of a new pseudo-terminal");
        PtyRelay relay = new PtyRelay(own, master, openFile("/dev/pts/" + number.getInt(0), flags));
        relay.resize();
        return relay;
    }

    private static int openFile(String path, int flags) {
        ByteBuffer name = Libc.string(path);
        long fd = Libc.call(SystemCall.OPENAT, Fcntl.AT_FDCWD, Libc.address(name), flags, 0);
        Reference.reachabilityFence(name);
        return (int) Libc.check(fd, "open " + path);
    }

    /** Starts a program on the pseudo-terminal: of its standard descriptors those that are a terminal here. */
    int spawn(String program) {
        int[] saved = new int[STANDARD];
        for (int fd = 0; fd < STANDARD; fd++) {
            saved[fd] = -1;
            if (isTerminal(fd) || own.isEmpty()) {
                saved[fd] = (int) Libc.call(SystemCall.FCNTL, fd, Fcntl.F_DUPFD_CLOEXEC, STANDARD);
                Libc.check(Libc.call(SystemCall.DUP2, slave, fd), "give descriptor " + fd + " to the program");
            }
        }
        try {
            return Libc.spawn(program);
        } finally {
            for (int fd = 0; fd < STANDARD; fd++) {
                if (saved[fd] >= 0) {
                    Libc.call(SystemCall.DUP2, saved[fd], fd);
                    Libc.call(SystemCall.CLOSE, saved[fd]);
                }
            }
        }
    }

    private static boolean isTerminal(int fd) {
        ByteBuffer settings = Libc.buffer(64);
        long result = Libc.call(SystemCall.IOCTL, fd, TCGETS2 & 0xffffffffL, Libc.address(settings));
        Reference.reachabilityFence(settings);
        return result == 0;
    }

    /** Begins to copy, when the program runs. */
    void start() {
        Libc.call(SystemCall.CLOSE, slave);
        resume();
        output = new Thread(this::copyOutput, "terminal-output");
        output.setDaemon(true);
        output.start();
        Thread input = new Thread(this::copyInput, "terminal-input");
        input.setDaemon(true);
        input.start();
    }

    /** Gives the own terminal its settings back, as this process stops. */
    void suspend(byte[] settings, int group) {
        own.filter(terminal -> terminal.foregroundGroup() == group)
                .ifPresent(terminal -> terminal.give(settings, group));
    }

    /** Puts the own terminal into raw mode. */
    void resume() {
        int group = (int) Libc.call(SystemCall.GETPGID, 0);
        own.filter(terminal -> terminal.foregroundGroup() == group)
                .ifPresent(terminal -> terminal.give(Terminal.raw(terminal.settings()), group));
    }

    /** Copies what is left, when the program has ended. */
    void finish() {
        ending = true;
        try {
            output.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Gives the pseudo-terminal the size of the own terminal; the kernel tells the program. */
    void resize() {
        ByteBuffer size = Libc.buffer(8);
        for (int fd = 0; fd < STANDARD; fd++) {
            if (Libc.call(SystemCall.IOCTL, fd, TIOCGWINSZ, Libc.address(size)) == 0) {
                Libc.call(SystemCall.IOCTL, master, TIOCSWINSZ, Libc.address(size));
                break;
            }
        }
        Reference.reachabilityFence(size);
    }

    private void copyOutput() {
        ByteBuffer buffer = Libc.buffer(BUFFER_BYTES);
        ByteBuffer poll = Libc.buffer(8);
        while (true) {
            boolean last = ending;
            poll.putInt(0, master).putShort(4, POLLIN).putShort(6, (short) 0);
            long ready = Libc.call(SystemCall.POLL, Libc.address(poll), 1, last ? 0 : POLL_MILLIS);
            if (ready == 0 && last) {
                return;
            }
            if (ready > 0) {
                long count = Libc.call(SystemCall.READ, master, Libc.address(buffer), BUFFER_BYTES);
                // EIO: nobody has the other side open any more.
                if (count != -EINTR && (count <= 0 || !writeAll(1, buffer, count))) {
                    return;
                }
            }
        }
    }

    private void copyInput() {
        ByteBuffer buffer = Libc.buffer(BUFFER_BYTES);
        while (true) {
            long count = Libc.call(SystemCall.READ, 0, Libc.address(buffer), BUFFER_BYTES);
            if (count == -EINTR) {
                continue;
            }
            if (count <= 0) {
                buffer.put(0, END_OF_TRANSMISSION);
                writeAll(master, buffer, 1);
                return;
            }
            if (!writeAll(master, buffer, count)) {
                return;
            }
        }
    }

    private static boolean writeAll(int fd, ByteBuffer buffer, long count) {
        long done = 0;
        while (done < count) {
            long written = Libc.call(SystemCall.WRITE, fd, Libc.address(buffer) + done, count - done);
            if (written < 0 && written != -EINTR) {
                return false;
            }
            done += Math.max(0, written);
        }
        return true;
    }
}
