package io.stasis.engine.resource.ipc;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.engine.resource.StubDescriptors;
import io.stasis.image.model.OpenDescription.PosixMessageQueue;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.ipc.PosixQueue;
import io.stasis.linux.ipc.PosixQueue.Attributes;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.ptrace.CallTable;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Function;

/**
 * Descriptors of POSIX message queues, see mq_overview(7), with and without a name.
 *
 * <p>A message can only be read by taking it: as long as there are some the program is asked to take them, by {@link
 * EngineException.Kind#BUSY}. A queue that still exists at a restart with the same limits is taken for the one of the
 * image, and emptied.
 */
public final class PosixQueues implements DescriptorKind<PosixMessageQueue> {
    private static final String DELETED = " (deleted)";
    private static final int PERMISSIONS = 07777;

    @Override
    public Class<PosixMessageQueue> type() {
        return PosixMessageQueue.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        // Their file system has no directories, and the kernel shows their paths from its root.
        if (!descriptor.status().isRegular() || descriptor.link().lastIndexOf('/') != 0 || descriptor.isPathOnly()) {
            return false;
        }
        try {
            String path = "/proc/" + descriptor.pid() + "/fd/" + descriptor.fd();
            return FileStatus.fileSystemType(path) == PosixQueue.MQUEUE_MAGIC;
        } catch (KernelException e) {
            return false; // closed meanwhile
        }
    }

    @Override
    public Optional<Problem> problem(Descriptor descriptor) {
        int notified = notified(descriptor);
        return notified == 0
                ? Optional.empty()
                : Optional.of(DescriptorKind.problem(
                        descriptor,
                        "message queue " + descriptor.link(),
                        "process " + notified
                                + " is to be notified of its next message, and the kernel does not tell with what value",
                        "undo mq_notify before the checkpoint"));
    }

    private static int notified(Descriptor descriptor) {
        // Read through a descriptor of our own: the program's may be for sending only.
        try (StubDescriptors copies = new StubDescriptors(descriptor.pid());
                Fd copy = copies.reopen(descriptor.fd(), Fcntl.O_RDONLY)) {
            return PosixQueue.notified(copy);
        }
    }

    private static <T> T withCopy(Descriptor descriptor, Function<Fd, T> action) {
        try (StubDescriptors copies = new StubDescriptors(descriptor.pid());
                Fd copy = copies.copy(descriptor.fd())) {
            return action.apply(copy);
        }
    }

    @Override
    public PosixMessageQueue capture(Descriptor descriptor) {
        Attributes attributes = withCopy(descriptor, PosixQueue::attributes);
        String link = descriptor.link();
        if (attributes.messages() > 0) {
            throw new EngineException(
                    EngineException.Kind.BUSY,
                    "message queue " + link + ", descriptor " + descriptor.fd() + " of process " + descriptor.pid()
                            + ", holds " + attributes.messages()
                            + " messages, which nobody can read without taking them; try again when it is empty");
        }
        FileStatus status = descriptor.status();
        boolean removed = status.nlink() == 0;
        return new PosixMessageQueue(
                descriptor.statusFlags(),
                status.ino(),
                removed && link.endsWith(DELETED) ? link.substring(0, link.length() - DELETED.length()) : link,
                removed,
                status.mode() & PERMISSIONS,
                status.uid(),
                status.gid(),
                attributes.maxMessages(),
                attributes.messageSize());
    }

    @Override
    public List<Problem> verify(PosixMessageQueue description) {
        Optional<Fd> there = PosixQueue.open(description.name());
        if (there.isEmpty()) {
            return List.of();
        }
        try (Fd queue = there.get()) {
            Attributes attributes = PosixQueue.attributes(queue);
            boolean same = !description.removed()
                    && attributes.maxMessages() == description.maxMessages()
                    && attributes.messageSize() == description.messageSize();
            return same
                    ? List.of()
                    : List.of(new Problem(
                            0,
                            -1,
                            "message queue " + description.name(),
                            "there is another one of this name",
                            "remove that with mq_unlink(3)"));
        }
    }

    @Override
    public void open(PosixMessageQueue description, int target, StubCalls stub) {
        openQueue(new TreeMap<>(Map.of(target, description)), stub);
    }

    @Override
    public void openAll(SortedMap<Integer, PosixMessageQueue> byTarget, StubCalls stub) {
        Map<Long, SortedMap<Integer, PosixMessageQueue>> queues = new LinkedHashMap<>();
        byTarget.forEach((target, description) ->
                queues.computeIfAbsent(description.id(), id -> new TreeMap<>()).put(target, description));
        queues.values().forEach(descriptions -> openQueue(descriptions, stub));
    }

    /** All descriptions of one queue. */
    private static void openQueue(SortedMap<Integer, PosixMessageQueue> byTarget, StubCalls stub) {
        PosixMessageQueue any = byTarget.get(byTarget.firstKey());
        Optional<Fd> there = PosixQueue.open(any.name());
        if (there.isPresent()) {
            try (Fd queue = there.get()) {
                PosixQueue.empty(queue);
            }
        } else {
            make(any, byTarget.firstKey(), stub);
        }
        byTarget.forEach((target, description) -> {
            CallTable calls = stub.calls();
            // Without O_CLOEXEC, which the kernel sets of itself and would show among the status flags if it was asked
            // to.
            int access = description.statusFlags() & (Fcntl.O_ACCMODE | Fcntl.O_NONBLOCK);
            int opened = calls.must(
                    "open message queue " + any.name(),
                    SystemCall.MQ_OPEN,
                    calls.string(any.name().substring(1)),
                    access,
                    0,
                    0);
            stub.place(opened, target);
        });
        if (any.removed()) {
            CallTable calls = stub.calls();
            calls.must(
                    "remove message queue " + any.name(),
                    SystemCall.MQ_UNLINK,
                    calls.string(any.name().substring(1)));
        }
    }

    /** Makes it with its owner and permissions, through a descriptor that the first description will replace. */
    private static void make(PosixMessageQueue queue, int target, StubCalls stub) {
        CallTable calls = stub.calls();
        int made = calls.must(
                "make message queue " + queue.name(),
                SystemCall.MQ_OPEN,
                calls.string(queue.name().substring(1)),
                Fcntl.O_RDWR | Fcntl.O_CREAT | Fcntl.O_EXCL | Fcntl.O_CLOEXEC,
                0600,
                calls.longs(0, queue.maxMessages(), queue.messageSize(), 0, 0, 0, 0, 0));
        stub.place(made, target);
        calls = stub.calls();
        String what = "set owner and permissions of message queue " + queue.name();
        calls.must(what, SystemCall.FCHOWN, target, queue.user(), queue.group());
        calls.must(what, SystemCall.FCHMOD, target, queue.mode());
    }
}
