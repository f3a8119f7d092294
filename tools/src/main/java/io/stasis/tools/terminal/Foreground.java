package io.stasis.tools.terminal;

import static io.stasis.tools.terminal.SignalRelay.SIGCONT;
import static io.stasis.tools.terminal.SignalRelay.SIGHUP;
import static io.stasis.tools.terminal.SignalRelay.SIGINT;
import static io.stasis.tools.terminal.SignalRelay.SIGTERM;
import static io.stasis.tools.terminal.SignalRelay.SIGWINCH;

import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.Optional;

/**
 * Stands between a shell and a restarted program that is this process's child, so that the program behaves as if the
 * shell had started it: it has the terminal, gets the signals that are sent to this process, stops and continues with
 * it, and its status becomes this process's.
 *
 * <p>All methods but the signal listener run on one thread.
 */
public final class Foreground {
    private static final int SIGTTIN = 21;
    private static final int SIGTTOU = 22;
    private static final int SIGKILL = 9;
    private static final int SIGSTOP = 19;
    private static final int WUNTRACED = 2;
    private static final long WALL = 0x40000000;
    private static final int EINTR = 4;
    private static final int CLOSE_RANGE_CLOEXEC = 4;

    private final Optional<Terminal> terminal;
    private final byte[] ownSettings;
    private final int ownGroup;
    private final boolean ownsTerminal;

    private byte[] programSettings;
    private boolean given;
    private volatile PtyRelay relay;
    private volatile int program;
    private volatile int programGroup;
    private volatile boolean stopping;

    /** Remembers the terminal as it is and takes over the signals. */
    public Foreground() {
        ownGroup = (int) Libc.call(SystemCall.GETPGID, 0);
        terminal = Terminal.controlling();
        ownSettings = terminal.map(Terminal::settings).orElse(null);
        ownsTerminal = terminal.filter(t -> t.foregroundGroup() == ownGroup).isPresent();
        SignalRelay.start(this::received);
    }

    /** Path of the controlling terminal, or null. */
    public String terminalPath() {
        return terminal.map(Terminal::path).orElse(null);
    }

    /**
     * Starts the restore stub as a child that has descriptors 0, 1 and 2 and no others.
     *
     * @param onPty whether on a pseudo-terminal that this process connects with its own
     */
    public int spawn(String stub, boolean onPty) {
        Libc.call(SystemCall.CLOSE_RANGE, 3, 0xffffffffL, CLOSE_RANGE_CLOEXEC);
        if (!onPty) {
            return Libc.spawn(stub);
        }
        relay = PtyRelay.open(terminal);
        return relay.spawn(stub);
    }

    /** Ends a stub whose restart failed. */
    public void abandon(int stub) {
        if (stub > 0) {
            Libc.call(SystemCall.KILL, stub, SIGKILL);
            waitFor(stub, 0);
        }
    }

    /**
     * Waits for the program's end.
     *
     * @param root the program's root process
     * @param foregroundGroup process group that had the terminal's foreground when the image was made; 0 for none
     * @param settings the terminal's {@code struct termios2} then, or null
     * @return its exit status, 128 + signal when a signal ended it
     */
    public int follow(int root, int foregroundGroup, byte[] settings) {
        programSettings = settings;
        programGroup = foregroundGroup > 0 ? foregroundGroup : group(root);
        program = root;
        boolean handsOver = relay == null && ownsTerminal && (foregroundGroup > 0 || settings != null);
        if (relay != null) {
            relay.start();
        }
        if (handsOver) {
            giveTerminal();
        }
        while (true) {
            int status = waitFor(root, WUNTRACED);
            boolean stopped = (status & 0xff) == 0x7f;
            if (stopped && handsOver && wantsTerminal(status >> 8 & 0xff)) {
                // It asked before the shell put us into the foreground: the terminal is its own by now.
                giveTerminal();
                continueProgram(root);
                continue;
            }
            if (handsOver) {
                takeTerminal(stopped);
            }
            if (relay != null && !stopped) {
                relay.finish();
            }
            if (relay != null) {
                relay.suspend(ownSettings, ownGroup);
            }
            if (!stopped) {
                return (status & 0x7f) == 0 ? status >> 8 & 0xff : 128 + (status & 0x7f);
            }
            // Stop as the program did; the shell that started us sees it and continues us.
            stopping = true;
            stopMyself();
            if (handsOver && inForeground()) {
                giveTerminal();
            }
            if (relay != null) {
                relay.resume();
            }
            continueProgram(root);
        }
    }

    /** Whether it was stopped for want of a terminal that we have. */
    private synchronized boolean wantsTerminal(int signal) {
        return (signal == SIGTTIN || signal == SIGTTOU) && (given || inForeground());
    }

    /** Continues what the terminal's suspend key stops: the group in the foreground, and the root process. */
    private void continueProgram(int root) {
        if (programGroup != ownGroup) {
            Libc.call(SystemCall.KILL, -programGroup, SIGCONT);
        }
        if (group(root) != programGroup || programGroup == ownGroup) {
            Libc.call(SystemCall.KILL, root, SIGCONT);
        }
    }

    /**
     * Stops this process until it is continued. The signal goes to the calling thread, which takes it before it returns;
     * sent to the process, another thread might take it while this one runs on.
     */
    private static void stopMyself() {
        long process = Libc.call(SystemCall.GETPID);
        Libc.call(SystemCall.TGKILL, process, Libc.call(SystemCall.GETTID), SIGSTOP);
    }

    private boolean inForeground() {
        return terminal.filter(t -> t.foregroundGroup() == ownGroup).isPresent();
    }

    private synchronized void giveTerminal() {
        terminal.orElseThrow().give(programSettings, programGroup);
        given = true;
    }

    /** Takes the terminal back, if the program has it: in the background it belongs to the shell. */
    private synchronized void takeTerminal(boolean stopped) {
        if (!given) {
            return;
        }
        given = false;
        Terminal mine = terminal.orElseThrow();
        if (stopped) {
            programSettings = mine.settings();
            programGroup = mine.foregroundGroup();
        }
        mine.give(ownSettings, ownGroup);
    }

    private void received(int signal, boolean kernel) {
        int root = program;
        if (root == 0) {
            if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) {
                // Nothing runs yet: end as the signal asks; the agent sees the connection close and takes all back.
                Runtime.getRuntime().halt(128 + signal);
            }
            return;
        }
        if (signal == SIGCONT && stopping) {
            // The one that ends our own stop: the waiting thread passes it on.
            stopping = false;
            return;
        }
        if (signal == SIGWINCH && relay != null) {
            relay.resize();
            return;
        }
        int group = group(root);
        if (signal == SIGCONT && ownsTerminal && programGroup != ownGroup && inForeground()) {
            giveTerminal();
            continueProgram(root);
        } else if (!kernel) {
            Libc.call(SystemCall.KILL, root, signal);
        } else if (group != ownGroup && group > 0) {
            Libc.call(SystemCall.KILL, -group, signal);
        }
    }

    private static int group(int pid) {
        return (int) Libc.call(SystemCall.GETPGID, pid);
    }

    /** The wait status of one child; those of others, such as the stub's, are taken and dropped. */
    private static int waitFor(int pid, int options) {
        ByteBuffer status = Libc.buffer(4);
        while (true) {
            long result = Libc.call(SystemCall.WAIT4, -1, Libc.address(status), options | WALL, 0);
            Reference.reachabilityFence(status);
            if (result == pid) {
                return status.getInt(0);
            }
            if (result < 0 && result != -EINTR) {
                return (int) Libc.check(result, "wait4 for process " + pid);
            }
        }
    }
}
