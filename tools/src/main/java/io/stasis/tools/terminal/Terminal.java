package io.stasis.tools.terminal;

import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.io.IOException;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * The controlling terminal of this process, by the descriptor among 0, 1 and 2 that leads to it. See tty_ioctl(4) and
 * credentials(7).
 */
final class Terminal {
    private static final int TCGETS2 = 0x802c542a;
    private static final int TCSETSW2 = 0x402c542c;
    private static final int TIOCGPGRP = 0x540f;
    private static final int TIOCSPGRP = 0x5410;
    private static final int TERMIOS2_BYTES = 44;
    private static final int SIGTTOU = 22;
    private static final int SIG_BLOCK = 0;
    private static final int SIG_SETMASK = 2;

    private final int fd;

    private Terminal(int fd) {
        this.fd = fd;
    }

    /** The controlling terminal, if one of the three standard descriptors is it. */
    static Optional<Terminal> controlling() {
        for (int fd = 0; fd <= 2; fd++) {
            Terminal terminal = new Terminal(fd);
            if (terminal.foregroundGroup() > 0) {
                return Optional.of(terminal);
            }
        }
        return Optional.empty();
    }

    /** Path such as /dev/pts/3. */
    String path() {
        try {
            return Files.readSymbolicLink(Path.of("/proc/self/fd/" + fd)).toString();
        } catch (IOException e) {
            return "/dev/tty";
        }
    }

    /** The process group in the foreground; 0 or less when this is not our controlling terminal. */
    int foregroundGroup() {
        ByteBuffer group = Libc.buffer(4);
        long result = Libc.call(SystemCall.IOCTL, fd, TIOCGPGRP & 0xffffffffL, Libc.address(group));
        Reference.reachabilityFence(group);
        return result == 0 ? group.getInt(0) : 0;
    }

    /** {@code struct termios2} as it is now. */
    byte[] settings() {
        ByteBuffer settings = Libc.buffer(TERMIOS2_BYTES);
        Libc.check(
                Libc.call(SystemCall.IOCTL, fd, TCGETS2 & 0xffffffffL, Libc.address(settings)), "TCGETS2 of " + path());
        byte[] bytes = new byte[TERMIOS2_BYTES];
        settings.get(0, bytes);
        return bytes;
    }

    /** Sets terminal settings and foreground group, also from the background (SIGTTOU is blocked meanwhile). */
    void give(byte[] settings, int group) {
        ByteBuffer mask = Libc.buffer(16);
        mask.putLong(0, 1L << SIGTTOU - 1);
        long set = Libc.address(mask);
        Libc.call(SystemCall.RT_SIGPROCMASK, SIG_BLOCK, set, set + 8, 8);
        try {
            ByteBuffer wanted = Libc.buffer(4);
            wanted.putInt(0, group);
            Libc.call(SystemCall.IOCTL, fd, TIOCSPGRP, Libc.address(wanted));
            Reference.reachabilityFence(wanted);
            if (settings != null && settings.length == TERMIOS2_BYTES) {
                ByteBuffer bytes = Libc.buffer(TERMIOS2_BYTES);
                bytes.put(0, settings);
                Libc.call(SystemCall.IOCTL, fd, TCSETSW2, Libc.address(bytes));
                Reference.reachabilityFence(bytes);
            }
        } finally {
            Libc.call(SystemCall.RT_SIGPROCMASK, SIG_SETMASK, set + 8, 0, 8);
            Reference.reachabilityFence(mask);
        }
    }
}
