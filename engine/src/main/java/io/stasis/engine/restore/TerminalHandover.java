package io.stasis.engine.restore;

import io.stasis.image.model.ComputationImage.Terminal;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.ptrace.CallTable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Gives the restart command's terminal to the restored tree before any of it runs: a shell that read from a terminal in
 * whose foreground it is not yet would see an error and end. See tty_ioctl(4), credentials(7).
 */
final class TerminalHandover {
    private static final int TCSETS2 = 0x402c542b;
    private static final int TIOCSPGRP = 0x5410;

    private TerminalHandover() {}

    /** Whether the stub, and so the restart command, is in the foreground of its controlling terminal. */
    static boolean isForeground(Pid stub) {
        ProcStat stat = ProcStat.read(stub);
        return stat.ttyNr() != 0 && stat.tpgid() == stat.pgrp();
    }

    /**
     * Makes {@code group} the foreground group (0: leaves it) and applies the settings, in a process of the tree whose signals are
     * blocked: from the background only such a one may do it.
     */
    static void take(RestoredProcess process, Terminal terminal, int group) {
        CallTable open = new CallTable();
        int opened = open.must(
                "open the terminal", SystemCall.OPENAT, Fcntl.AT_FDCWD, open.string("/dev/tty"), Fcntl.O_RDWR, 0);
        long fd = process.run(open).result(opened);
        CallTable calls = new CallTable();
        ByteBuffer number =
                ByteBuffer.allocate(8).order(ByteOrder.nativeOrder()).putInt(0, group);
        if (group != 0) {
            calls.must("take the terminal's foreground", SystemCall.IOCTL, fd, TIOCSPGRP, calls.data(number.array()));
        }
        if (hasSettings(terminal)) {
            calls.must("set the terminal", SystemCall.IOCTL, fd, TCSETS2, calls.data(terminal.termios()));
        }
        calls.must("close the terminal", SystemCall.CLOSE, fd);
        process.run(calls);
    }

    /** A terminal that had been hung up when it was captured has none. */
    private static boolean hasSettings(Terminal terminal) {
        for (byte b : terminal.termios()) {
            if (b != 0) {
                return true;
            }
        }
        return false;
    }
}
