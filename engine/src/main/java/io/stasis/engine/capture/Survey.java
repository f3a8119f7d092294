package io.stasis.engine.capture;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.engine.namespace.InnerIds;
import io.stasis.engine.namespace.RestoredNamespaces;
import io.stasis.engine.resource.DescriptorCapture;
import io.stasis.engine.resource.thread.SeccompFilters;
import io.stasis.engine.resource.thread.ThreadModes;
import io.stasis.engine.resource.timer.PosixTimers;
import io.stasis.linux.Errno;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.elf.ElfClass;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.NoSuchProcessException;
import io.stasis.linux.proc.ProcFiles;
import io.stasis.linux.proc.ProcLinks;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.ProcStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** Finds out, without freezing anything, what in a process cannot be captured. */
final class Survey {
    /** The parent of all threads of the kernel. */
    private static final int KTHREADD = 2;

    private static final int LOOKS = 20;

    private final AddressSpaceReader spaces;
    private final DescriptorCapture descriptors;

    Survey(AddressSpaceReader spaces, DescriptorCapture descriptors) {
        this.spaces = spaces;
        this.descriptors = descriptors;
    }

    /**
     * @return empty also when the process has ended meanwhile
     * @throws EngineException when the process belongs to somebody else
     */
    List<Problem> problems(int number) {
        for (int look = 1; ; look++) {
            try {
                return lookUnlessEnded(number);
            } catch (EngineException | KernelException e) {
                // In the midst of an execve(2) or of its end a process lets nobody look for a moment.
                if (look == LOOKS || !isLockedOutOfOwn(number, e)) {
                    throw e;
                }
                LockSupport.parkNanos(1_000_000);
            }
        }
    }

    private static boolean isLockedOutOfOwn(int number, RuntimeException e) {
        boolean locked = switch (e) {
            case EngineException engine -> engine.kind() == EngineException.Kind.ACCESS;
            case KernelException kernel -> kernel.errno() == Errno.EACCES || kernel.errno() == Errno.EPERM;
            default -> false;
        };
        return locked
                && ProcStatus.find(new Pid(number))
                        .map(status -> status.uids()[0] == (int) Libc.call(SystemCall.GETEUID))
                        .orElse(false);
    }

    private List<Problem> lookUnlessEnded(int number) {
        try {
            return look(number);
        } catch (KernelException | NoSuchProcessException e) {
            // It runs on while it is looked at, and may end in the middle.
            var stat = ProcStat.find(new Pid(number));
            if (stat.map(ProcStat::isZombie).orElse(true)) {
                return List.of();
            }
            if (e instanceof KernelException kernel && kernel.errno() == Errno.ENOENT) {
                if (number != KTHREADD && stat.get().ppid() != KTHREADD) {
                    return List.of(); // no program any more: it is ending, and will be a zombie in a moment
                }
                throw new EngineException(
                        EngineException.Kind.ACCESS,
                        "process " + number + " runs no program: it is one of the kernel's own; see `stasis ps`",
                        e);
            }
            throw e;
        }
    }

    private List<Problem> look(int number) {
        Pid pid = new Pid(number);
        var status = ProcStatus.find(pid);
        var stat = ProcStat.find(pid);
        if (status.isEmpty() || stat.isEmpty() || stat.get().state() == 'X') {
            return List.of();
        }
        checkAccess(pid, status.get());
        List<Problem> problems = new ArrayList<>();
        if (stat.get().state() == 'Z') {
            if (stat.get().numThreads() > 1) {
                problems.add(problem(
                        number, "main thread", "it has ended while other threads run", "end the main thread last"));
            }
            return problems;
        }
        if (ElfClass.of(pid) == ElfClass.BITS_32) {
            problems.add(problem(
                    number,
                    "32-bit program " + ProcFiles.cmdline(pid),
                    "32-bit programs are not supported",
                    "use its 64-bit build"));
            return problems;
        }
        ProcLinks.Target executable = ProcLinks.exe(pid);
        if (executable.deleted()) {
            problems.add(problem(
                    number,
                    "program " + executable.path(),
                    "its file was deleted",
                    "put it back, or restart the program with the new version"));
        }
        if (status.get().tracerPid() != 0) {
            problems.add(problem(
                    number,
                    "traced process",
                    "process " + status.get().tracerPid() + " is its debugger, and there can be only one",
                    "end the debugger first"));
        }
        SeccompFilters.problem(pid).ifPresent(problems::add);
        ThreadModes.problem(pid).ifPresent(problems::add);
        boolean restored = InnerIds.isElsewhere(status.get()) && RestoredNamespaces.isOurs(pid);
        if (InnerIds.isElsewhere(status.get()) && !restored) {
            problems.add(problem(
                    number,
                    "pid namespace",
                    "processes inside a container are not supported",
                    "run Stasis inside the container"));
        }
        for (String kind : List.of("mnt", "net", "uts", "ipc")) {
            boolean expected = restored && kind.equals("mnt");
            if (!expected && isElsewhere(pid, kind)) {
                problems.add(problem(
                        number,
                        kind + " namespace",
                        "a namespace other than the agent's is not supported",
                        "run Stasis inside the namespace"));
            }
        }
        problems.addAll(PosixTimers.problems(pid));
        problems.addAll(spaces.problems(pid));
        problems.addAll(descriptors.survey(number));
        return problems;
    }

    private static boolean isElsewhere(Pid pid, String namespace) {
        try {
            return !Files.readSymbolicLink(Path.of("/proc/" + pid + "/ns/" + namespace))
                    .equals(Files.readSymbolicLink(Path.of("/proc/self/ns/" + namespace)));
        } catch (IOException e) {
            return false; // it has ended
        }
    }

    private static Problem problem(int pid, String resource, String reason, String advice) {
        return new Problem(pid, -1, resource, reason, advice);
    }

    private static void checkAccess(Pid pid, ProcStatus status) {
        int ours = (int) Libc.call(SystemCall.GETEUID);
        if (ours == 0) {
            return;
        }
        int owner = status.uids()[0];
        if (ProcFiles.mayTrace(pid)
                || ProcStat.find(pid).map(ProcStat::isZombie).orElse(true)) {
            return;
        }
        throw new EngineException(
                EngineException.Kind.ACCESS,
                owner == ours
                        ? "process " + pid + " does not let user " + ours + " look into it: it runs a program that"
                                + " changes its user, or made itself undumpable (PR_SET_DUMPABLE); run the command as"
                                + " root"
                        : "process " + pid + " belongs to user " + owner + " and this agent runs as user " + ours
                                + "; run the command as that user, or as root");
    }
}
