package io.stasis.engine.resource;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.Outcome;
import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.DescriptorEntry;
import io.stasis.image.model.OpenDescription;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.ptrace.CallTable;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;

/**
 * Opens the descriptions of an image in the stub, whose descendants inherit them, and deals them out to the processes.
 *
 * <p>In the stub, description {@code i} is descriptor {@code highBase + i}; behind them come writing ends of pipes that
 * are to be refilled. Every number used by the image is below {@code highBase}.
 */
public final class DescriptorRestore {
    private static final int STANDARD = 3;

    private final ComputationImage image;
    private final Outside outside;
    private final int highBase;
    private final OpenFiles files = new OpenFiles(Set.of());
    private final EventPolls polls = new EventPolls();
    private final EventCounters counters = new EventCounters();
    private final DeadSockets sockets = new DeadSockets();
    private final Pipes pipes;
    private final Terminals terminals;
    /** Epoll instances that have their interests again. */
    private final Set<Integer> added = new HashSet<>();

    private final Externals externals;

    public DescriptorRestore(ComputationImage image, Outside outside, int highBase) {
        this.image = image;
        this.outside = outside;
        this.highBase = highBase;
        this.pipes = new Pipes(image.pipes());
        this.terminals = new Terminals(outside);
        this.externals = new Externals(outside);
    }

    /** What stands in the way of opening everything again, all at once. */
    public List<Problem> verify() {
        Set<Problem> problems = new java.util.LinkedHashSet<>();
        for (OpenDescription description : image.descriptions()) {
            problems.addAll(
                    switch (description) {
                        case OpenDescription.OpenFile file -> files.verify(file);
                        case OpenDescription.PipeEnd end -> pipes.verify(end);
                        case OpenDescription.EventPoll poll -> polls.verify(poll);
                        case OpenDescription.EventCounter counter -> counters.verify(counter);
                        case OpenDescription.DeadSocket socket -> sockets.verify(socket);
                        case OpenDescription.Terminal terminal -> terminals.verify(terminal);
                        case OpenDescription.External external -> externals.verify(external);
                    });
        }
        return problems.stream()
                .map(p -> new Problem(
                        p.pid() == 0 ? image.root() : p.pid(), p.fd(), p.resource(), p.reason(), p.advice()))
                .toList();
    }

    private int refillBase() {
        return highBase + image.descriptions().size();
    }

    /** One above the highest descriptor that the stub will use. */
    public int end() {
        return refillBase() + pipes.withContents().size();
    }

    /** Adds the calls, to be run in the stub, that open everything. */
    public void open(Supplier<CallTable> calls) {
        StubCalls stub = new StubCalls(calls, highBase);
        // Of the standard descriptors those that are closed are filled, so that an open never gets their number.
        for (int fd = 0; fd < STANDARD; fd++) {
            if (!outside.standard().contains(fd)) {
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
        List<OpenDescription> descriptions = image.descriptions();
        for (int i = 0; i < descriptions.size(); i++) {
            int target = highBase + i;
            switch (descriptions.get(i)) {
                case OpenDescription.OpenFile file
                when ProcessFiles.isOfProcess(file) -> {} // when it exists, see install
                case OpenDescription.OpenFile file -> files.open(file, target, stub);
                case OpenDescription.PipeEnd end -> {} // all ends of a pipe at once, below
                case OpenDescription.EventPoll poll -> polls.open(poll, target, stub);
                case OpenDescription.EventCounter counter -> counters.open(counter, target, stub);
                case OpenDescription.DeadSocket socket -> sockets.open(socket, target, stub);
                case OpenDescription.Terminal terminal -> terminals.open(terminal, target, stub);
                case OpenDescription.External external -> externals.open(external, target, stub);
            }
        }
        pipes.openAll(descriptions, highBase, refillBase(), stub);
    }

    /** Adds the calls, to be run in a process that inherited the stub's table, that leave it with its own. */
    public void install(int pid, Supplier<CallTable> calls, List<DescriptorEntry> entries) {
        StubCalls own = new StubCalls(calls, highBase);
        for (DescriptorEntry entry : entries) {
            if (image.descriptions().get(entry.description()) instanceof OpenDescription.OpenFile file
                    && ProcessFiles.isOfProcess(file)) {
                files.open(file, highBase + entry.description(), own);
            }
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
            if (image.descriptions().get(entry.description()) instanceof OpenDescription.EventPoll poll
                    && poll.owner() == pid
                    && added.add(entry.description())) {
                EventPolls.addInterests(poll, entry.fd(), calls);
            }
        }
        List<Integer> unwanted = new ArrayList<>(List.of(0, 1, 2));
        unwanted.removeAll(wanted);
        for (int fd : unwanted) {
            calls.get().must("close descriptor " + fd, SystemCall.CLOSE, fd);
        }
        calls.get().must("close the stub's descriptors", SystemCall.CLOSE_RANGE, highBase, 0xffffffffL, 0);
    }

    /** Puts bytes in flight back into the pipes, through the descriptors of the stub. */
    public List<Outcome.Connection> refill(int stubPid) {
        return pipes.refill(stubPid, refillBase());
    }
}
