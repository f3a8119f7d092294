package io.stasis.engine.resource;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.engine.Outcome;
import io.stasis.image.model.ComputationImage.FileLock;
import io.stasis.image.model.ComputationImage.SignalOwner;
import io.stasis.image.model.DescriptorEntry;
import io.stasis.image.model.OpenDescription;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Kcmp;
import io.stasis.linux.proc.FdTable;
import io.stasis.linux.proc.NoSuchProcessException;
import java.util.ArrayList;
import java.util.HashMap;
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
    private final List<DescriptorKind<?>> kinds;
    private final List<OpenDescription> descriptions = new ArrayList<>();
    private final List<SignalOwner> owners = new ArrayList<>();
    private final FileLocks locks = new FileLocks();
    private final Map<Likeness, List<Known>> known = new HashMap<>();
    private boolean frozen;
    private boolean ending;

    /**
     * @param treePids processes of the tree, which may grow
     * @param kinds every kind, in the order in which they are asked
     */
    public DescriptorCapture(Set<Integer> treePids, List<DescriptorKind<?>> kinds) {
        this.treePids = treePids;
        this.kinds = kinds;
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
                    kind.get()
                            .problem(descriptor)
                            .or(() -> SignalOwners.problem(descriptor, treePids))
                            .or(() -> FileLocks.problem(descriptor))
                            .ifPresent(problems::add);
                }
            });
        }
        return problems;
    }

    /** Forgets what the last survey saw: the tree runs, and its pipes come and go. */
    public void lookAgain() {
        kinds.forEach(DescriptorKind::lookAgain);
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
            lookAgain();
            frozen = true;
        }
        List<DescriptorEntry> entries = new ArrayList<>();
        try (StubDescriptors copies = new StubDescriptors(pid)) {
            for (int fd : table(pid)) {
                Descriptor descriptor = Descriptor.read(pid, fd)
                        .orElseThrow(() -> new EngineException(
                                EngineException.Kind.FAILED,
                                "descriptor " + fd + " of process " + pid + " vanished while the process was frozen"));
                int description = description(descriptor, copies);
                entries.add(new DescriptorEntry(fd, descriptor.closeOnExec(), description));
                locks.capture(descriptor, description);
            }
        }
        List<Outcome.Connection> connections = new ArrayList<>();
        kinds.forEach(kind -> connections.addAll(kind.takeConnections()));
        return new Captured(List.copyOf(entries), connections);
    }

    /** The description behind a descriptor of any process, as which this one counts: one on its way through a socket. */
    private int descriptionOf(Descriptor descriptor) {
        try (StubDescriptors copies = new StubDescriptors(descriptor.pid())) {
            return description(descriptor, copies);
        }
    }

    private int description(Descriptor descriptor, StubDescriptors copies) {
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
        // Known before it is captured: a socket can wait in its own queue.
        int index = descriptions.size();
        descriptions.add(null);
        alike.add(low, new Known(descriptor.pid(), descriptor.fd(), index));
        descriptions.set(index, captureOne(descriptor));
        SignalOwner owner = SignalOwners.capture(copies, descriptor.fd(), index, treePids);
        if (owner != null) {
            owners.add(owner);
        }
        return index;
    }

    private OpenDescription captureOne(Descriptor descriptor) {
        Optional<DescriptorKind<?>> kind = kind(descriptor);
        Optional<Problem> problem = kind.isEmpty()
                ? Optional.of(Refused.problem(descriptor))
                : kind.get().problem(descriptor).or(() -> FileLocks.problem(descriptor));
        if (problem.isPresent()) {
            throw new io.stasis.engine.UnsupportedResourceException(List.of(problem.get()));
        }
        return kind.get().capture(descriptor, this::descriptionOf);
    }

    /** The descriptions found, the hidden ones included, which none of the tables leads to. */
    public List<OpenDescription> descriptions() {
        for (boolean more = true; more; ) {
            more = false;
            for (DescriptorKind<?> kind : kinds) {
                more |= descriptions.addAll(kind.captureHidden());
            }
        }
        return List.copyOf(descriptions);
    }

    /** To be called before the first process of the frozen tree is killed. */
    public void beforeEnd() {
        if (!ending) {
            ending = true;
            kinds.forEach(DescriptorKind::beforeEnd);
        }
    }

    /** Who gets signals of which descriptions. */
    public List<FileLock> locks() {
        return locks.locks();
    }

    public List<SignalOwner> owners() {
        return List.copyOf(owners);
    }

    /** Nothing stays open between calls; part of the contract for kinds that will need it. */
    @Override
    public void close() {
        known.clear();
    }
}
