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
    // Flags of <asm-generic/termbits.h> and offsets in struct termios2.
    private static final int IGNBRK = 1;
    private static final int BRKINT = 2;
    private static final int PARMRK = 8;
    private static final int ISTRIP = 0x20;
    private static final int INLCR = 0x40;
    private static final int IGNCR = 0x80;
    private static final int ICRNL = 0x100;
    private static final int IXON = 0x400;
    private static final int OPOST = 1;
    private static final int CSIZE = 0x30;
    private static final int CS8 = 0x30;
    private static final int PARENB = 0x100;
    private static final int ISIG = 1;
    private static final int ICANON = 2;
    private static final int ECHO = 8;
    private static final int ECHONL = 0x40;
    private static final int IEXTEN = 0x8000;
    private static final int C_CC = 17;
    private static final int VTIME = 5;
    private static final int VMIN = 6;
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

    /** Settings with which every byte passes as it is, as cfmakeraw(3) makes them. */
    static byte[] raw(byte[] settings) {
        ByteBuffer termios = ByteBuffer.wrap(settings.clone()).order(java.nio.ByteOrder.nativeOrder());
        termios.putInt(0, termios.getInt(0) & ~(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON));
        termios.putInt(4, termios.getInt(4) & ~OPOST);
        termios.putInt(8, termios.getInt(8) & ~(CSIZE | PARENB) | CS8);
        termios.putInt(12, termios.getInt(12) & ~(ECHO | ECHONL | ICANON | ISIG | IEXTEN));
        termios.put(C_CC + VTIME, (byte) 0).put(C_CC + VMIN, (byte) 1);
        return termios.array();
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
