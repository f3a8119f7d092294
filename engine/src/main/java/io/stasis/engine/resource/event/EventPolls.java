package io.stasis.engine.resource.event;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.image.model.OpenDescription.EventPoll;
import io.stasis.image.model.OpenDescription.Interest;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Kcmp;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FdTable;
import io.stasis.linux.proc.NoSuchProcessException;
import io.stasis.linux.ptrace.CallTable;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.function.ToIntFunction;

/**
 * epoll(7) instances. The kernel knows an interest by descriptor number and open file: it is added again in a process
 * that holds both, when all descriptors are in place. /proc/PID/fdinfo tells number, events and data. An interest lives as
 * long as the open file, also when its descriptor is closed or leads elsewhere: kcmp(2) then tells which other leads there.
 */
public final class EventPolls implements DescriptorKind<EventPoll> {
    private static final String LINK = "anon_inode:[eventpoll]";
    private static final int EPOLL_CTL_ADD = 1;

    private final Set<Integer> treePids;
    /** Instances that have their interests again: those whose descriptors are open, and the others. */
    private final Set<Integer> added = new HashSet<>();

    private final Set<Integer> addedClosed = new HashSet<>();

    public EventPolls(Set<Integer> treePids) {
        this.treePids = treePids;
    }

    @Override
    public Class<EventPoll> type() {
        return EventPoll.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        return descriptor.link().equals(LINK);
    }

    @Override
    public Optional<Problem> problem(Descriptor descriptor) {
        for (Target target : targets(descriptor)) {
            if (!target.isOwn() && holder(descriptor, target).isEmpty()) {
                return Optional.of(DescriptorKind.problem(
                        descriptor,
                        "epoll descriptor",
                        "it waits for a file whose descriptor " + target.fd
                                + " is closed in this process, and no other descriptor of the tree leads to it",
                        "close the epoll descriptor too, or remove the file from it"));
            }
        }
        return Optional.empty();
    }

    /**
     * One line of an instance's fdinfo.
     *
     * @param instance the epoll descriptor
     * @param fd the descriptor that it was added with
     * @param nth how many lines before have the same one: after a close(2) it can stand for another file
     * @param inode of the file, 0 where this kernel (before 5.10) does not tell
     */
    private record Target(Descriptor instance, int fd, int nth, int events, long data, long inode) {
        /** Whether the descriptor still leads to the file. */
        boolean isOwn() {
            return isHeldBy(instance.pid(), fd);
        }

        boolean isHeldBy(int pid, int descriptor) {
            // struct kcmp_epoll_slot: the instance, the descriptor it was added with, which of several
            ByteBuffer slot = Libc.buffer(12);
            slot.putInt(0, instance.fd()).putInt(4, fd).putInt(8, nth);
            try {
                return Kcmp.compare(pid, instance.pid(), Kcmp.KCMP_EPOLL_TFD, descriptor, Libc.address(slot))
                        == Kcmp.SAME;
            } catch (KernelException e) {
                return false; // closed
            } finally {
                Reference.reachabilityFence(slot);
            }
        }
    }

    /** Lines such as "tfd:        5 events:       19 data:                5  pos:0 ino:61 sdev:9". */
    private static List<Target> targets(Descriptor descriptor) {
        List<Target> targets = new ArrayList<>();
        for (String line : descriptor.info().extra()) {
            if (line.startsWith("tfd:")) {
                String[] words = line.replace(":", ": ").trim().split("\\s+");
                int fd = Integer.parseInt(words[1]);
                int nth = (int) targets.stream().filter(t -> t.fd == fd).count();
                targets.add(new Target(
                        descriptor,
                        fd,
                        nth,
                        Integer.parseUnsignedInt(words[3], 16),
                        Long.parseUnsignedLong(words[5], 16),
                        words.length > 9 ? Long.parseUnsignedLong(words[9], 16) : 0));
            }
        }
        return targets;
    }

    /** A descriptor of the tree that leads to a file whose own descriptor is closed. */
    private Optional<Descriptor> holder(Descriptor instance, Target target) {
        for (int pid : treePids) {
            for (int fd : numbers(pid)) {
                Optional<Descriptor> candidate = Descriptor.read(pid, fd)
                        .filter(d -> target.inode == 0 || d.status().ino() == target.inode);
                if (candidate.isPresent() && target.isHeldBy(pid, fd)) {
                    return candidate;
                }
            }
        }
        return Optional.empty();
    }

    private static int[] numbers(int pid) {
        try {
            return FdTable.list(new Pid(pid));
        } catch (NoSuchProcessException e) {
            return new int[0];
        }
    }

    @Override
    public EventPoll capture(Descriptor descriptor) {
        throw new IllegalStateException("an epoll instance is captured together with what it waits for");
    }

    @Override
    public EventPoll capture(Descriptor descriptor, ToIntFunction<Descriptor> others) {
        List<Interest> interests = new ArrayList<>();
        for (Target target : targets(descriptor)) {
            int description = target.isOwn()
                    ? -1
                    : others.applyAsInt(holder(descriptor, target)
                            .orElseThrow(() -> new EngineException(
                                    EngineException.Kind.FAILED,
                                    "what the epoll descriptor " + descriptor.fd() + " of process " + descriptor.pid()
                                            + " waits for through descriptor " + target.fd + " is not to be found")));
            interests.add(new Interest(target.fd, description, target.events, target.data));
        }
        return new EventPoll(descriptor.statusFlags(), descriptor.pid(), interests);
    }

    @Override
    public void open(EventPoll description, int target, StubCalls stub) {
        CallTable calls = stub.calls();
        int made = calls.must("make an epoll instance", SystemCall.EPOLL_CREATE1, Fcntl.O_CLOEXEC);
        int moved = calls.must("make an epoll instance", SystemCall.DUP3, 0, target, Fcntl.O_CLOEXEC);
        calls.forward(made, moved, 0);
        stub.closeTemporaries();
    }

    /** Adds the interests whose descriptors are closed, under the numbers that those had. */
    @Override
    public void beforeInstall(EventPoll description, int index, StubCalls own) {
        if (!addedClosed.add(index)) {
            return;
        }
        for (Interest interest : description.interests()) {
            if (interest.description() >= 0) {
                boolean free = interest.fd() >= StubCalls.FIRST && interest.fd() < own.base();
                int fd = free ? interest.fd() : StubCalls.FIRST;
                own.calls()
                        .must(
                                "lend descriptor " + fd,
                                SystemCall.DUP3,
                                own.descriptor(interest.description()),
                                fd,
                                Fcntl.O_CLOEXEC);
                add(own.calls(), own.descriptor(index), fd, interest);
                own.calls().must("close descriptor " + fd, SystemCall.CLOSE, fd);
            }
        }
    }

    private static void add(CallTable table, int epoll, int fd, Interest interest) {
        // struct epoll_event is packed: 4 bytes of events, 8 of data.
        long event =
                table.longs(Integer.toUnsignedLong(interest.events()) | interest.data() << 32, interest.data() >>> 32);
        table.must(
                "add descriptor " + fd + " to an epoll instance",
                SystemCall.EPOLL_CTL,
                epoll,
                EPOLL_CTL_ADD,
                fd,
                event);
    }

    /** Adds the other interests, in the process whose table they refer to. */
    @Override
    public void install(EventPoll description, int index, int epoll, int pid, Supplier<CallTable> calls) {
        if (description.owner() != pid || !added.add(index)) {
            return;
        }
        for (Interest interest : description.interests()) {
            if (interest.description() < 0) {
                add(calls.get(), epoll, interest.fd(), interest);
            }
        }
    }
}
