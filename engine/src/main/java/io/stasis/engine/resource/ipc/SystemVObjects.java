package io.stasis.engine.resource.ipc;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.SystemVObject;
import io.stasis.image.model.SystemVObject.MessageQueue;
import io.stasis.image.model.SystemVObject.SemaphoreSet;
import io.stasis.linux.Pid;
import io.stasis.linux.ipc.IpcTable;
import io.stasis.linux.ipc.Messages;
import io.stasis.linux.ipc.Semaphores;
import io.stasis.linux.libc.Capability;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.SystemInfo;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * System V semaphore sets and message queues, see sysvipc(7), which keep id, key, owner, permissions and content.
 *
 * <p>No process has one open: it belongs to the tree when a process of the tree was the last to change one of the
 * semaphores, to send or to receive, and no live process outside the tree was. Others are left alone. As with {@link
 * SharedSegments}, one outlives its processes: one that still exists at a restart, with the same key and owner and used
 * by nobody else, is taken for the one of the image and gets the image's content.
 */
public final class SystemVObjects implements AutoCloseable {
    private static final int ATTEMPTS = 5;

    private record Made(IpcTable table, int id) {}

    private final List<SystemVObject> objects;
    private final Set<Made> made = new LinkedHashSet<>();
    private boolean kept;

    /** @param objects those of the image */
    public SystemVObjects(List<SystemVObject> objects) {
        this.objects = objects;
    }

    /**
     * Those of a frozen tree. Changes nothing about them.
     *
     * @param tree pids of its processes, zombies included
     */
    public static List<SystemVObject> capture(Set<Integer> tree) {
        List<SystemVObject> objects = new ArrayList<>();
        for (int id : IpcTable.SEMAPHORE_SETS.ids()) {
            Semaphores.find(id)
                    .filter(set -> belongs(tree, set.pids()))
                    .map(set -> new SemaphoreSet(
                            id, set.key(), set.user(), set.group(), set.mode(), set.used(), set.values(), set.pids()))
                    .ifPresent(objects::add);
        }
        for (int id : IpcTable.MESSAGE_QUEUES.ids()) {
            Messages.find(id)
                    .filter(queue -> belongs(tree, queue.sender(), queue.receiver()))
                    .map(SystemVObjects::capture)
                    .ifPresent(objects::add);
        }
        return List.copyOf(objects);
    }

    private static MessageQueue capture(Messages queue) {
        return new MessageQueue(
                queue.id(),
                queue.key(),
                queue.user(),
                queue.group(),
                queue.mode(),
                queue.capacity(),
                IntStream.range(0, (int) queue.count()).mapToObj(queue::peek).toList(),
                queue.sender(),
                queue.receiver());
    }

    private static boolean belongs(Set<Integer> tree, int... users) {
        return IntStream.of(users).anyMatch(tree::contains)
                && outsider(tree, users).isEmpty();
    }

    /** A live process that is none of the tree's. */
    private static Optional<Integer> outsider(Set<Integer> tree, int... users) {
        return IntStream.of(users)
                .filter(pid -> pid > 0 && !tree.contains(pid))
                .filter(pid -> ProcStat.find(new Pid(pid)).isPresent())
                .boxed()
                .findFirst();
    }

    /** What stands in the way of making those of an image. */
    public static List<Problem> verify(ComputationImage image) {
        List<Problem> problems = new ArrayList<>();
        Set<Integer> tree = new LinkedHashSet<>(image.processes());
        image.zombies().forEach(zombie -> tree.add(zombie.identity().pid()));
        for (SystemVObject object : image.systemV()) {
            reason(object, tree)
                    .ifPresent(reason -> problems.add(new Problem(
                            image.root(), -1, name(object), reason, "remove what is in the way with ipcrm(1)")));
        }
        return problems;
    }

    private static String name(SystemVObject object) {
        return "System V " + table(object).noun() + " " + object.id();
    }

    private static IpcTable table(SystemVObject object) {
        return switch (object) {
            case SemaphoreSet set -> IpcTable.SEMAPHORE_SETS;
            case MessageQueue queue -> IpcTable.MESSAGE_QUEUES;
        };
    }

    private static Optional<String> reason(SystemVObject object, Set<Integer> tree) {
        IpcTable table = table(object);
        if (table.ids().contains(object.id())) {
            return clash(object, tree);
        }
        if (object.key() != 0 && table.idOf(object.key()).isPresent()) {
            return Optional.of("its key 0x" + Integer.toHexString(object.key()) + " belongs to another one");
        }
        return SystemInfo.hasCapability(Capability.CAP_SYS_ADMIN)
                        || SystemInfo.hasCapability(Capability.CAP_CHECKPOINT_RESTORE)
                ? Optional.empty()
                : Optional.of("this user may not choose the id of a new one (CAP_CHECKPOINT_RESTORE)");
    }

    /** Why the one that has the id cannot be that of the image. */
    private static Optional<String> clash(SystemVObject object, Set<Integer> tree) {
        Optional<String> other = Optional.of("another one has this id");
        return switch (object) {
            case SemaphoreSet set -> {
                var there = Semaphores.find(set.id());
                if (there.isEmpty()
                        || there.get().key() != set.key()
                        || there.get().user() != set.user()
                        || there.get().values().length != set.values().length) {
                    yield other;
                }
                yield there.get().waiters() > 0
                        ? Optional.of("processes wait for a semaphore of the set with this id")
                        : inUse(tree, there.get().pids());
            }
            case MessageQueue queue -> {
                var there = Messages.find(queue.id());
                yield there.isEmpty()
                                || there.get().key() != queue.key()
                                || there.get().user() != queue.user()
                        ? other
                        : inUse(tree, there.get().sender(), there.get().receiver());
            }
        };
    }

    private static Optional<String> inUse(Set<Integer> tree, int... users) {
        return outsider(tree, users).map(pid -> "process " + pid + " uses the one that has this id");
    }

    /**
     * Makes all of them, or finds them, and gives them their content. The processes of the image exist and none runs.
     *
     * @param processes makes calls in the processes of the tree
     */
    public void restore(IpcProcesses processes) {
        for (SystemVObject object : objects) {
            boolean found = !makeUnlessThere(object);
            switch (object) {
                case SemaphoreSet set -> SystemVContent.restore(set, found, processes);
                case MessageQueue queue -> SystemVContent.restore(queue, processes);
            }
        }
    }

    private boolean makeUnlessThere(SystemVObject object) {
        IpcTable table = table(object);
        if (table.ids().contains(object.id())) {
            return false; // looked at before the processes of the image existed
        }
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            choose(object, object.id());
            int id;
            try {
                id = switch (object) {
                    case SemaphoreSet set -> Semaphores.make(set.key(), set.values().length);
                    case MessageQueue queue -> Messages.make(queue.key());
                };
            } catch (io.stasis.linux.KernelException e) {
                choose(object, IpcTable.ANY_ID); // or somebody else's next one gets it
                throw e;
            }
            if (id == object.id()) {
                made.add(new Made(table, id));
                return true;
            }
            // Somebody else's new one got the id that was meant for ours.
            table.remove(id);
        }
        throw new EngineException(
                EngineException.Kind.FAILED,
                "the id of " + name(object) + " is taken by another one; remove that with ipcrm(1)");
    }

    private static void choose(SystemVObject object, int id) {
        try {
            table(object).chooseNextId(id);
        } catch (IOException e) {
            throw new EngineException(
                    EngineException.Kind.ACCESS,
                    "cannot choose the id of " + name(object) + ": " + e.getMessage()
                            + "; restart as root, or give the agent CAP_CHECKPOINT_RESTORE",
                    e);
        }
    }

    /** The restart succeeded: they are the program's. */
    public void keep() {
        kept = true;
    }

    /** Removes what a restart that failed has made. */
    @Override
    public void close() {
        if (!kept) {
            made.forEach(one -> one.table.remove(one.id));
        }
        made.clear();
    }
}
