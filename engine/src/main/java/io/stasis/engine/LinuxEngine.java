package io.stasis.engine;

import io.stasis.engine.capture.TreeCheckpoint;
import io.stasis.engine.capture.TreeEnd;
import io.stasis.engine.restore.TreeRestore;
import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.PidFd;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.ProcFiles;
import io.stasis.linux.proc.ProcStat;
import java.nio.ByteBuffer;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;

/** The engine on a Linux kernel. */
public final class LinuxEngine implements Engine {
    private static final int SIGKILL = 9;
    private static final int SIGTERM = 15;
    private static final int WALL = 0x40000000;
    private static final int WNOHANG = 1;
    private static final short POLLIN = 1;
    private static final long KILL_PATIENCE_NANOS = 5_000_000_000L;

    @Override
    public CheckpointSession checkpoint(CheckpointRequest request) {
        return new TreeCheckpoint(request);
    }

    @Override
    public RestoreSession restore(RestoreRequest request) {
        return new TreeRestore(request);
    }

    @Override
    public List<Problem> survey(CheckpointRequest request) {
        try (TreeCheckpoint checkpoint = new TreeCheckpoint(request)) {
            return checkpoint.survey();
        }
    }

    @Override
    public Optional<TreeStatus> status(CheckpointRequest request, long startTime) {
        Pid root = new Pid(request.roots().getFirst());
        Optional<ProcStat> stat = ProcStat.find(root).filter(s -> !s.isZombie());
        if (stat.isEmpty() || (startTime != 0 && stat.get().startTime() != startTime)) {
            return Optional.empty();
        }
        int processes = 0;
        int threads = 0;
        try (TreeCheckpoint tree = new TreeCheckpoint(request)) {
            for (ProcessKey key : tree.tree()) {
                processes++;
                threads += ProcStat.find(new Pid(key.pid()))
                        .map(ProcStat::numThreads)
                        .orElse(0);
            }
        } catch (EngineException e) {
            return Optional.empty(); // ended while it was looked at
        }
        return Optional.of(new TreeStatus(
                processes, threads, stat.get().startTime(), stat.get().comm(), ProcFiles.cmdline(root)));
    }

    @Override
    public List<Integer> kill(CheckpointRequest request, long graceMillis) {
        Set<ProcessKey> all = new LinkedHashSet<>(treeOrNothing(request));
        if (graceMillis > 0) {
            all.forEach(key -> signal(key, SIGTERM));
            long deadline = System.nanoTime() + graceMillis * 1_000_000;
            while (all.stream().anyMatch(LinuxEngine::isAlive) && System.nanoTime() < deadline) {
                LockSupport.parkNanos(5_000_000);
            }
        }
        all.addAll(TreeEnd.kill(request));
        // What was re-parented away when its parent ended at the SIGTERM.
        all.forEach(key -> signal(key, SIGKILL));
        long deadline = System.nanoTime() + KILL_PATIENCE_NANOS;
        while (all.stream().anyMatch(LinuxEngine::isAlive) && System.nanoTime() < deadline) {
            LockSupport.parkNanos(1_000_000);
        }
        return all.stream().map(ProcessKey::pid).toList();
    }

    private static List<ProcessKey> treeOrNothing(CheckpointRequest request) {
        try (TreeCheckpoint tree = new TreeCheckpoint(request)) {
            return tree.tree();
        } catch (EngineException e) {
            return List.of();
        }
    }

    private static boolean isAlive(ProcessKey key) {
        return ProcStat.find(new Pid(key.pid()))
                .filter(stat -> !stat.isZombie() && stat.startTime() == key.startTime())
                .isPresent();
    }

    private static void signal(ProcessKey key, int signal) {
        if (isAlive(key)) {
            Libc.call(SystemCall.KILL, key.pid(), signal);
        }
    }

    /**
     * Not by a plain wait4(2): as any thread may wait for the tracees of all, it would take away the stops of a child
     * that is being checkpointed. A pidfd tells of the end only.
     */
    @Override
    public void reap(int pid) {
        try (Fd pidfd = PidFd.open(new Pid(pid))) {
            ByteBuffer poll = Libc.buffer(8);
            poll.putInt(0, pidfd.value()).putShort(4, POLLIN);
            long result;
            do {
                result = Libc.call(SystemCall.POLL, Libc.address(poll), 1, -1);
            } while (result == -Errno.EINTR);
        } catch (KernelException e) {
            // It has ended already.
        }
        Libc.call(SystemCall.WAIT4, pid, 0, WALL | WNOHANG, 0);
    }

    @Override
    public List<HostCapability> capabilities() {
        return HostCapabilities.all();
    }

    @Override
    public void warmUp() {
        WarmUp.run();
    }
}
