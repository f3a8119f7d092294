package io.stasis.engine.restore;

import io.stasis.engine.EngineException;
import io.stasis.image.PageFile;
import io.stasis.image.model.MemoryImage;
import io.stasis.image.model.MemoryImage.Backing;
import io.stasis.image.model.MemoryImage.Layout;
import io.stasis.image.model.MemoryImage.Mapping;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.ptrace.CallTable;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;

/**
 * Makes the address space of one process: kernel mappings moved into place, everything mapped, pages read straight from
 * the page file, protections and advice set, and the marks of PR_SET_MM_MAP.
 */
final class MemoryBuilder {
    private static final int PROT_WRITE = 2;
    private static final int MAP_SHARED = 1;
    private static final int MAP_PRIVATE = 2;
    private static final int MAP_DROPPABLE = 8;
    private static final int MADV_GUARD_INSTALL = 102;
    private static final int MLOCK_ONFAULT = 1;
    private static final int MAP_ANONYMOUS = 0x20;
    private static final int MAP_GROWSDOWN = 0x100;
    private static final int MAP_NORESERVE = 0x4000;
    private static final int MAP_FIXED_NOREPLACE = 0x100000;
    private static final int MREMAP_MAYMOVE_FIXED = 3;
    private static final int AT_FDCWD = -100;
    private static final int O_RDONLY_CLOEXEC = 0x80000;
    private static final int O_RDWR_CLOEXEC = 0x80002;
    private static final int PR_SET_MM = 35;
    private static final int PR_SET_MM_MAP = 14;
    private static final int MM_MAP_BYTES = 104;
    private static final int IOV_MAX = 1024;
    private static final long READ_MAX = 1L << 30;

    /** VmFlags of smaps and the madvise(2) advice that brings each back. */
    private static final Map<String, Integer> ADVICE =
            Map.of("rr", 1, "sr", 2, "dc", 10, "mg", 12, "hg", 14, "nh", 15, "dd", 16, "wf", 18);

    /** One read of the page file and the bytes it must bring. */
    private record Read(CallTable table, int call, long bytes) {}

    private final RestoredProcess process;
    private final MemoryImage memory;
    private final AddressPlan plan;
    private final KernelMappings kernelMappings;
    private final Path generation;
    private final IntFunction<String> namelessFiles;
    private final int scratchFd;
    private final Program program = new Program(AddressPlan.WORK_AREA_BYTES - 4096);
    private final List<Read> reads = new ArrayList<>();
    private String openFile;
    private long bytes;

    /**
     * @param namelessFiles the path by which the process opens a file of the image that has none, by its index
     * @param scratchFd this descriptor and the next one are free for use; all between 3 and it are closed at will
     */
    MemoryBuilder(
            RestoredProcess process,
            AddressPlan plan,
            KernelMappings kernelMappings,
            Path generation,
            IntFunction<String> namelessFiles,
            int scratchFd) {
        this.process = process;
        this.memory = process.image().memory();
        this.plan = plan;
        this.kernelMappings = kernelMappings;
        this.generation = generation;
        this.namelessFiles = namelessFiles;
        this.scratchFd = scratchFd;
    }

    /** Builds everything. Returns the bytes read. */
    long build() {
        List<PageFile.Run> runs;
        Path pageFile = PageFile.inside(generation, memory.pageFile());
        try (PageFile pages = PageFile.open(pageFile)) {
            runs = pages.runs();
        }
        map(runs);
        fill(runs, pageFile);
        finish(runs);
        for (CallTable table : program.tables()) {
            CallTable.Results results = process.run(table);
            for (Read read : reads) {
                if (read.table == table && results.result(read.call) != read.bytes) {
                    throw new EngineException(
                            EngineException.Kind.IMAGE,
                            "page file " + pageFile + " is shorter than its index says; restart from another"
                                    + " generation");
                }
            }
        }
        return bytes;
    }

    private void map(List<PageFile.Run> runs) {
        int run = 0;
        for (Mapping mapping : memory.mappings()) {
            while (run < runs.size() && runs.get(run).address() + runs.get(run).pages() * 4096L <= mapping.start()) {
                run++;
            }
            boolean filled = run < runs.size() && runs.get(run).address() < mapping.end();
            mapOne(mapping, filled);
        }
    }

    private void mapOne(Mapping mapping, boolean filled) {
        int protection = mapping.protection() | (filled ? PROT_WRITE : 0);
        int flags = MAP_FIXED_NOREPLACE | (mapping.hasFlag("nr") ? MAP_NORESERVE : 0);
        switch (mapping.backing()) {
            case Backing.Kernel(String name) ->
                program.calls()
                        .must(
                                "move " + name,
                                SystemCall.MREMAP,
                                kernelMappings.address(name),
                                mapping.length(),
                                mapping.length(),
                                MREMAP_MAYMOVE_FIXED,
                                mapping.start());
            case Backing.Anonymous anonymous -> mapAnonymous(mapping, protection, flags);
            case Backing.Detached detached -> mapAnonymous(mapping, protection, flags);
            case Backing.SharedMemory(int object, long offset) ->
                // An old length of zero makes one more mapping of the same memory, see mremap(2).
                program.calls()
                        .must(
                                "share " + Long.toHexString(mapping.start()),
                                SystemCall.MREMAP,
                                plan.sharedObjects().get(object) + offset,
                                0,
                                mapping.length(),
                                MREMAP_MAYMOVE_FIXED,
                                mapping.start());
            case Backing.MappedFile(var file, long offset) -> mapFile(file.path(), mapping, protection, flags, offset);
            case Backing.MappedNamelessFile(int file, long offset) ->
                mapFile(namelessFiles.apply(file), mapping, protection, flags, offset);
        }
    }

    private void mapAnonymous(Mapping mapping, int protection, int flags) {
        program.calls()
                .must(
                        "map " + Long.toHexString(mapping.start()),
                        SystemCall.MMAP,
                        mapping.start(),
                        mapping.length(),
                        protection,
                        flags
                                | (mapping.hasFlag("dp") ? MAP_DROPPABLE : MAP_PRIVATE)
                                | MAP_ANONYMOUS
                                | (mapping.hasFlag("gd") ? MAP_GROWSDOWN : 0),
                        -1,
                        0);
    }

    private void mapFile(String path, Mapping mapping, int protection, int flags, long offset) {
        boolean writable = mapping.shared() && mapping.hasFlag("mw");
        CallTable calls = open(path, writable);
        calls.must(
                "map " + Long.toHexString(mapping.start()) + " from " + path,
                SystemCall.MMAP,
                mapping.start(),
                mapping.length(),
                protection,
                flags | (mapping.shared() ? MAP_SHARED : MAP_PRIVATE),
                scratchFd,
                offset);
    }

    /** Leaves the file open at {@link #scratchFd}. */
    private CallTable open(String path, boolean writable) {
        CallTable calls = program.calls();
        String key = path + (writable ? " w" : " r");
        if (!key.equals(openFile)) {
            int opened = calls.must(
                    "open " + path,
                    SystemCall.OPENAT,
                    AT_FDCWD,
                    calls.string(path),
                    writable ? O_RDWR_CLOEXEC : O_RDONLY_CLOEXEC,
                    0);
            int moved = calls.must("open " + path, SystemCall.DUP3, 0, scratchFd, O_RDONLY_CLOEXEC);
            calls.forward(opened, moved, 0);
            calls.must("close the lower descriptors", SystemCall.CLOSE_RANGE, 3, scratchFd - 1, 0);
            openFile = key;
        }
        return calls;
    }

    /** Reads the runs, as many as one preadv takes at a time: they lie one behind the other in the file. */
    private void fill(List<PageFile.Run> runs, Path pageFile) {
        if (runs.isEmpty()) {
            return;
        }
        open(pageFile.toAbsolutePath().toString(), false);
        int next = 0;
        while (next < runs.size()) {
            long offset = runs.get(next).fileOffset();
            List<Long> vector = new ArrayList<>();
            long length = 0;
            while (next < runs.size()
                    && vector.size() < 2 * IOV_MAX
                    && length < READ_MAX
                    && runs.get(next).fileOffset() == offset + length) {
                PageFile.Run run = runs.get(next++);
                vector.add(run.address());
                vector.add(run.pages() * 4096L);
                length += run.pages() * 4096L;
            }
            CallTable calls = program.calls();
            int call = calls.must(
                    "read pages from " + pageFile,
                    SystemCall.PREADV,
                    scratchFd,
                    calls.longs(vector.stream().mapToLong(Long::longValue).toArray()),
                    vector.size() / 2,
                    offset,
                    0);
            reads.add(new Read(calls, call, length));
            bytes += length;
        }
    }

    private void finish(List<PageFile.Run> runs) {
        int run = 0;
        for (Mapping mapping : memory.mappings()) {
            while (run < runs.size() && runs.get(run).address() + runs.get(run).pages() * 4096L <= mapping.start()) {
                run++;
            }
            boolean filled = run < runs.size() && runs.get(run).address() < mapping.end();
            boolean shared = mapping.backing() instanceof Backing.SharedMemory;
            if (mapping.backing() instanceof Backing.Kernel) {
                continue;
            }
            String at = Long.toHexString(mapping.start());
            if (shared || (filled && (mapping.protection() & PROT_WRITE) == 0)) {
                program.calls()
                        .must(
                                "protect " + at,
                                SystemCall.MPROTECT,
                                mapping.start(),
                                mapping.length(),
                                mapping.protection());
            }
            ADVICE.forEach((flag, advice) -> {
                // Droppable memory has "wf" and "dd" by nature.
                if (mapping.hasFlag(flag) && !mapping.hasFlag("dp") && !(flag.equals("dd") && mapping.hasFlag("io"))) {
                    program.calls().must("advise " + at, SystemCall.MADVISE, mapping.start(), mapping.length(), advice);
                }
            });
            for (int i = 0; i < mapping.guards().length; i += 2) {
                long start = mapping.guards()[i];
                program.calls()
                        .must(
                                "guard " + Long.toHexString(start),
                                SystemCall.MADVISE,
                                start,
                                mapping.guards()[i + 1] - start,
                                MADV_GUARD_INSTALL);
            }
            if (mapping.hasFlag("lo")) {
                int how = mapping.hasFlag("lf") ? MLOCK_ONFAULT : 0;
                program.calls().must("lock " + at, SystemCall.MLOCK2, mapping.start(), mapping.length(), how);
            }
            if (mapping.hasFlag("sl")) {
                program.calls().must("seal " + at, SystemCall.MSEAL, mapping.start(), mapping.length(), 0);
            }
        }
        setLayout();
    }

    private void setLayout() {
        CallTable calls = open(memory.executable().path(), false);
        Layout l = memory.layout();
        long auxiliary = calls.data(memory.auxiliaryVector());
        long sizes = memory.auxiliaryVector().length | (long) scratchFd << 32;
        long map = calls.longs(
                l.startCode(),
                l.endCode(),
                l.startData(),
                l.endData(),
                l.startBreak(),
                l.currentBreak(),
                l.startStack(),
                l.argumentsStart(),
                l.argumentsEnd(),
                l.environmentStart(),
                l.environmentEnd(),
                auxiliary,
                sizes);
        calls.must("set the marks of the address space", SystemCall.PRCTL, PR_SET_MM, PR_SET_MM_MAP, map, MM_MAP_BYTES);
        calls.must("close the mapped files", SystemCall.CLOSE_RANGE, scratchFd, scratchFd, 0);
        openFile = null;
    }
}
