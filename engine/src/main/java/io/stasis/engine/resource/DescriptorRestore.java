package io.stasis.engine.resource;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.engine.Outcome;
import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.ComputationImage.FileLock;
import io.stasis.image.model.DescriptorEntry;
import io.stasis.image.model.OpenDescription;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.ptrace.CallTable;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.IntUnaryOperator;
import java.util.function.Supplier;

/**
 * Opens the descriptions of an image in the stub, whose descendants inherit them, and deals them out to the processes.
 *
 * <p>In the stub, description {@code i} is descriptor {@code highBase + i}. Every number used by the image is below
 * {@code highBase}.
 */
public final class DescriptorRestore {
    private static final int STANDARD = 3;

    /** The descriptions of one kind, by their descriptors in the stub. */
    private record Part<D extends OpenDescription>(DescriptorKind<D> kind, SortedMap<Integer, D> byTarget) {
        static <D extends OpenDescription> Part<D> of(
                DescriptorKind<D> kind, List<OpenDescription> descriptions, int highBase) {
            SortedMap<Integer, D> byTarget = new TreeMap<>();
            for (int i = 0; i < descriptions.size(); i++) {
                if (kind.type().isInstance(descriptions.get(i))) {
                    byTarget.put(highBase + i, kind.type().cast(descriptions.get(i)));
                }
            }
            return new Part<>(kind, byTarget);
        }

        void verify(Set<Problem> problems) {
            byTarget.values().forEach(description -> problems.addAll(kind.verify(description)));
        }

        void open(StubCalls stub) {
            SortedMap<Integer, D> inStub = new TreeMap<>(byTarget);
            inStub.values().removeIf(kind::isPerProcess);
            if (!inStub.isEmpty()) {
                kind.openAll(inStub, stub);
            }
        }

        void openInProcess(int target, StubCalls own) {
            D description = byTarget.get(target);
            if (kind.isPerProcess(description)) {
                kind.openInProcess(description, target, own);
            }
        }

        void beforeInstall(int target, int index, StubCalls own) {
            kind.beforeInstall(byTarget.get(target), index, own);
        }

        void install(int target, int index, int fd, int pid, Supplier<CallTable> calls) {
            kind.install(byTarget.get(target), index, fd, pid, calls);
        }

        List<Outcome.Connection> complete(StubDescriptors stub) {
            return byTarget.isEmpty() ? List.of() : kind.complete(byTarget, stub);
        }
    }

    private final ComputationImage image;
    private final Set<Integer> standard;
    private final int highBase;
    private final List<Part<?>> parts = new ArrayList<>();
    private final List<Part<?>> partOf = new ArrayList<>();

    /**
     * @param kinds every kind, in the order in which they are opened
     * @param standard which of the stub's descriptors 0, 1 and 2 are open
     */
    public DescriptorRestore(
            ComputationImage image, List<DescriptorKind<?>> kinds, Set<Integer> standard, int highBase) {
        this.image = image;
        this.standard = standard;
        this.highBase = highBase;
        for (DescriptorKind<?> kind : kinds) {
            parts.add(Part.of(kind, image.descriptions(), highBase));
        }
        for (OpenDescription description : image.descriptions()) {
            partOf.add(parts.stream()
                    .filter(part -> part.kind.type().isInstance(description))
                    .findFirst()
                    .orElseThrow(() -> new EngineException(
                            EngineException.Kind.IMAGE,
                            "the image has a descriptor of a kind that this version does not know: "
                                    + description.getClass().getSimpleName())));
        }
    }

    /** What stands in the way of opening everything again, all at once. */
    public List<Problem> verify() {
        Set<Problem> problems = new LinkedHashSet<>();
        parts.forEach(part -> part.verify(problems));
        return problems.stream()
                .map(p -> new Problem(
                        p.pid() == 0 ? image.root() : p.pid(), p.fd(), p.resource(), p.reason(), p.advice()))
                .toList();
    }

    /** One above the highest descriptor that the stub will use. */
    public int end() {
        return namelessBase() + image.namelessFiles().size();
    }

    /** The stub's descriptor of the first file without a path, which {@link StubCalls#namelessFile} opens again. */
    public int namelessBase() {
        return highBase + image.descriptions().size();
    }

    /** As {@link StubCalls#namelessFile}, good in every process until its own table is in place. */
    public String namelessFile(int index) {
        return calls(() -> null).namelessFile(index);
    }

    /** The stub's table, for whoever opens more in it by calls alone. */
    public StubCalls calls(Supplier<CallTable> table) {
        return new StubCalls(table, highBase, namelessBase(), action -> {
            throw new IllegalStateException("here everything is done by calls");
        });
    }

    /**
     * Opens everything in the stub; files without a path are there already.
     *
     * @param calls where calls are added that are run in the stub
     * @param run runs what was added; the caller runs what is left at the end
     */
    public void open(int stubPid, Supplier<CallTable> calls, Runnable run) {
        StubCalls stub = new StubCalls(calls, highBase, namelessBase(), action -> {
            run.run();
            try (StubDescriptors descriptors = new StubDescriptors(stubPid, highBase)) {
                action.accept(descriptors);
            }
        });
        parts.forEach(part -> part.open(stub));
    }

    /** Adds the calls, to be run in the stub before all else, that fill its table as {@link StubCalls} wants it. */
    public void prepare(Supplier<CallTable> calls) {
        // Of the standard descriptors those that are closed are filled, so that an open never gets their number.
        for (int fd = 0; fd < STANDARD; fd++) {
            if (!standard.contains(fd)) {
                CallTable table = calls.get();
                table.must(
                        "fill descriptor " + fd,
                        SystemCall.OPENAT,
                        Fcntl.AT_FDCWD,
                        table.string("/dev/null"),
                        Fcntl.O_RDWR,
                        0);
            }
        }
    }

    /** Adds the calls, to be run in a process that inherited the stub's table, that leave it with its own. */
    public void install(int pid, Supplier<CallTable> calls, List<DescriptorEntry> entries) {
        StubCalls own = calls(calls);
        Set<Integer> opened = new LinkedHashSet<>();
        for (DescriptorEntry entry : entries) {
            if (opened.add(entry.description())) {
                partOf.get(entry.description()).openInProcess(highBase + entry.description(), own);
            }
        }
        for (int index : opened) {
            partOf.get(index).beforeInstall(highBase + index, index, own);
        }
        Set<Integer> wanted = new HashSet<>();
        for (DescriptorEntry entry : entries) {
            wanted.add(entry.fd());
            calls.get()
                    .must(
                            "install descriptor " + entry.fd(),
                            SystemCall.DUP3,
                            highBase + entry.description(),
                            entry.fd(),
                            entry.closeOnExec() ? Fcntl.O_CLOEXEC : 0);
        }
        for (DescriptorEntry entry : entries) {
            int index = entry.description();
            partOf.get(index).install(highBase + index, index, entry.fd(), pid, calls);
        }
        for (int fd = 0; fd < STANDARD; fd++) {
            if (!wanted.contains(fd)) {
                calls.get().must("close descriptor " + fd, SystemCall.CLOSE, fd);
            }
        }
        calls.get().must("close the stub's descriptors", SystemCall.CLOSE_RANGE, highBase, 0xffffffffL, 0);
        for (FileLock lock : image.locks()) {
            if (lock.pid() == pid) {
                entries.stream()
                        .filter(entry -> entry.description() == lock.description())
                        .findFirst()
                        .ifPresent(entry -> FileLocks.restore(
                                lock, entry.fd(), image.descriptions().get(lock.description()), calls));
            }
        }
    }

    /**
     * Puts bytes in flight back and arms what ticks, when all processes are built.
     *
     * @param hostIds the id that this host has for a process or thread of the image
     */
    public List<Outcome.Connection> complete(int stubPid, IntUnaryOperator hostIds) {
        List<Outcome.Connection> connections = new ArrayList<>();
        try (StubDescriptors stub = new StubDescriptors(stubPid, highBase)) {
            parts.forEach(part -> connections.addAll(part.complete(stub)));
            SignalOwners.restore(image.owners(), stub, hostIds);
        }
        return connections;
    }
}
