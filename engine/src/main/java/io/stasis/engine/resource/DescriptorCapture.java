package io.stasis.engine.resource;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.engine.Outcome;
import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.DescriptorEntry;
import io.stasis.image.model.OpenDescription;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Kcmp;
import io.stasis.linux.proc.FdTable;
import io.stasis.linux.proc.NoSuchProcessException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * The descriptor tables of the processes of one tree, and the open file descriptions behind them: each is captured once,
 * however many descriptors of however many processes share it.
 *
 * <p>Whether two descriptors share a description only kcmp(2) can tell. It also orders them, so that among those which
 * look alike the right one is found by binary search.
 */
public final class DescriptorCapture implements AutoCloseable {
    /** What descriptors of one description always agree in. */
    private record Likeness(long device, long inode, long rdev, int flags, long position) {}

    /** A description by one descriptor that leads to it. */
    private record Known(int pid, int fd, int index) {}

    private final Set<Integer> treePids;
    private final TreePipes treePipes;
    private final Pipes pipes;
    private final Terminals terminals;
    private final List<DescriptorKind<?>> kinds;
    private final List<OpenDescription> descriptions = new ArrayList<>();
    private final Map<Likeness, List<Known>> known = new HashMap<>();
    private boolean frozen;

    public DescriptorCapture(Set<Integer> treePids) {
        this.treePids = new HashSet<>(treePids);
        this.treePipes = new TreePipes(this.treePids);
        this.pipes = new Pipes(treePipes);
        this.terminals = new Terminals(this.treePids);
        this.kinds = List.of(
                new OpenFiles(this.treePids),
                new Externals(treePipes),
                pipes,
                terminals,
                new EventPolls(),
                new EventCounters(),
                new DeadSockets());
    }

    /** One more process of the tree. */
    public void addProcess(int pid) {
        treePids.add(pid);
    }

    /**
     * Everything in the process's table that cannot be captured. Nothing need be frozen and nothing is disturbed.
     *
     * @throws EngineException when the table may not be read
     */
    public List<Problem> survey(int pid) {
        List<Problem> problems = new ArrayList<>();
        for (int fd : table(pid)) {
            Descriptor.read(pid, fd).ifPresent(descriptor -> {
                Optional<DescriptorKind<?>> kind = kind(descriptor);
                if (kind.isEmpty()) {
                    problems.add(Refused.problem(descriptor));
                } else {
                    kind.get().problem(descriptor).ifPresent(problems::add);
                }
            });
        }
        return problems;
    }

    /** Forgets what the last survey saw: the tree runs, and its pipes come and go. */
    public void lookAgain() {
        treePipes.refresh();
    }

    private static int[] table(int pid) {
        try {
            return FdTable.list(new Pid(pid));
        } catch (NoSuchProcessException e) {
            return new int[0];
        } catch (KernelException e) {
            throw new EngineException(
                    EngineException.Kind.ACCESS,
                    "cannot read the descriptors of process " + pid + ": " + e.getMessage()
                            + "; run Stasis as the user who owns it, or as root",
                    e);
        }
    }

    private Optional<DescriptorKind<?>> kind(Descriptor descriptor) {
        return kinds.stream().filter(k -> k.claims(descriptor)).findFirst();
    }

    /** @param connections those that this process is the first to hold */
    public record Captured(List<DescriptorEntry> entries, List<Outcome.Connection> connections) {}

    /**
     * Captures the table of a frozen process; all processes of the tree are frozen.
     *
     * @throws io.stasis.engine.UnsupportedResourceException when something was opened after the survey
     */
    public Captured capture(int pid) {
        if (!frozen) {
            treePipes.refresh();
            frozen = true;
        }
        List<DescriptorEntry> entries = new ArrayList<>();
        for (int fd : table(pid)) {
            Descriptor descriptor = Descriptor.read(pid, fd)
                    .orElseThrow(() -> new EngineException(
                            EngineException.Kind.FAILED,
                            "descriptor " + fd + " of process " + pid + " vanished while the process was frozen"));
            entries.add(new DescriptorEntry(fd, descriptor.closeOnExec(), description(descriptor)));
        }
        return new Captured(List.copyOf(entries), pipes.takeConnections());
    }

    private int description(Descriptor descriptor) {
        var likeness = new Likeness(
                descriptor.status().dev(),
                descriptor.status().ino(),
                descriptor.status().rdev(),
                descriptor.statusFlags(),
                descriptor.info().pos());
        List<Known> alike = known.computeIfAbsent(likeness, key -> new ArrayList<>());
        int low = 0;
        int high = alike.size();
        while (low < high) {
            int middle = (low + high) >>> 1;
            Known other = alike.get(middle);
            int order = Kcmp.compare(
                    new Pid(descriptor.pid()), new Pid(other.pid), Kcmp.KCMP_FILE, descriptor.fd(), other.fd);
            if (order == Kcmp.SAME) {
                return other.index;
            }
            if (order == Kcmp.LESS) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        int index = descriptions.size();
        descriptions.add(captureOne(descriptor));
        alike.add(low, new Known(descriptor.pid(), descriptor.fd(), index));
        return index;
    }

    private OpenDescription captureOne(Descriptor descriptor) {
        Optional<DescriptorKind<?>> kind = kind(descriptor);
        Optional<Problem> problem = kind.isEmpty()
                ? Optional.of(Refused.problem(descriptor))
                : kind.get().problem(descriptor);
        if (problem.isPresent()) {
            throw new io.stasis.engine.UnsupportedResourceException(List.of(problem.get()));
        }
        return kind.get().capture(descriptor);
    }

    public List<OpenDescription> descriptions() {
        return List.copyOf(descriptions);
    }

    public List<ComputationImage.Pipe> pipes() {
        return pipes.pipes();
    }

    public List<ComputationImage.Terminal> terminals() {
        return terminals.terminals();
    }

    /** Nothing stays open between calls; part of the contract for kinds that will need it. */
    @Override
    public void close() {
        known.clear();
    }
}
