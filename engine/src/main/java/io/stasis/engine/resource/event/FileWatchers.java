package io.stasis.engine.resource.event;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.engine.Outcome;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.engine.resource.StubDescriptors;
import io.stasis.image.model.OpenDescription.FileWatch;
import io.stasis.image.model.OpenDescription.FileWatcher;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.notify.Inotify;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.ptrace.CallTable;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;

/**
 * inotify(7) instances: their watches, which keep their numbers. /proc/PID/fdinfo tells numbers, masks and inodes;
 * {@link WatchedPaths} finds the files.
 *
 * <p>Events can only be read by taking them, and nothing puts one back: as long as some wait to be read the program is
 * asked to read them, by {@link EngineException.Kind#BUSY}. Watches are added when everything else of a restart is done,
 * so that the program does not see the restart open its files.
 */
public final class FileWatchers implements DescriptorKind<FileWatcher> {
    private static final String LINK = "anon_inode:inotify";

    private final WatchedPaths paths = new WatchedPaths();

    @Override
    public Class<FileWatcher> type() {
        return FileWatcher.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        return descriptor.link().equals(LINK);
    }

    @Override
    public Optional<Problem> problem(Descriptor descriptor) {
        for (String line : lines(descriptor)) {
            WatchedPaths.File file = file(fields(line));
            if (paths.find(descriptor.pid(), file).isEmpty()) {
                return Optional.of(DescriptorKind.problem(
                        descriptor,
                        "inotify watch " + Integer.parseInt(fields(line).get("wd"), 16),
                        "no path was found for the file that it watches, inode " + file.inode() + " of device "
                                + FileStatus.major(file.device()) + ":" + FileStatus.minor(file.device()),
                        "remove the watch if that file was removed, or checkpoint as root, who can open it by its"
                                + " inode"));
            }
        }
        return Optional.empty();
    }

    /** Lines such as "inotify wd:3 ino:20e705 sdev:fe00000 mask:80000100 ... fhandle-type:1 f_handle:05e72000419a076f". */
    private static List<String> lines(Descriptor descriptor) {
        return descriptor.info().extra().stream()
                .filter(line -> line.startsWith("inotify wd:"))
                .toList();
    }

    private static Map<String, String> fields(String line) {
        Map<String, String> fields = new HashMap<>();
        for (String word : line.split("\\s+")) {
            int colon = word.indexOf(':');
            if (colon > 0) {
                fields.put(word.substring(0, colon), word.substring(colon + 1));
            }
        }
        return fields;
    }

    private static WatchedPaths.File file(Map<String, String> fields) {
        // The kernel's own dev_t: 12 bits of major number above 20 of minor number.
        int device = Integer.parseUnsignedInt(fields.get("sdev"), 16);
        return new WatchedPaths.File(
                FileStatus.device(device >>> 20, device & 0xfffff),
                Long.parseUnsignedLong(fields.get("ino"), 16),
                Integer.parseUnsignedInt(fields.getOrDefault("fhandle-type", "0"), 16),
                fields.getOrDefault("f_handle", ""));
    }

    @Override
    public FileWatcher capture(Descriptor descriptor) {
        try (StubDescriptors copies = new StubDescriptors(descriptor.pid());
                Fd copy = copies.copy(descriptor.fd())) {
            int unread = Inotify.unread(copy);
            if (unread > 0) {
                throw new EngineException(
                        EngineException.Kind.BUSY,
                        "process " + descriptor.pid() + " has not read " + unread
                                + " bytes of events from inotify descriptor " + descriptor.fd()
                                + ", and nobody else can without taking them away; try again when it has");
            }
        }
        List<FileWatch> watches = new ArrayList<>();
        for (String line : lines(descriptor)) {
            Map<String, String> fields = fields(line);
            String path = paths.find(descriptor.pid(), file(fields)).orElseThrow();
            watches.add(new FileWatch(
                    Integer.parseInt(fields.get("wd"), 16), path, Integer.parseUnsignedInt(fields.get("mask"), 16)));
        }
        watches.sort(Comparator.comparingInt(FileWatch::number));
        return new FileWatcher(descriptor.statusFlags(), List.copyOf(watches));
    }

    @Override
    public List<Problem> verify(FileWatcher description) {
        return description.watches().stream()
                .filter(watch -> !FileStatus.ofLink(watch.path()).exists())
                .map(watch -> new Problem(
                        0,
                        -1,
                        watch.path(),
                        "the program watches it with inotify and it does not exist",
                        "put it back"))
                .toList();
    }

    @Override
    public void open(FileWatcher description, int target, StubCalls stub) {
        CallTable calls = stub.calls();
        int made = calls.must(
                "make an inotify instance",
                SystemCall.INOTIFY_INIT1,
                (description.statusFlags() & Fcntl.O_NONBLOCK) | Fcntl.O_CLOEXEC);
        stub.place(made, target);
    }

    @Override
    public List<Outcome.Connection> complete(SortedMap<Integer, FileWatcher> byTarget, StubDescriptors stub) {
        byTarget.forEach((target, description) -> {
            try (Fd instance = stub.copy(target)) {
                description.watches().forEach(watch -> add(instance, watch));
            }
        });
        return List.of();
    }

    private static void add(Fd instance, FileWatch watch) {
        int number;
        try {
            Inotify.chooseNext(instance, watch.number());
            number = Inotify.add(instance, watch.path(), watch.mask() | Inotify.IN_DONT_FOLLOW);
        } catch (KernelException e) {
            throw failed(watch, e.getMessage());
        }
        if (number != watch.number()) {
            throw failed(watch, "the kernel gave the watch the number " + number);
        }
    }

    private static EngineException failed(FileWatch watch, String why) {
        return new EngineException(
                EngineException.Kind.FAILED,
                "cannot make inotify watch " + watch.number() + " of " + watch.path() + " again: " + why
                        + "; see that the user may read it, and fs.inotify.max_user_watches");
    }
}
