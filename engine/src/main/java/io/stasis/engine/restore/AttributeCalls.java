package io.stasis.engine.restore;

import io.stasis.engine.resource.file.RemovedDirectories;
import io.stasis.engine.resource.thread.ThreadModes;
import io.stasis.image.model.ProcessImage;
import io.stasis.image.model.ProcessImage.IntervalTimer;
import io.stasis.image.model.ProcessImage.Limit;
import io.stasis.image.model.ProcessImage.SignalAction;
import io.stasis.image.model.ThreadImage;
import io.stasis.image.model.ThreadImage.Credentials;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.ptrace.CallTable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;

/** The calls that give a process and its threads what they keep besides memory and descriptors. */
final class AttributeCalls {
    private static final int AT_FDCWD = -100;
    private static final int O_PATH_DIRECTORY_CLOEXEC = 0x200000 | 0x10000 | 0x80000;
    private static final int PR_SET_PDEATHSIG = 1;
    private static final int PR_SET_DUMPABLE = 4;
    private static final int PR_SET_KEEPCAPS = 8;
    private static final int PR_SET_NAME = 15;
    private static final int PR_CAPBSET_DROP = 24;
    private static final int PR_SET_SECUREBITS = 28;
    private static final int PR_SET_TIMERSLACK = 29;
    private static final int PR_SET_CHILD_SUBREAPER = 36;
    private static final int PR_SET_THP_DISABLE = 41;
    private static final int PR_CAP_AMBIENT = 47;
    private static final int PR_CAP_AMBIENT_RAISE = 2;
    private static final int SECBIT_NO_SETUID_FIXUP = 4;
    private static final int CAPABILITY_VERSION_3 = 0x20080522;
    private static final int CAPABILITIES = 41;
    private static final int RLIMIT_NOFILE = 7;
    private static final int SIGINFO_SIGNAL = 0;
    private static final int SIGCHLD = 17;
    private static final int SIGINFO_BYTES = 128;

    private AttributeCalls() {}

    /** Working directory and umask: while the process still may go everywhere. */
    static void filesystem(CallTable calls, ProcessImage image) {
        var state = image.filesystem();
        String directory = state.removed()
                ? RemovedDirectories.make(state.workingDirectory(), calls)
                : state.workingDirectory().path();
        int opened = calls.must(
                "open working directory " + directory,
                SystemCall.OPENAT,
                AT_FDCWD,
                calls.string(directory),
                O_PATH_DIRECTORY_CLOEXEC,
                0);
        int changed = calls.must("change to " + directory, SystemCall.FCHDIR, 0);
        calls.forward(opened, changed, 0);
        if (state.removed()) {
            RemovedDirectories.remove(directory, calls);
        }
        calls.must("set umask", SystemCall.UMASK, state.umask());
    }

    /** The root directory: when nothing is opened any more, as all paths of the image are seen from the agent's root. */
    static void root(CallTable calls, ProcessImage image) {
        var state = image.filesystem();
        if (!state.root().path().equals("/")) {
            calls.must(
                    "change root to " + state.root().path(),
                    SystemCall.CHROOT,
                    calls.string(state.root().path()));
        }
    }

    /** Signal actions and what prctl(2) keeps for the whole process. */
    static void process(CallTable calls, ProcessImage image) {
        for (SignalAction action : image.signals().actions()) {
            long structure = calls.longs(action.handler(), action.flags(), action.restorer(), action.mask());
            calls.must(
                    "set the action of signal " + action.signal(),
                    SystemCall.RT_SIGACTION,
                    action.signal(),
                    structure,
                    0,
                    8);
        }
        var attributes = image.attributes();
        calls.must("set subreaper", SystemCall.PRCTL, PR_SET_CHILD_SUBREAPER, attributes.subreaper() ? 1 : 0);
        if (attributes.thpDisable() > 0) {
            int flags = attributes.thpDisable() & ~1;
            calls.must("disable huge pages", SystemCall.PRCTL, PR_SET_THP_DISABLE, 1, flags, 0, 0);
        }
        for (int command = 1; command <= attributes.memoryBarriers(); command <<= 1) {
            if ((attributes.memoryBarriers() & command) != 0) {
                calls.must("register for memory barriers", SystemCall.MEMBARRIER, command, 0, 0);
            }
        }
    }

    /**
     * Resource limits, when all descriptors are in place. Those that are right already are left alone: a hard limit that
     * is higher takes a privilege.
     *
     * @param now soft and hard limit by resource number
     */
    static void limits(CallTable calls, ProcessImage image, long[][] now) {
        for (Limit limit : image.limits()) {
            if (limit.soft() == now[limit.resource()][0] && limit.hard() == now[limit.resource()][1]) {
                continue;
            }
            calls.must(
                    "set resource limit " + limit.resource()
                            + (limit.resource() == RLIMIT_NOFILE ? " (descriptors)" : ""),
                    SystemCall.PRLIMIT64,
                    0,
                    limit.resource(),
                    calls.longs(limit.soft(), limit.hard()),
                    0);
        }
    }

    /** What belongs to one thread, its credentials left out. */
    static void thread(CallTable calls, ThreadImage thread) {
        calls.must("set the exit address", SystemCall.SET_TID_ADDRESS, thread.clearTidAddress());
        if (thread.robustList() != 0) {
            calls.must(
                    "set the robust list", SystemCall.SET_ROBUST_LIST, thread.robustList(), thread.robustListLength());
        }
        if (thread.rseq() != null) {
            calls.must(
                    "register restartable sequences",
                    SystemCall.RSEQ,
                    thread.rseq().address(),
                    thread.rseq().size(),
                    thread.rseq().flags(),
                    thread.rseq().signature());
        }
        var stack = thread.alternateStack();
        calls.must(
                "set the alternate signal stack",
                SystemCall.SIGALTSTACK,
                calls.longs(stack.base(), stack.flags() & 0xffffffffL, stack.size()),
                0);
        calls.must("set the thread's name", SystemCall.PRCTL, PR_SET_NAME, calls.string(thread.name()));
        calls.must("set timer slack", SystemCall.PRCTL, PR_SET_TIMERSLACK, thread.timerSlackNanos());
    }

    /**
     * Credentials and capabilities: last, as they take away the right to set the rest. Nothing is done for a thread
     * that has them already, which is the usual case and needs no privilege.
     *
     * @param now what the thread has
     */
    static void credentials(CallTable calls, ThreadImage thread, ProcStatus now, int dumpable) {
        Credentials c = thread.credentials();
        if (!equal(c, now)) {
            setCredentials(calls, c, now);
        }
        if (thread.parentDeathSignal() != 0) {
            calls.must("set the parent death signal", SystemCall.PRCTL, PR_SET_PDEATHSIG, thread.parentDeathSignal());
        }
        // Changed credentials make a process undumpable (prctl(2)); 2 can be inherited from the kernel only.
        calls.must("set dumpable", SystemCall.PRCTL, PR_SET_DUMPABLE, dumpable == 1 ? 1 : 0);
        ThreadModes.withoutNewPrivileges(calls, thread);
    }

    /** Whether a thread with the status {@code now} has these credentials. */
    static boolean equal(Credentials c, ProcStatus now) {
        return Arrays.equals(c.userIds(), now.uids())
                && Arrays.equals(c.groupIds(), now.gids())
                && Arrays.equals(c.supplementaryGroups(), now.groups())
                && c.inheritable() == now.capInh()
                && c.permitted() == now.capPrm()
                && c.effective() == now.capEff()
                && c.bounding() == now.capBnd()
                && c.ambient() == now.capAmb()
                && c.secureBits() == 0;
    }

    private static void setCredentials(CallTable calls, Credentials c, ProcStatus now) {
        for (int i = 0; i < CAPABILITIES; i++) {
            if ((now.capBnd() & ~c.bounding() & 1L << i) != 0) {
                calls.must("drop capability " + i, SystemCall.PRCTL, PR_CAPBSET_DROP, i, 0, 0, 0);
            }
        }
        ByteBuffer groups =
                ByteBuffer.allocate(4 * c.supplementaryGroups().length).order(ByteOrder.nativeOrder());
        groups.asIntBuffer().put(c.supplementaryGroups());
        if (!Arrays.equals(c.supplementaryGroups(), now.groups())) { // in a user namespace nobody may set them
            calls.must(
                    "set supplementary groups",
                    SystemCall.SETGROUPS,
                    c.supplementaryGroups().length,
                    calls.data(groups.array()));
        }
        // Without the fixup a change of user ids leaves the capabilities alone until they are set below.
        calls.must("set secure bits", SystemCall.PRCTL, PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0);
        calls.must("keep capabilities", SystemCall.PRCTL, PR_SET_KEEPCAPS, 1, 0, 0, 0);
        int[] g = c.groupIds();
        int[] u = c.userIds();
        calls.must("set group ids", SystemCall.SETRESGID, g[0], g[1], g[2]);
        calls.must("set file system group id", SystemCall.SETFSGID, g[3]);
        calls.must("set user ids", SystemCall.SETRESUID, u[0], u[1], u[2]);
        calls.must("set file system user id", SystemCall.SETFSUID, u[3]);
        calls.must("set secure bits", SystemCall.PRCTL, PR_SET_SECUREBITS, c.secureBits(), 0, 0, 0);
        long header = calls.longs(CAPABILITY_VERSION_3);
        long inheritableFirst = c.inheritable() | c.ambient();
        capset(calls, header, c.effective(), c.permitted(), inheritableFirst);
        for (int i = 0; i < CAPABILITIES; i++) {
            if ((c.ambient() & 1L << i) != 0) {
                calls.must(
                        "raise ambient capability " + i,
                        SystemCall.PRCTL,
                        PR_CAP_AMBIENT,
                        PR_CAP_AMBIENT_RAISE,
                        i,
                        0,
                        0);
            }
        }
    }

    private static void capset(CallTable calls, long header, long effective, long permitted, long inheritable) {
        ByteBuffer data = ByteBuffer.allocate(24).order(ByteOrder.nativeOrder());
        for (int half = 0; half < 2; half++) {
            data.putInt((int) (effective >>> 32 * half));
            data.putInt((int) (permitted >>> 32 * half));
            data.putInt((int) (inheritable >>> 32 * half));
        }
        calls.must("set capabilities", SystemCall.CAPSET, header, calls.data(data.array()));
    }

    /** Takes a SIGCHLD away that the restore itself caused. Every signal is blocked meanwhile, so it is pending. */
    static void forgetChildSignals(CallTable calls) {
        calls.query(SystemCall.RT_SIGTIMEDWAIT, calls.longs(1L << (SIGCHLD - 1)), 0, calls.longs(0, 0), 8);
    }

    /** Queues the signals that were pending for the process. */
    static void processSignals(CallTable calls, int pid, List<byte[]> pending) {
        for (byte[] info : pending) {
            calls.must(
                    "queue a pending signal",
                    SystemCall.RT_SIGQUEUEINFO,
                    pid,
                    signal(info),
                    calls.data(Arrays.copyOf(info, SIGINFO_BYTES)));
        }
    }

    /** Queues the signals that were pending for one thread. */
    static void threadSignals(CallTable calls, int pid, ThreadImage thread) {
        for (byte[] info : thread.pending()) {
            calls.must(
                    "queue a pending signal for thread " + thread.tid(),
                    SystemCall.RT_TGSIGQUEUEINFO,
                    pid,
                    thread.tid(),
                    signal(info),
                    calls.data(Arrays.copyOf(info, SIGINFO_BYTES)));
        }
    }

    private static int signal(byte[] info) {
        return ByteBuffer.wrap(info).order(ByteOrder.nativeOrder()).getInt(SIGINFO_SIGNAL);
    }

    /** Arms the interval timers. A timer that expired while the process was frozen fires at once. */
    static void timers(CallTable calls, List<IntervalTimer> timers) {
        for (int i = 0; i < timers.size(); i++) {
            IntervalTimer timer = timers.get(i);
            if (timer.valueMicros() == 0 && timer.intervalMicros() == 0) {
                continue;
            }
            long value = Math.max(1, timer.valueMicros());
            calls.must(
                    "arm interval timer " + i,
                    SystemCall.SETITIMER,
                    i,
                    calls.longs(
                            timer.intervalMicros() / 1_000_000,
                            timer.intervalMicros() % 1_000_000,
                            value / 1_000_000,
                            value % 1_000_000),
                    0);
        }
    }
}
