package io.stasis.engine.capture;

import io.stasis.engine.CheckpointRequest;
import io.stasis.engine.CheckpointSession;
import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.engine.Outcome;
import io.stasis.engine.ProcessKey;
import io.stasis.engine.UnsupportedResourceException;
import io.stasis.engine.kinds.Kinds;
import io.stasis.engine.namespace.InnerIds;
import io.stasis.engine.resource.DescriptorCapture;
import io.stasis.engine.resource.ipc.SystemVObjects;
import io.stasis.engine.resource.thread.SeccompFilters;
import io.stasis.engine.resource.thread.SharedTables;
import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.ComputationImage.Zombie;
import io.stasis.image.model.ProcessImage;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.proc.Tasks;
import io.stasis.linux.ptrace.FilteredCallException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/** One attempt to checkpoint one tree, see {@link CheckpointSession}. */
public final class TreeCheckpoint implements CheckpointSession {
    /** How often something must be seen in a running tree to be believed. */
    private static final int LOOKS = 4;

    private final CheckpointRequest request;
    private final ProcessTree tree;
    private final Set<Integer> treePids = new HashSet<>();
    private final Kinds kinds = Kinds.forCapture(treePids);
    private final AddressSpaceReader spaces = new AddressSpaceReader(kinds.namelessFiles());
    private final DescriptorCapture descriptors = new DescriptorCapture(treePids, kinds.all());
    private final Map<ProcessKey, FrozenProcess> frozen = new LinkedHashMap<>();
    private final Set<Integer> known = new HashSet<>();
    private final Set<ProcessKey> surveyed = new HashSet<>();
    private final InnerIds ids = new InnerIds();
    private ImageWriter image;
    private long firstFrozenNanos;

    public TreeCheckpoint(CheckpointRequest request) {
        this.request = request;
        this.tree = new ProcessTree(request.host(), request.roots(), request.cookie());
    }

    /** The tree as it is now, parents first. Freezes nothing and checks nothing. */
    public List<ProcessKey> tree() {
        return tree.walk();
    }

    /** Everything in the tree that cannot be captured. Freezes nothing. */
    public List<Problem> survey() {
        List<Problem> problems = new ArrayList<>();
        List<ProcessKey> processes = tree.walk();
        processes.forEach(key -> treePids.add(key.pid()));
        Survey survey = new Survey(spaces, descriptors);
        for (ProcessKey key : processes) {
            problems.addAll(survey.problems(key.pid()));
            surveyed.add(key);
        }
        problems.addAll(SharedTables.problems(
                processes.stream().map(ProcessKey::pid).collect(Collectors.toCollection(LinkedHashSet::new))));
        return problems;
    }

    /**
     * The tree runs while it is looked at: a child born in the middle holds ends of pipes that seem to lead outside, and a
     * descriptor may be gone in the next moment. What is found again and again is there.
     */
    private List<Problem> lastingProblems() {
        List<Problem> problems = new ArrayList<>(survey());
        for (int look = 1; look < LOOKS && !problems.isEmpty(); look++) {
            descriptors.lookAgain();
            problems.retainAll(survey());
        }
        return problems;
    }

    @Override
    public List<ProcessKey> discover() {
        return attempt("look at the tree of process " + request.roots(), () -> {
            List<Problem> problems = lastingProblems();
            BlockedCalls.calibrate();
            if (!problems.isEmpty()) {
                throw new UnsupportedResourceException(problems);
            }
            return tree.walk();
        });
    }

    @Override
    public Outcome.Suspended suspend(ProcessKey key) {
        return attempt("freeze process " + key.pid(), () -> {
            long started = System.nanoTime();
            known.add(key.pid());
            if (firstFrozenNanos == 0) {
                firstFrozenNanos = started;
            }
            FrozenProcess process = FrozenProcess.freeze(key);
            if (process == null) {
                return new Outcome.Suspended(key, List.of(), List.of(), started, System.nanoTime());
            }
            frozen.put(key, process);
            if (surveyed.add(key)) {
                // Born after the survey. Its descriptors are looked at when the whole tree stands still: before, the
                // other end of a pipe may be in a process that has not been found yet.
                treePids.add(key.pid());
                List<Problem> problems = new Survey(spaces, descriptors)
                        .problems(key.pid()).stream()
                                .filter(problem -> problem.fd() < 0)
                                .filter(problem -> !problem.resource().equals("traced process")) // by us
                                .toList();
                if (!problems.isEmpty()) {
                    throw new UnsupportedResourceException(problems);
                }
            }
            List<Outcome.StoppedThread> threads = new ArrayList<>();
            for (FrozenThread thread : process.threads()) {
                String name = ProcStat.find(process.pid(), thread.tracee().tid())
                        .map(ProcStat::comm)
                        .orElse("");
                threads.add(new Outcome.StoppedThread(thread.tid(), name, thread.at(), thread.waitNanos()));
            }
            List<ProcessKey> children = new ArrayList<>();
            for (ProcessKey child : tree.missing(List.of(process), Set.of())) {
                children.add(child);
            }
            return new Outcome.Suspended(key, threads, children, started, System.nanoTime());
        });
    }

    @Override
    public List<ProcessKey> unsuspended() {
        return attempt("look for new processes", () -> tree.missing(frozen.values(), known));
    }

    @Override
    public List<ProcessKey> processes() {
        return List.copyOf(frozen.keySet());
    }

    private ImageWriter image() {
        if (image == null) {
            image = new ImageWriter(request, spaces, ids);
        }
        return image;
    }

    @Override
    public Outcome.Drained drain(ProcessKey key) {
        return attempt("capture process " + key.pid(), () -> {
            long started = System.nanoTime();
            FrozenProcess process = frozenProcess(key);
            Leftovers.remove(process);
            ids.learn(process.pid());
            var mappings = spaces.read(process.pid());
            var captured = descriptors.capture(key.pid());
            var state = new ProcessReader(process).read(mappings);
            image().add(process, mappings, captured.entries(), state);
            return new Outcome.Drained(
                    key, captured.entries().size(), captured.connections(), started, System.nanoTime());
        });
    }

    @Override
    public Outcome.Written write(ProcessKey key) {
        return attempt("write the image of process " + key.pid(), () -> image().write(frozenProcess(key)));
    }

    @Override
    public Outcome.Finished finishImage() {
        return attempt("write the image of the tree", () -> {
            long started = System.nanoTime();
            int root = request.roots().getFirst();
            List<Integer> pids = frozen.keySet().stream().map(ProcessKey::pid).toList();
            var descriptions = descriptors.descriptions();
            var shared = image().writeSharedObjects(frozen);
            var nameless = image().writeNamelessFiles(kinds.namelessFiles(), frozen);
            List<Zombie> zombies = zombies();
            Set<Integer> users = new HashSet<>(pids);
            zombies.forEach(zombie -> users.add(zombie.identity().pid()));
            var computation = new ComputationImage(
                    root,
                    pids,
                    zombies,
                    descriptions,
                    kinds.pipes().pipes(),
                    shared,
                    kinds.terminals().terminals(),
                    spaces.savedFiles(),
                    descriptors.owners(),
                    nameless,
                    spaces.segments(),
                    descriptors.locks(),
                    SystemVObjects.capture(users));
            image().writeTree(computation);
            return new Outcome.Finished(
                    frozen.keySet().iterator().next(),
                    image().files(),
                    image().summaries(),
                    started,
                    System.nanoTime());
        });
    }

    /** Children that have ended and that nobody waited for. */
    private List<Zombie> zombies() {
        List<Zombie> zombies = new ArrayList<>();
        for (FrozenProcess process : frozen.values()) {
            for (int child : Tasks.childrenOf(process.pid())) {
                Pid pid = new Pid(child);
                var stat = ProcStat.find(pid);
                if (stat.isEmpty() || stat.get().state() != 'Z') {
                    continue;
                }
                ProcStat s = stat.get();
                ProcStatus status = ProcStatus.find(pid).orElseThrow();
                ids.learn(pid);
                zombies.add(new Zombie(
                        new ProcessImage.Identity(
                                child, s.ppid(), s.pgrp(), s.session(), s.exitSignal(), s.startTime(), s.comm()),
                        s.exitCode(),
                        status.uids(),
                        status.gids()));
            }
        }
        return zombies;
    }

    @Override
    public Outcome.Refilled refill(ProcessKey key) {
        // Nothing was taken out: pipes are read with tee(2), which leaves the bytes where they are.
        long now = System.nanoTime();
        return new Outcome.Refilled(key, List.of(), now, now);
    }

    @Override
    public Outcome.Resumed resume(ProcessKey key) {
        return attempt("resume process " + key.pid(), () -> {
            long started = System.nanoTime();
            FrozenProcess process = frozenProcess(key);
            process.resume();
            frozen.remove(key);
            long finished = System.nanoTime();
            return new Outcome.Resumed(key, process.threads().size(), finished - firstFrozenNanos, started, finished);
        });
    }

    @Override
    public Outcome.Resumed terminate(ProcessKey key) {
        return attempt("end process " + key.pid(), () -> {
            long started = System.nanoTime();
            FrozenProcess process = frozenProcess(key);
            descriptors.beforeEnd();
            process.kill();
            frozen.remove(key);
            long finished = System.nanoTime();
            return new Outcome.Resumed(key, process.threads().size(), finished - firstFrozenNanos, started, finished);
        });
    }

    private FrozenProcess frozenProcess(ProcessKey key) {
        FrozenProcess process = frozen.get(key);
        if (process == null) {
            throw new EngineException(
                    EngineException.Kind.FAILED, "process " + key.pid() + " ended during the checkpoint");
        }
        return process;
    }

    /** Runs a step and turns the kernel's and the disk's words into a sentence that says what was being done. */
    private static <T> T attempt(String what, Supplier<T> step) {
        try {
            return step.get();
        } catch (EngineException e) {
            throw e;
        } catch (FilteredCallException e) {
            throw new UnsupportedResourceException(List.of(SeccompFilters.forbidden(
                    new Pid(e.pid()), "it forbids " + e.call() + ", which a checkpoint injects")));
        } catch (KernelException e) {
            throw new EngineException(
                    EngineException.Kind.FAILED,
                    "could not " + what + ": " + e.getMessage() + "; the program runs on",
                    e);
        } catch (RuntimeException e) {
            throw new EngineException(
                    EngineException.Kind.FAILED,
                    "could not " + what + ": " + e.getMessage() + "; the program runs on",
                    e);
        }
    }

    @Override
    public void close() {
        for (FrozenProcess process : List.copyOf(frozen.values())) {
            try {
                process.resume();
            } catch (RuntimeException e) {
                // The others must be let go all the same; what the tracer still holds is released with its thread.
                org.slf4j.LoggerFactory.getLogger(TreeCheckpoint.class)
                        .error("could not resume process {}", process.key().pid(), e);
            }
        }
        frozen.clear();
        descriptors.close();
        kinds.namelessFiles().close();
    }
}
