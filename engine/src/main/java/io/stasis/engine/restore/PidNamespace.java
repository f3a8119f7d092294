package io.stasis.engine.restore;

import io.stasis.engine.EngineException;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.Capability;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.Sched;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.proc.ProcessScan;
import io.stasis.linux.proc.SystemInfo;
import io.stasis.linux.ptrace.CallTable;
import io.stasis.linux.ptrace.NamespaceInit;
import io.stasis.linux.ptrace.Tracee;
import io.stasis.linux.ptrace.WorkArea;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A pid namespace for one tree, in which the pids of its image are free and may be chosen, with a mount namespace whose
 * /proc shows it, and for a user without privilege a user namespace that both belong to, in which that user is the only
 * one: pid_namespaces(7), mount_namespaces(7), user_namespaces(7).
 *
 * <p>The stub makes the namespaces and stays outside the one of pids; all that it clones is in it. The first is the
 * namespace's init ({@link NamespaceInit}), which lives until the tree has ended. The root process is no child of it but
 * of the restart command, as without a namespace.
 */
final class PidNamespace {
    private static final int PR_SET_NAME = 15;
    private static final int SIGKILL = 9;
    private static final int SIGCHLD = 17;
    private static final long SIG_IGN = 1;
    private static final long MS_NOSUID_NODEV_NOEXEC = 2 | 4 | 8;
    private static final long MS_REC = 0x4000;
    private static final long MS_SLAVE = 0x80000;

    private final RestoredProcess init;

    private PidNamespace(RestoredProcess init) {
        this.init = init;
    }

    /** Whether this user may choose the pids of new processes, clone(2). */
    static boolean mayChoosePids() {
        return SystemInfo.hasCapability(Capability.CAP_SYS_ADMIN)
                || SystemInfo.hasCapability(Capability.CAP_CHECKPOINT_RESTORE);
    }

    /** Makes the namespaces in the stub, and the init in them. */
    static PidNamespace make(RestoredProcess stub, Cloning cloning) {
        int flags = Sched.CLONE_NEWNS | Sched.CLONE_NEWPID;
        boolean user = !SystemInfo.hasCapability(Capability.CAP_SYS_ADMIN);
        try {
            stub.call("make namespaces", SystemCall.UNSHARE, user ? flags | Sched.CLONE_NEWUSER : flags);
        } catch (KernelException e) {
            throw new EngineException(
                    EngineException.Kind.ACCESS,
                    "cannot make a " + (user ? "user and " : "") + "pid namespace for the restored processes: "
                            + e.getMessage()
                            + "; see the limits in /proc/sys/user and whether this host allows user namespaces, or"
                            + " restart as root with --pids=keep",
                    e);
        }
        if (user) {
            mapUser(stub);
        }
        RestoredProcess init = cloning.clone(stub, 0, 0, 0, stub.session());
        CallTable calls = new CallTable();
        calls.must("found a session", SystemCall.SETSID);
        calls.must("name the init", SystemCall.PRCTL, PR_SET_NAME, calls.string(NamespaceInit.NAME));
        calls.must("ignore the end of children", SystemCall.RT_SIGACTION, SIGCHLD, calls.longs(SIG_IGN, 0, 0, 0), 0, 8);
        calls.must("leave the directory", SystemCall.CHDIR, calls.string("/"));
        calls.must("close descriptors", SystemCall.CLOSE_RANGE, 0, 0xffffffffL, 0);
        init.run(calls);
        return new PidNamespace(init);
    }

    /** The user's own ids are the only ones in the namespace: more takes a privilege outside it. */
    private static void mapUser(RestoredProcess stub) {
        ProcStatus status = ProcStatus.read(stub.host());
        int user = status.uids()[1];
        int group = status.gids()[1];
        Path process = Path.of("/proc/" + stub.host());
        try {
            Files.writeString(process.resolve("setgroups"), "deny");
            Files.writeString(process.resolve("uid_map"), user + " " + user + " 1");
            Files.writeString(process.resolve("gid_map"), group + " " + group + " 1");
        } catch (IOException e) {
            throw new EngineException(
                    EngineException.Kind.FAILED, "cannot map user " + user + " into the user namespace: " + e, e);
        }
    }

    /** Covers /proc by that of the namespace. What the stub opens there it has to open before. */
    void mountProc() {
        CallTable calls = new CallTable();
        calls.must(
                "keep mounts to the namespace",
                SystemCall.MOUNT,
                calls.string("none"),
                calls.string("/"),
                0,
                MS_REC | MS_SLAVE,
                0);
        long proc = calls.string("proc");
        calls.must(
                "mount the /proc of the pid namespace",
                SystemCall.MOUNT,
                proc,
                calls.string("/proc"),
                proc,
                MS_NOSUID_NODEV_NOEXEC,
                0);
        init.run(calls);
    }

    /** Lets the init do its work; from here on the namespace lives as long as its tree. */
    void release(WorkArea workArea, RestoredProcess root) {
        NamespaceInit.prepare(init.memory(), init.main(), workArea.address(), root.pid());
        init.main().setOptions(0);
        init.main().detach(0);
        init.close();
    }

    /** Kills whatever is left in the namespace, and its init, which the kernel lets end only when all else is gone. */
    void end() {
        Path namespace = of(init.host());
        for (int pid : ProcessScan.all()) {
            Pid other = new Pid(pid);
            if (!other.equals(init.host()) && namespace.equals(of(other))) {
                Libc.call(SystemCall.KILL, pid, SIGKILL);
                Tracee.autoAttached(new Tid(pid)).reap();
            }
        }
        init.kill();
    }

    /** Names the pid namespace that a process is in; "" when it has ended. */
    static Path of(Pid pid) {
        try {
            return Files.readSymbolicLink(Path.of("/proc/" + pid + "/ns/pid"));
        } catch (IOException e) {
            return Path.of("");
        }
    }
}
