package io.stasis.engine.resource.ipc;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.image.model.ComputationImage;
import io.stasis.image.model.ComputationImage.Segment;
import io.stasis.linux.KernelException;
import io.stasis.linux.ipc.SharedSegment;
import io.stasis.linux.libc.Capability;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.SystemInfo;
import io.stasis.linux.ptrace.CallTable;
import java.io.IOException;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;

/**
 * System V shared memory that processes of the tree have attached, see shmop(2): made again under its id and key, also
 * when it was removed (IPC_RMID) and lives on in its mappings only. The stub attaches it, and every mapping is a
 * descendant of the stub's.
 *
 * <p>A segment outlives its processes unless it was removed. One that still exists at a restart, with the same key, size
 * and owner and attached by nobody, is taken for the one of the image and gets the image's content.
 */
public final class SharedSegments implements AutoCloseable {
    private static final int PERMISSIONS = 0777;
    private static final int MADV_REMOVE = 9;
    private static final int ATTEMPTS = 5;
    private static final long PATIENCE_NANOS = 2_000_000_000L;

    private final Map<Integer, Segment> byObject = new HashMap<>();
    /** Ids of the segments that this restart made, and of those it found. */
    private final Set<Integer> made = new LinkedHashSet<>();

    private final Set<Integer> found = new LinkedHashSet<>();
    private boolean kept;

    /** @param segments those of the image */
    public SharedSegments(List<Segment> segments) {
        segments.forEach(segment -> byObject.put(segment.object(), segment));
    }

    /**
     * What the image keeps of a segment, apart from its content.
     *
     * @param object index of the shared object that stands for it
     * @param readOnly whether the object stands for mappings that were attached with SHM_RDONLY
     */
    public static Segment capture(int object, boolean readOnly, int id) {
        SharedSegment segment = SharedSegment.find(id)
                .orElseThrow(() -> new EngineException(
                        EngineException.Kind.UNSUPPORTED,
                        "System V shared memory segment " + id + " may not be read by this user; run as its owner or as"
                                + " root"));
        return new Segment(
                object, readOnly, id, segment.key(), segment.size(), segment.mode(), segment.user(), segment.group());
    }

    /** What stands in the way of making the segments of an image. */
    public static List<Problem> verify(ComputationImage image) {
        Set<Problem> problems = new LinkedHashSet<>();
        for (Segment segment : image.segments()) {
            reason(segment)
                    .ifPresent(reason -> problems.add(new Problem(
                            image.root(),
                            -1,
                            "System V shared memory segment " + segment.id(),
                            reason,
                            "remove what is in the way with ipcrm(1)")));
        }
        return List.copyOf(problems);
    }

    private static Optional<String> reason(Segment segment) {
        Optional<SharedSegment> there = SharedSegment.find(segment.id());
        if (there.isPresent()) {
            return clash(segment, there.get());
        }
        if (!isRemoved(segment) && segment.key() != 0) {
            Optional<Integer> holder = SharedSegment.idOf(segment.key());
            if (holder.isPresent()) {
                return Optional.of("its key 0x" + Integer.toHexString(segment.key()) + " belongs to another segment");
            }
        }
        return SystemInfo.hasCapability(Capability.CAP_SYS_ADMIN)
                        || SystemInfo.hasCapability(Capability.CAP_CHECKPOINT_RESTORE)
                ? Optional.empty()
                : Optional.of("this user may not choose the id of a new one (CAP_CHECKPOINT_RESTORE)");
    }

    /** Why one that exists cannot be that of the image. */
    private static Optional<String> clash(Segment segment, SharedSegment there) {
        boolean same = !isRemoved(segment)
                && there.key() == segment.key()
                && there.size() == segment.size()
                && there.user() == segment.user()
                && (there.mode() & SharedSegment.SHM_DEST) == 0;
        if (isAttached(segment.id())) {
            return Optional.of("a segment with this id is in use by other processes");
        }
        // A removed one may have gone with the last process that had it.
        return same || SharedSegment.find(segment.id()).isEmpty()
                ? Optional.empty()
                : Optional.of("another segment has this id");
    }

    /** Whether anybody keeps it attached; a process that was killed a moment ago does not count. */
    private static boolean isAttached(int id) {
        long deadline = System.nanoTime() + PATIENCE_NANOS;
        while (SharedSegment.find(id).filter(s -> s.attached() > 0).isPresent()) {
            if (System.nanoTime() > deadline) {
                return true;
            }
            LockSupport.parkNanos(5_000_000);
        }
        return false;
    }

    private static boolean isRemoved(Segment segment) {
        return (segment.mode() & SharedSegment.SHM_DEST) != 0;
    }

    /**
     * Attaches the segment that a shared object stands for in the stub, writable and empty.
     *
     * @param stub makes calls in the stub
     * @return false when the object is none of System V
     */
    public boolean attach(int object, long address, Function<CallTable, CallTable.Results> stub) {
        Segment segment = byObject.get(object);
        if (segment == null) {
            return false;
        }
        if (!made.contains(segment.id()) && !found.contains(segment.id())) {
            makeOrFind(segment, stub);
        }
        CallTable calls = new CallTable();
        calls.must("attach shared segment " + segment.id(), SystemCall.SHMAT, segment.id(), address, 0);
        if (found.contains(segment.id())) {
            calls.must(
                    "empty shared segment " + segment.id(),
                    SystemCall.MADVISE,
                    address,
                    segment.size() + 4095 & -4096,
                    MADV_REMOVE);
        }
        stub.apply(calls);
        return true;
    }

    private void makeOrFind(Segment segment, Function<CallTable, CallTable.Results> stub) {
        if (SharedSegment.find(segment.id()).isPresent()) {
            if (clash(segment, SharedSegment.find(segment.id()).get()).isPresent()) {
                throw taken(segment);
            }
            found.add(segment.id());
            return;
        }
        int key = isRemoved(segment) ? 0 : segment.key();
        int flags = segment.mode() & PERMISSIONS | 0600 | SharedSegment.IPC_CREAT | SharedSegment.IPC_EXCL;
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            choose(segment, segment.id());
            CallTable calls = new CallTable();
            int index =
                    calls.must("make shared segment " + segment.id(), SystemCall.SHMGET, key, segment.size(), flags);
            int id;
            try {
                id = (int) stub.apply(calls).result(index);
            } catch (KernelException e) {
                choose(segment, SharedSegment.ANY_ID); // or somebody else's next segment gets it
                throw e;
            }
            if (id == segment.id()) {
                made.add(id);
                return;
            }
            // Somebody else's new segment got the id that was meant for ours.
            SharedSegment.remove(id);
        }
        throw taken(segment);
    }

    private static void choose(Segment segment, int id) {
        try {
            SharedSegment.chooseNextId(id);
        } catch (IOException e) {
            throw new EngineException(
                    EngineException.Kind.ACCESS,
                    "cannot choose the id of System V shared memory segment " + segment.id() + ": " + e.getMessage()
                            + "; restart as root, or give the agent CAP_CHECKPOINT_RESTORE",
                    e);
        }
    }

    private static EngineException taken(Segment segment) {
        return new EngineException(
                EngineException.Kind.FAILED,
                "the id of System V shared memory segment " + segment.id()
                        + " is taken by another one; remove that with ipcrm(1)");
    }

    /** Makes the stub's mapping such as those of the program were, when it has its content. */
    public void filled(int object, long address, Function<CallTable, CallTable.Results> stub) {
        Segment segment = byObject.get(object);
        if (segment != null && segment.readOnly()) {
            CallTable calls = new CallTable();
            calls.must("detach shared segment " + segment.id(), SystemCall.SHMDT, address);
            calls.must(
                    "attach shared segment " + segment.id(),
                    SystemCall.SHMAT,
                    segment.id(),
                    address,
                    SharedSegment.SHM_RDONLY);
            stub.apply(calls);
        }
    }

    /** Sets owners and permissions and removes what was removed, when the stub has attached all. */
    public void finish() {
        Set<Integer> done = new LinkedHashSet<>();
        for (Segment segment : byObject.values()) {
            if (done.add(segment.id())) {
                SharedSegment.set(segment.id(), segment.user(), segment.group(), segment.mode());
                if (isRemoved(segment)) {
                    SharedSegment.remove(segment.id());
                    made.remove(segment.id());
                }
            }
        }
    }

    /** The restart succeeded: the segments are the program's. */
    public void keep() {
        kept = true;
    }

    /** Removes what a restart that failed has made. */
    @Override
    public void close() {
        if (!kept) {
            made.forEach(SharedSegment::remove);
        }
        made.clear();
    }
}
