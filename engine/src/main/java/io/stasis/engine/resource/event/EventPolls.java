package io.stasis.engine.resource.event;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.image.model.OpenDescription.EventPoll;
import io.stasis.image.model.OpenDescription.Interest;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.ptrace.CallTable;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;

/**
 * epoll(7) instances. The kernel knows an interest by descriptor number and open file: it is added again in a process
 * that holds both, when all descriptors are in place. /proc/PID/fdinfo tells number, events and data.
 */
public final class EventPolls implements DescriptorKind<EventPoll> {
    private static final String LINK = "anon_inode:[eventpoll]";
    private static final int EPOLL_CTL_ADD = 1;

    /** Instances that have their interests again. */
    private final Set<Integer> added = new HashSet<>();

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
        for (Interest interest : interests(descriptor)) {
            if (Descriptor.read(descriptor.pid(), interest.fd()).isEmpty()) {
                return Optional.of(DescriptorKind.problem(
                        descriptor,
                        "epoll descriptor",
                        "it waits for a file whose descriptor " + interest.fd() + " is closed in this process",
                        "close the epoll descriptor too, or remove the file from it"));
            }
        }
        return Optional.empty();
    }

    /** Lines such as "tfd:        5 events:       19 data:                5  pos:0 ino:...". */
    private static List<Interest> interests(Descriptor descriptor) {
        List<Interest> interests = new ArrayList<>();
        for (String line : descriptor.info().extra()) {
            if (line.startsWith("tfd:")) {
                String[] words = line.replace(":", ": ").trim().split("\\s+");
                interests.add(new Interest(
                        Integer.parseInt(words[1]),
                        Integer.parseUnsignedInt(words[3], 16),
                        Long.parseUnsignedLong(words[5], 16)));
            }
        }
        return interests;
    }

    @Override
    public EventPoll capture(Descriptor descriptor) {
        return new EventPoll(descriptor.statusFlags(), descriptor.pid(), interests(descriptor));
    }

    @Override
    public void open(EventPoll description, int target, StubCalls stub) {
        CallTable calls = stub.calls();
        int made = calls.must("make an epoll instance", SystemCall.EPOLL_CREATE1, Fcntl.O_CLOEXEC);
        int moved = calls.must("make an epoll instance", SystemCall.DUP3, 0, target, Fcntl.O_CLOEXEC);
        calls.forward(made, moved, 0);
        stub.closeTemporaries();
    }

    /** Adds the interests, in the process whose table they refer to. */
    @Override
    public void install(EventPoll description, int index, int epoll, int pid, Supplier<CallTable> calls) {
        if (description.owner() != pid || !added.add(index)) {
            return;
        }
        for (Interest interest : description.interests()) {
            CallTable table = calls.get();
            // struct epoll_event is packed: 4 bytes of events, 8 of data.
            long event = table.longs(
                    Integer.toUnsignedLong(interest.events()) | interest.data() << 32, interest.data() >>> 32);
            table.must(
                    "add descriptor " + interest.fd() + " to an epoll instance",
                    SystemCall.EPOLL_CTL,
                    epoll,
                    EPOLL_CTL_ADD,
                    interest.fd(),
                    event);
        }
    }
}
