package io.stasis.engine.capture;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.engine.UnsupportedResourceException;
import io.stasis.engine.resource.file.InodeContent;
import io.stasis.engine.resource.file.NamelessFiles;
import io.stasis.engine.resource.ipc.SharedSegments;
import io.stasis.image.model.ComputationImage.SavedFile;
import io.stasis.image.model.ComputationImage.Segment;
import io.stasis.image.model.FileReference;
import io.stasis.image.model.MemoryImage.Backing;
import io.stasis.image.model.MemoryImage.Mapping;
import io.stasis.linux.Pid;
import io.stasis.linux.ipc.SharedSegment;
import io.stasis.linux.memory.PageScan;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.MappingInfo;
import io.stasis.linux.proc.Mappings;
import io.stasis.linux.ptrace.RemoteProcess.VdsoMapping;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * Mappings of the processes of one tree: what lies behind each, and which of them share memory.
 *
 * <p>Shared anonymous memory is one object for all mappings of the same inode (of the kernel's own tmpfs), in one
 * process or several. Mappings that cannot be captured are told by {@link #problems}.
 */
final class AddressSpaceReader {
    private static final int PROT_READ = 1;
    private static final int PROT_WRITE = 2;
    private static final int PROT_EXEC = 4;
    private static final long[] NO_GUARDS = {};
    private static final long SAVED_FILE_BYTES = 1 << 20;
    private static final Set<String> KERNEL = Set.of("[vdso]", "[vvar]", "[vvar_vclock]");
    private static final String SHARED_ANONYMOUS = "/dev/zero";
    /** What the kernel maps as files of its own, with content that cannot be read or written as a file's. */
    private static final Set<String> SPECIAL =
            Set.of("/[aio]", "/anon_hugepage", "/secretmem", "/drm mm object", "/i915");

    /** One object of shared memory and how much of it is mapped somewhere. */
    static final class SharedObjectInfo {
        final int index;
        final InodeContent content = new InodeContent();
        /** The id of the System V segment that it is; null for anonymous memory. */
        final Integer segment;

        final boolean readOnly;
        /** In bytes, as far as it is mapped. */
        long size;

        SharedObjectInfo(int index, Integer segment, boolean readOnly) {
            this.index = index;
            this.segment = segment;
            this.readOnly = readOnly;
        }
    }

    private record Inode(int major, int minor, long inode, boolean readOnly) {}

    private final NamelessFiles namelessFiles;
    private final Map<Inode, SharedObjectInfo> shared = new HashMap<>();
    private final List<SharedObjectInfo> objects = new ArrayList<>();
    private final Map<String, FileReference> files = new HashMap<>();
    private final Map<String, SavedFile> saved = new LinkedHashMap<>();

    /** @param namelessFiles those of the tree, which those of mappings are added to */
    AddressSpaceReader(NamelessFiles namelessFiles) {
        this.namelessFiles = namelessFiles;
    }

    /** Everything in the address space that a checkpoint refuses. Freezes nothing. */
    List<Problem> problems(Pid pid) {
        List<Problem> problems = new ArrayList<>();
        for (MappingInfo mapping : Mappings.readMaps(pid)) {
            String path = mapping.path();
            String name = "mapping " + Long.toHexString(mapping.start()) + " of " + path;
            if (SPECIAL.contains(path) || path.startsWith("anon_inode:") || path.startsWith("socket:")) {
                problems.add(problem(pid, name, "the kernel's own memory object is not supported", "close it first"));
            } else if (path.startsWith("/dev/") && !path.equals(SHARED_ANONYMOUS) && !path.startsWith("/dev/shm/")) {
                problems.add(problem(pid, name, "device memory is not supported", "close the device first"));
            } else if (mapping.deleted() && !path.equals(SHARED_ANONYMOUS) && !isSegment(mapping)) {
                NamelessFiles.problem(pid, mapping)
                        .ifPresent(reason -> problems.add(problem(pid, name, reason, "keep the file, or run as root")));
            }
        }
        return problems;
    }

    private static Problem problem(Pid pid, String resource, String reason, String advice) {
        return new Problem(pid.value(), -1, resource, reason, advice);
    }

    /** The mappings as the image keeps them; registers shared objects. To be asked before anything is injected. */
    List<Mapping> read(Pid pid) {
        List<Mapping> mappings = new ArrayList<>();
        try (PageScan scan = PageScan.open(pid)) {
            for (MappingInfo info : Mappings.read(pid)) {
                if (!info.path().equals("[vsyscall]")) {
                    mappings.add(mapping(pid, info, scan));
                }
            }
        }
        return mappings;
    }

    private Mapping mapping(Pid pid, MappingInfo info, PageScan scan) {
        // The flag says that there may be some: once one was made, or the address space was copied from such a one.
        long[] guards = info.hasVmFlag("gu") ? scan.guarded(info.start(), info.end()) : NO_GUARDS;
        int protection =
                (info.read() ? PROT_READ : 0) | (info.write() ? PROT_WRITE : 0) | (info.exec() ? PROT_EXEC : 0);
        return new Mapping(
                info.start(), info.end(), protection, info.shared(), backing(pid, info), info.vmFlags(), guards);
    }

    private Backing backing(Pid pid, MappingInfo info) {
        String path = info.path();
        if (KERNEL.contains(path)) {
            return new Backing.Kernel(path);
        }
        if (info.inode() == 0) {
            return new Backing.Anonymous();
        }
        if (path.equals(SHARED_ANONYMOUS) && info.deleted() && !info.shared()) {
            return new Backing.Anonymous();
        }
        if (info.hasVmFlag("ht")) {
            throw new UnsupportedResourceException(List.of(problem(
                    pid,
                    "mapping " + Long.toHexString(info.start()) + " of " + path,
                    "huge pages of hugetlbfs are not supported",
                    "use MADV_HUGEPAGE")));
        }
        if (isSegment(info) || (path.equals(SHARED_ANONYMOUS) && info.deleted())) {
            return sharedMemory(pid, info);
        }
        if (info.deleted()) {
            Optional<String> name = NamelessFiles.otherName(pid, info);
            if (name.isEmpty() && !info.shared() && !InodeContent.canBeOpened(pid, info)) {
                return new Backing.Detached();
            }
            if (name.isEmpty()) {
                return new Backing.MappedNamelessFile(
                        namelessFiles.of(pid, info).index(), info.offset());
            }
            path = name.get();
        }
        FileReference file = file(pid, path);
        if (info.shared() && info.hasVmFlag("mw")) {
            saveIfSmall(pid, file);
        }
        return new Backing.MappedFile(file, info.offset());
    }

    /** The kernel's name of a System V segment is its key, its inode number the id. */
    private static boolean isSegment(MappingInfo info) {
        return info.deleted() && info.shared() && info.path().startsWith("/SYSV");
    }

    private Backing sharedMemory(Pid pid, MappingInfo info) {
        Integer segment = isSegment(info) ? (int) info.inode() : null;
        boolean readOnly = segment != null && !info.hasVmFlag("mw");
        SharedObjectInfo object =
                shared.computeIfAbsent(new Inode(info.devMajor(), info.devMinor(), info.inode(), readOnly), inode -> {
                    SharedObjectInfo created = new SharedObjectInfo(objects.size(), segment, readOnly);
                    created.size = segment == null
                            ? 0
                            : SharedSegment.find(segment)
                                    .map(SharedSegment::size)
                                    .orElse(0L);
                    objects.add(created);
                    return created;
                });
        object.size = Math.max(object.size, info.offset() + info.size());
        object.content.addMapping(pid, info);
        return new Backing.SharedMemory(object.index, info.offset());
    }

    /** Those of the shared objects that are System V segments. */
    List<Segment> segments() {
        return objects.stream()
                .filter(object -> object.segment != null)
                .map(object -> SharedSegments.capture(object.index, object.readOnly, object.segment))
                .toList();
    }

    private void saveIfSmall(Pid pid, FileReference file) {
        if (file.size() > SAVED_FILE_BYTES || saved.containsKey(file.path())) {
            return;
        }
        try {
            byte[] content = Files.readAllBytes(Path.of("/proc/" + pid + "/root" + file.path()));
            saved.put(file.path(), new SavedFile(file, content));
        } catch (IOException e) {
            throw new EngineException(
                    EngineException.Kind.FAILED, "cannot read the mapped file " + file.path() + ": " + e, e);
        }
    }

    /** Small files that are mapped shared and writable: they often vanish with the process. */
    List<SavedFile> savedFiles() {
        return List.copyOf(saved.values());
    }

    FileReference file(Pid pid, String path) {
        return files.computeIfAbsent(path, p -> {
            FileStatus status = FileStatus.of("/proc/" + pid + "/root" + p);
            return new FileReference(p, status.dev(), status.ino(), status.mode(), status.size(), status.mtimeNanos());
        });
    }

    List<SharedObjectInfo> sharedObjects() {
        return objects;
    }

    /** Where the vDSO lies. */
    static VdsoMapping vdso(List<Mapping> mappings, Pid pid) {
        for (Mapping mapping : mappings) {
            if (mapping.backing() instanceof Backing.Kernel(String name) && name.equals("[vdso]")) {
                return new VdsoMapping(mapping.start(), mapping.end());
            }
        }
        throw new EngineException(
                EngineException.Kind.UNSUPPORTED,
                "process " + pid + " has no vDSO, whose mapping a checkpoint needs for its first system call;"
                        + " start it without vdso=0");
    }
}
