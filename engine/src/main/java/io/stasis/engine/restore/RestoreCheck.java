package io.stasis.engine.restore;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.resource.file.RemovedDirectories;
import io.stasis.engine.resource.thread.SeccompFilters;
import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.FileReference;
import io.stasis.image.model.MemoryImage.Backing;
import io.stasis.image.model.MemoryImage.Mapping;
import io.stasis.image.model.ProcessImage;
import io.stasis.image.model.ThreadImage;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.NoSuchProcessException;
import io.stasis.linux.proc.ProcFiles;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.proc.SystemInfo;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;

/** Compares an image with this host: all that stands in the way of a restart, in one go. Changes nothing. */
final class RestoreCheck {
    private static final long PID_PATIENCE_NANOS = 2_000_000_000L;
    private static final int XSTATE_FEATURES = 512;

    private final ComputationImage computation;
    private final Collection<ProcessImage> processes;
    private final boolean inNamespace;
    private final List<Problem> problems = new ArrayList<>();

    /** @param inNamespace whether the tree gets a pid namespace of its own */
    RestoreCheck(ComputationImage computation, Collection<ProcessImage> processes, boolean inNamespace) {
        this.computation = computation;
        this.processes = processes;
        this.inNamespace = inNamespace;
    }

    List<Problem> problems() {
        Pid self = new Pid((int) ProcessHandle.current().pid());
        ProcStatus own = ProcStatus.find(self).orElseThrow();
        checkPrivileges(own);
        if (!inNamespace) {
            checkPids();
        }
        checkProcessor();
        Map<String, Long> kernelSizes = KernelMappings.sizes(self);
        Set<String> seen = new HashSet<>();
        for (ProcessImage process : processes) {
            checkKernelMappings(process, kernelSizes);
            checkFiles(process, seen);
            SeccompFilters.verify(process.identity().pid(), process.threads()).ifPresent(problems::add);
        }
        return problems;
    }

    private void add(int pid, String resource, String reason, String advice) {
        problems.add(new Problem(pid, -1, resource, reason, advice));
    }

    private void checkPrivileges(ProcStatus own) {
        if (!inNamespace && !PidNamespace.mayChoosePids()) {
            add(
                    computation.root(),
                    "its pid",
                    "this user may not choose the pids of new processes",
                    "restart as root, or give the agent CAP_CHECKPOINT_RESTORE, or restart with --pids=auto");
        }
        if (own.uids()[1] == 0) {
            return;
        }
        for (ProcessImage process : processes) {
            for (ThreadImage thread : process.threads()) {
                if (!AttributeCalls.equal(thread.credentials(), own)) {
                    add(
                            process.identity().pid(),
                            "the credentials of user " + thread.credentials().userIds()[0],
                            "this agent runs as user " + own.uids()[0] + " with other credentials",
                            "restart as the same user, or as root");
                    break;
                }
            }
        }
    }

    /** Whether a pid of the image cannot be had on this host. */
    boolean isAPidTaken() {
        checkPids();
        return !problems.isEmpty();
    }

    private void checkPids() {
        Set<Integer> ids = new HashSet<>();
        processes.forEach(process -> process.threads().forEach(thread -> ids.add(thread.tid())));
        computation.zombies().forEach(zombie -> ids.add(zombie.identity().pid()));
        long deadline = System.nanoTime() + PID_PATIENCE_NANOS;
        for (int id : ids) {
            // One that was killed a moment ago holds its pid until its parent has waited for it.
            while (isTaken(id) && isEnding(id) && System.nanoTime() < deadline) {
                LockSupport.parkNanos(5_000_000);
            }
            if (isTaken(id) && !isGone(id)) {
                add(
                        id,
                        "its pid",
                        "it is taken by " + describe(id),
                        "end that process, or restart when it has ended, or with --pids=auto");
            }
        }
    }

    private static boolean isTaken(int id) {
        return !Libc.isError(Libc.call(SystemCall.GETPGID, id));
    }

    /** Whether it ended while we looked. */
    private static boolean isGone(int id) {
        return ProcStat.find(new Pid(id), new Tid(id)).isEmpty() && !isTaken(id);
    }

    private static boolean isEnding(int id) {
        return ProcStat.find(new Pid(id), new Tid(id))
                .map(stat -> stat.state() == 'Z' || stat.state() == 'X')
                .orElse(true);
    }

    /** A process for an error message. */
    static String describe(int pid) {
        String state = ProcStat.find(new Pid(pid))
                .map(stat -> stat.state() == 'Z' ? ", which has ended but was not waited for" : "")
                .orElse("");
        List<String> command;
        try {
            command = ProcFiles.cmdline(new Pid(pid));
        } catch (NoSuchProcessException e) {
            command = List.of();
        }
        String name = ProcStat.find(new Pid(pid)).map(ProcStat::comm).orElse("a thread");
        return "\"" + (command.isEmpty() ? name : String.join(" ", command)) + "\"" + state;
    }

    /** An XSAVE area names the features it holds in its first header word. */
    private void checkProcessor() {
        long here = SystemInfo.xsaveFeatures();
        for (ProcessImage process : processes) {
            for (ThreadImage thread : process.threads()) {
                byte[] state = thread.extendedState();
                long used = java.nio.ByteBuffer.wrap(state)
                        .order(java.nio.ByteOrder.LITTLE_ENDIAN)
                        .getLong(XSTATE_FEATURES);
                if ((used & ~here) != 0) {
                    add(
                            process.identity().pid(),
                            "processor state",
                            "thread " + thread.tid() + " uses processor features (XSAVE mask 0x"
                                    + Long.toHexString(used & ~here) + ") that this processor lacks",
                            "restart on a host with the same or a newer processor");
                }
            }
        }
    }

    private void checkKernelMappings(ProcessImage process, Map<String, Long> here) {
        Map<String, Long> image = new HashMap<>();
        for (Mapping mapping : process.memory().mappings()) {
            if (mapping.backing() instanceof Backing.Kernel(String name)) {
                image.put(name, mapping.length());
            }
        }
        if (!image.equals(here)) {
            add(
                    process.identity().pid(),
                    "vDSO",
                    "the image has " + image + " and this kernel " + here,
                    "restart on a host with the same kernel version");
        }
    }

    private void checkFiles(ProcessImage process, Set<String> seen) {
        int pid = process.identity().pid();
        FileReference executable = process.memory().executable();
        if (seen.add(executable.path())) {
            checkUnchanged(pid, "executable " + executable.path(), executable);
        }
        for (Mapping mapping : process.memory().mappings()) {
            if (mapping.backing() instanceof Backing.MappedFile(FileReference file, long offset)
                    && seen.add(file.path())) {
                if (mapping.shared() && mapping.hasFlag("mw")) {
                    checkLongEnough(pid, file, offset + mapping.length());
                } else {
                    checkUnchanged(pid, "mapped file " + file.path(), file);
                }
            }
        }
        var directory = process.filesystem().workingDirectory();
        if (process.filesystem().removed()) {
            RemovedDirectories.problem(pid, directory).ifPresent(problems::add);
        } else if (!FileStatus.of(directory.path()).isDirectory()) {
            add(pid, "working directory " + directory.path(), "it does not exist", "make it again");
        }
    }

    private void checkUnchanged(int pid, String what, FileReference file) {
        FileStatus now = FileStatus.of(file.path());
        if (!now.exists()) {
            add(pid, what, "it does not exist", "put it back");
        } else if (now.size() != file.size() || now.mtimeNanos() != file.modifiedNanos()) {
            add(
                    pid,
                    what,
                    "it has changed since the checkpoint (size " + file.size() + " then, " + now.size() + " now)",
                    "put the old version back: memory of the program refers to it");
        }
    }

    private void checkLongEnough(int pid, FileReference file, long needed) {
        FileStatus now = FileStatus.of(file.path());
        if (!now.exists()) {
            if (computation.savedFiles().stream()
                    .noneMatch(saved -> saved.file().path().equals(file.path()))) {
                add(pid, "mapped file " + file.path(), "it does not exist", "put it back");
            }
        } else if (now.size() < Math.min(needed, file.size())) {
            add(pid, "mapped file " + file.path(), "it is shorter than it was", "put the old version back");
        }
    }
}
