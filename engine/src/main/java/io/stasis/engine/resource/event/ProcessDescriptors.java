package io.stasis.engine.resource.event;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.image.model.OpenDescription.ProcessDescriptor;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.ptrace.CallTable;
import java.util.Optional;
import java.util.Set;

/**
 * pidfd_open(2): descriptors of processes of the tree, zombies included. Each process opens its own again, when all
 * processes exist.
 */
public final class ProcessDescriptors implements DescriptorKind<ProcessDescriptor> {
    private static final String LINK = "anon_inode:[pidfd]";
    /** PIDFD_NONBLOCK and PIDFD_THREAD, which are both flags of pidfd_open and of the description. */
    private static final int FLAGS = Fcntl.O_NONBLOCK | Fcntl.O_EXCL;

    private final Set<Integer> treePids;

    /** @param treePids processes of the tree, which may grow; empty for a restore */
    public ProcessDescriptors(Set<Integer> treePids) {
        this.treePids = treePids;
    }

    @Override
    public Class<ProcessDescriptor> type() {
        return ProcessDescriptor.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        return descriptor.link().equals(LINK);
    }

    @Override
    public Optional<Problem> problem(Descriptor descriptor) {
        int process = process(descriptor);
        if (process <= 0) {
            return problem(
                    descriptor,
                    "pidfd of a process that is gone",
                    "that process has ended and was waited for, so that nothing can be opened in its place");
        }
        var status = ProcStatus.find(new Pid(process));
        if (status.isPresent() && status.get().tgid() != process) {
            return problem(
                    descriptor,
                    "pidfd of thread " + process,
                    "a single thread's is not supported, only that of a process");
        }
        if (!isOfTree(process)) {
            return problem(descriptor, "pidfd of process " + process, "that process is outside the tree");
        }
        // The agent's own descriptor: a copy of one that is in no process's table.
        return treePids.contains(descriptor.pid())
                ? Optional.empty()
                : problem(
                        descriptor, "pidfd of process " + process, "it can only be opened by a process that holds it");
    }

    private static Optional<Problem> problem(Descriptor descriptor, String what, String reason) {
        return Optional.of(DescriptorKind.problem(descriptor, what, reason, "close it before the checkpoint"));
    }

    /** The id in /proc/PID/fdinfo: -1 when the process is gone. */
    private static int process(Descriptor descriptor) {
        return descriptor.info().value("Pid").map(Integer::parseInt).orElse(-1);
    }

    /** Zombies and children that were born a moment ago are only known by their parents. */
    private boolean isOfTree(int process) {
        return treePids.contains(process)
                || ProcStat.find(new Pid(process))
                        .filter(stat -> treePids.contains(stat.ppid()))
                        .isPresent();
    }

    @Override
    public ProcessDescriptor capture(Descriptor descriptor) {
        return new ProcessDescriptor(descriptor.statusFlags(), process(descriptor));
    }

    @Override
    public boolean isPerProcess(ProcessDescriptor description) {
        return true;
    }

    @Override
    public void open(ProcessDescriptor description, int target, StubCalls own) {
        CallTable calls = own.calls();
        int opened = calls.must(
                "open a pidfd of process " + description.pid(),
                SystemCall.PIDFD_OPEN,
                description.pid(),
                description.statusFlags() & FLAGS);
        own.place(opened, target);
    }
}
