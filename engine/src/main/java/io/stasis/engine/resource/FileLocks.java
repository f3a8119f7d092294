package io.stasis.engine.resource;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.image.model.ComputationImage.FileLock;
import io.stasis.image.model.OpenDescription;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.ptrace.CallTable;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;

/**
 * Locks on files, as the "lock" lines of proc_pid_fdinfo(5) show them: of fcntl(2), whose owner is a process; of flock(2)
 * and open file description locks, whose owner is the description; and leases. Each is taken again in a process that
 * had it, before anything runs.
 */
final class FileLocks {
    private static final String POSIX = "POSIX";
    private static final String FLOCK = "FLOCK";
    private static final String OFD = "OFDLCK";
    private static final String LEASE = "LEASE";
    private static final String PREFIX = "lock:";

    // <asm-generic/fcntl.h>
    private static final int F_SETLK = 6;
    private static final int F_OFD_SETLK = 37;
    private static final int F_SETLEASE = 1024;
    private static final short F_RDLCK = 0;
    private static final short F_WRLCK = 1;
    private static final int LOCK_SH = 1;
    private static final int LOCK_EX = 2;
    private static final int LOCK_NB = 4;

    /** A lock without the process it was seen in: of a description, one is enough. */
    private record Shared(int description, String type) {}

    private final List<FileLock> locks = new ArrayList<>();
    private final Set<FileLock> posix = new HashSet<>();
    private final Set<Shared> seen = new HashSet<>();

    /** A lease that somebody waits for, or a lock that no program takes, cannot be captured. */
    static Optional<Problem> problem(Descriptor descriptor) {
        for (String line : lines(descriptor)) {
            String[] fields = line.split("\\s+");
            boolean breaking = fields[1].equals(LEASE) && !fields[2].equals("ACTIVE");
            if (breaking || !Set.of(POSIX, FLOCK, OFD, LEASE).contains(fields[1])) {
                return Optional.of(DescriptorKind.problem(
                        descriptor,
                        "lock " + line + " on " + descriptor.link(),
                        breaking ? "somebody waits for the end of the lease" : "it is of an unknown kind",
                        "try again later"));
            }
        }
        return Optional.empty();
    }

    /** The lines as "1: POSIX ADVISORY WRITE 123 08:01:456 0 EOF". */
    private static List<String> lines(Descriptor descriptor) {
        return descriptor.info().extra().stream()
                .filter(line -> line.startsWith(PREFIX))
                .map(line -> line.substring(PREFIX.length()).strip())
                .filter(line -> line.split("\\s+").length >= 8)
                .toList();
    }

    /** @param description index of the description that the descriptor leads to */
    void capture(Descriptor descriptor, int description) {
        List<String> lines = lines(descriptor);
        Set<String> firstSeen = new HashSet<>();
        for (String line : lines) {
            String[] fields = line.split("\\s+");
            long start = Long.parseLong(fields[6]);
            long length = fields[7].equals("EOF") ? 0 : Long.parseLong(fields[7]) - start + 1;
            var lock = new FileLock(description, descriptor.pid(), fields[1], fields[3].equals("WRITE"), start, length);
            boolean isNew = fields[1].equals(POSIX)
                    ? posix.add(lock)
                    : seen.add(new Shared(description, fields[1])) || firstSeen.contains(fields[1]);
            if (isNew) {
                firstSeen.add(fields[1]);
                locks.add(lock);
            }
        }
    }

    List<FileLock> locks() {
        return List.copyOf(locks);
    }

    /**
     * Adds the calls, to be run in the process, that take a lock again. To close any descriptor of the file afterwards
     * would end the process's own locks on it.
     */
    static void restore(FileLock lock, int fd, OpenDescription description, Supplier<CallTable> table) {
        CallTable calls = table.get();
        String what = "take again the " + lock.type() + " lock on "
                + (description instanceof OpenDescription.OpenFile file
                        ? file.file().path()
                        : "descriptor " + fd)
                + ", which nobody else may have taken meanwhile,";
        switch (lock.type()) {
            case POSIX -> calls.must(what, SystemCall.FCNTL, fd, F_SETLK, structure(lock, calls));
            case OFD -> calls.must(what, SystemCall.FCNTL, fd, F_OFD_SETLK, structure(lock, calls));
            case FLOCK -> calls.must(what, SystemCall.FLOCK, fd, (lock.write() ? LOCK_EX : LOCK_SH) | LOCK_NB);
            case LEASE -> calls.must(what, SystemCall.FCNTL, fd, F_SETLEASE, lock.write() ? F_WRLCK : F_RDLCK);
            default ->
                throw new EngineException(
                        EngineException.Kind.IMAGE, "the image has a lock of an unknown kind: " + lock.type());
        }
    }

    /** {@code struct flock}; SEEK_SET is 0. */
    private static long structure(FileLock lock, CallTable calls) {
        return calls.longs(lock.write() ? F_WRLCK : F_RDLCK, lock.start(), lock.length(), 0);
    }
}
