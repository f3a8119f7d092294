package io.stasis.engine.resource.thread;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.UnsupportedResourceException;
import io.stasis.image.model.FileReference;
import io.stasis.image.model.ProcessImage.FilesystemState;
import io.stasis.image.model.ThreadImage;
import io.stasis.image.model.ThreadImage.Modes;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.Kcmp;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.ProcFiles;
import io.stasis.linux.proc.ProcLinks;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.proc.Tasks;
import io.stasis.linux.ptrace.CallTable;
import java.util.List;
import java.util.Optional;

/**
 * What prctl(2), set_mempolicy(2) and personality(2) keep for each thread, and the working directory, root and umask of a
 * thread that shares them no longer (CLONE_FS of unshare(2)).
 */
public final class ThreadModes {
    private static final int PR_GET_TSC = 25;
    private static final int PR_SET_TSC = 26;
    private static final int PR_TSC_ENABLE = 1;
    private static final int PR_MCE_KILL = 33;
    private static final int PR_MCE_KILL_SET = 1;
    private static final int PR_MCE_KILL_GET = 34;
    private static final int PR_MCE_KILL_DEFAULT = 2;
    private static final int PR_SET_NO_NEW_PRIVS = 38;
    private static final int PR_GET_SPECULATION_CTRL = 52;
    private static final int PR_SET_SPECULATION_CTRL = 53;
    private static final int PR_SPEC_PRCTL = 1;
    private static final int PR_SPEC_DISABLE = 4;
    private static final int PR_SPEC_FORCE_DISABLE = 8;
    private static final int PR_SPEC_DISABLE_NOEXEC = 16;
    private static final int SPECULATIONS = 3;
    private static final int PR_SET_IO_FLUSHER = 57;
    private static final int PR_GET_IO_FLUSHER = 58;
    private static final int CLONE_FS = 0x200;
    private static final int AT_FDCWD = -100;
    private static final int O_PATH_DIRECTORY_CLOEXEC = 0x200000 | 0x10000 | 0x80000;
    private static final int NODES = 1024;

    /** Where the answers of one thread will lie. */
    public record Question(
            long tsc, int machineChecks, int flusher, int speculation, int policy, long mode, long nodes) {}

    private ThreadModes() {}

    /** Adds the questions to the calls of a thread. */
    public static Question ask(CallTable calls) {
        long tsc = calls.reserve(8);
        calls.query(SystemCall.PRCTL, PR_GET_TSC, tsc);
        int machineChecks = calls.query(SystemCall.PRCTL, PR_MCE_KILL_GET, 0, 0, 0, 0);
        int flusher = calls.query(SystemCall.PRCTL, PR_GET_IO_FLUSHER, 0, 0, 0, 0);
        int speculation = calls.query(SystemCall.PRCTL, PR_GET_SPECULATION_CTRL, 0, 0, 0, 0);
        for (int which = 1; which < SPECULATIONS; which++) {
            calls.query(SystemCall.PRCTL, PR_GET_SPECULATION_CTRL, which, 0, 0, 0);
        }
        long mode = calls.reserve(8);
        long nodes = calls.reserve(NODES / 8);
        int policy = calls.query(SystemCall.GET_MEMPOLICY, mode, nodes, NODES, 0, 0);
        return new Question(tsc, machineChecks, flusher, speculation, policy, mode, nodes);
    }

    /**
     * The answers, and what /proc tells.
     *
     * @throws UnsupportedResourceException when the thread has a descriptor table of its own
     */
    public static Modes read(Question question, CallTable.Results results, Pid pid, Tid tid, ProcStatus status) {
        int[] speculation = new int[SPECULATIONS];
        for (int which = 0; which < SPECULATIONS; which++) {
            speculation[which] = (int) results.result(question.speculation + which);
        }
        boolean policyKnown = results.result(question.policy) == 0; // a kernel without NUMA has none
        boolean leader = tid.value() == pid.value();
        if (!leader && !shares(pid, tid, Kcmp.KCMP_FILES)) {
            throw new UnsupportedResourceException(List.of(ownDescriptors(pid, tid)));
        }
        return new Modes(
                status.noNewPrivs(),
                ProcFiles.personality(new Pid(tid.value())),
                (int) results.dataLong(question.tsc, 0),
                (int) results.result(question.machineChecks),
                results.result(question.flusher) == 1,
                speculation,
                policyKnown ? (int) results.dataLong(question.mode, 0) : 0,
                policyKnown ? results.data(question.nodes, NODES / 8) : new byte[0],
                leader || shares(pid, tid, Kcmp.KCMP_FS) ? null : filesystem(pid, tid, status));
    }

    /** What of the threads cannot be captured. */
    public static Optional<Problem> problem(Pid pid) {
        for (int tid : Tasks.threads(pid)) {
            if (tid != pid.value() && !shares(pid, new Tid(tid), Kcmp.KCMP_FILES)) {
                return Optional.of(ownDescriptors(pid, new Tid(tid)));
            }
        }
        return Optional.empty();
    }

    private static Problem ownDescriptors(Pid pid, Tid tid) {
        return new Problem(
                pid.value(),
                -1,
                "thread " + tid,
                "it has a descriptor table of its own (CLONE_FILES), which is not supported",
                "let it share the table of its process");
    }

    /** Whether both share it; also when it cannot be told, as one of them has ended. */
    private static boolean shares(Pid pid, Tid tid, int what) {
        try {
            return Kcmp.compare(pid.value(), tid.value(), what, 0, 0) == Kcmp.SAME;
        } catch (KernelException e) {
            return true;
        }
    }

    private static FilesystemState filesystem(Pid pid, Tid tid, ProcStatus status) {
        Pid task = new Pid(tid.value()); // /proc has a directory for each thread too
        return new FilesystemState(
                reference(pid, "working directory", ProcLinks.cwd(task)),
                false,
                reference(pid, "root directory", ProcLinks.root(task)),
                status.umask());
    }

    private static FileReference reference(Pid pid, String what, ProcLinks.Target link) {
        if (link.deleted()) {
            throw new UnsupportedResourceException(List.of(new Problem(
                    pid.value(),
                    -1,
                    what + " " + link.path() + " of one of its threads",
                    "it was deleted",
                    "put it back, or let the thread change to another one")));
        }
        FileStatus status = FileStatus.of(link.path());
        return new FileReference(
                link.path(), status.dev(), status.ino(), status.mode(), status.size(), status.mtimeNanos());
    }

    /** Calls of a thread that has its own directories; while the process still has the root of the agent. */
    public static void directories(CallTable calls, FilesystemState own) {
        calls.must("leave the directories of the process", SystemCall.UNSHARE, CLONE_FS);
        String directory = own.workingDirectory().path();
        int opened = calls.must(
                "open working directory " + directory,
                SystemCall.OPENAT,
                AT_FDCWD,
                calls.string(directory),
                O_PATH_DIRECTORY_CLOEXEC,
                0);
        int changed = calls.must("change to " + directory, SystemCall.FCHDIR, 0);
        int closed = calls.must("close " + directory, SystemCall.CLOSE, 0);
        calls.forward(opened, changed, 0);
        String root = own.root().path();
        if (!root.equals("/")) {
            calls.must("change root to " + root, SystemCall.CHROOT, calls.string(root));
        }
        calls.must("set umask", SystemCall.UMASK, own.umask());
    }

    /** Calls of a thread that set what differs from what a new thread has, credentials aside. */
    public static void restore(CallTable calls, ThreadImage thread, ThreadImage leader) {
        Modes modes = thread.modes();
        if (thread == leader || modes.personality() != leader.modes().personality()) {
            calls.must("set personality", SystemCall.PERSONALITY, modes.personality());
        }
        if (modes.timeStampCounter() > PR_TSC_ENABLE) {
            calls.must("forbid the time stamp counter", SystemCall.PRCTL, PR_SET_TSC, modes.timeStampCounter());
        }
        if (modes.machineChecks() >= 0 && modes.machineChecks() != PR_MCE_KILL_DEFAULT) {
            calls.must(
                    "set the policy of machine checks",
                    SystemCall.PRCTL,
                    PR_MCE_KILL,
                    PR_MCE_KILL_SET,
                    modes.machineChecks(),
                    0,
                    0);
        }
        if (modes.ioFlusher()) {
            calls.must("become an I/O flusher", SystemCall.PRCTL, PR_SET_IO_FLUSHER, 1, 0, 0, 0);
        }
        for (int which = 0; which < modes.speculation().length; which++) {
            int now = modes.speculation()[which];
            int set = now & (PR_SPEC_DISABLE | PR_SPEC_FORCE_DISABLE | PR_SPEC_DISABLE_NOEXEC);
            if (now > 0 && (now & PR_SPEC_PRCTL) != 0 && set != 0) {
                calls.must(
                        "restrict speculation " + which, SystemCall.PRCTL, PR_SET_SPECULATION_CTRL, which, set, 0, 0);
            }
        }
        if (modes.memoryPolicy() != 0) {
            calls.must(
                    "set the memory policy",
                    SystemCall.SET_MEMPOLICY,
                    modes.memoryPolicy(),
                    isEmpty(modes.memoryNodes()) ? 0 : calls.data(modes.memoryNodes()),
                    isEmpty(modes.memoryNodes()) ? 0 : NODES);
        }
    }

    private static boolean isEmpty(byte[] nodes) {
        for (byte some : nodes) {
            if (some != 0) {
                return false;
            }
        }
        return true;
    }

    /** Gives up new privileges, if the thread had. */
    public static void withoutNewPrivileges(CallTable calls, ThreadImage thread) {
        if (thread.modes().noNewPrivileges()) {
            calls.must("give up new privileges", SystemCall.PRCTL, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        }
    }
}
