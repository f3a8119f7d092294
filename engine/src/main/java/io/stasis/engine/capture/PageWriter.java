package io.stasis.engine.capture;

import io.stasis.image.PageFile;
import io.stasis.image.model.MemoryImage.Backing;
import io.stasis.image.model.MemoryImage.Mapping;
import io.stasis.linux.Fd;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.memory.PageScan;
import io.stasis.linux.memory.ProcessMemory;
import io.stasis.linux.memory.ZeroPages;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

/**
 * Copies the pages of a frozen process into a page file: one thread reads, a second one looks for zero pages, checks
 * and writes, so that the copy takes as long as the slower of the two.
 *
 * <p>Heap and native use are bounded by {@value #BUFFERS} buffers of {@value #BUFFER_BYTES} bytes in an agent,
 * whatever the size of the process and however many checkpoints are under way.
 */
final class PageWriter {
    static final int PAGE = 4096;
    private static final int BUFFER_BYTES = 1 << 20;
    private static final int BUFFERS = 8;

    /** @param pages pages written; @param zeroPages pages found zero and left out */
    record Count(long pages, long zeroPages) {}

    /** Where bytes come from. */
    interface Source {
        /** Reads ranges, given as pairs of start and end, one behind the other into the buffer. */
        void read(long[] ranges, ByteBuffer target);
    }

    private static final class Chunk {
        final ByteBuffer buffer;
        /** Pairs of address and length of what lies in the buffer, one behind the other. */
        final List<long[]> ranges = new ArrayList<>();

        boolean elideZeroes;

        Chunk() {
            this(BUFFER_BYTES);
        }

        Chunk(int bytes) {
            buffer = Libc.buffer(bytes);
        }
    }

    /** Shared by all checkpoints of the agent and kept: making and clearing them costs more than a small checkpoint. */
    private static final BlockingQueue<Chunk> FREE = new ArrayBlockingQueue<>(BUFFERS);

    static {
        for (int i = 0; i < BUFFERS; i++) {
            FREE.add(new Chunk());
        }
    }

    /** Writes all pages that the kernel could not make again from the mapped files. */
    Count writePrivate(List<Mapping> mappings, ProcessMemory memory, PageScan scan, PageFile.Writer writer) {
        List<long[]> zeroable = new ArrayList<>();
        List<long[]> exact = new ArrayList<>();
        for (Mapping mapping : mappings) {
            boolean anonymous = mapping.backing() instanceof Backing.Anonymous;
            boolean file = mapping.backing() instanceof Backing.MappedFile
                    || mapping.backing() instanceof Backing.MappedNamelessFile;
            boolean privateFile = file && !mapping.shared();
            if (mapping.backing() instanceof Backing.Detached) {
                long end = mapping.start() + ContentWriter.readable(mapping.start(), mapping.length(), memory);
                if (mapping.start() < end) {
                    zeroable.add(new long[] {mapping.start(), end, mapping.start()});
                }
            } else if (anonymous || privateFile) {
                long[] ranges = scan.populated(mapping.start(), mapping.end());
                for (int i = 0; i < ranges.length; i += 2) {
                    // A private page of a file that is zero must hide the file's own page: it cannot be left out.
                    (anonymous ? zeroable : exact).add(new long[] {ranges[i], ranges[i + 1], ranges[i]});
                }
            }
        }
        List<long[]> all = new ArrayList<>(zeroable);
        all.addAll(exact);
        all.sort((a, b) -> Long.compareUnsigned(a[0], b[0]));
        var exactStarts = new java.util.HashSet<Long>();
        exact.forEach(range -> exactStarts.add(range[0]));
        return copy(all, exactStarts, memory::readVector, writer);
    }

    /**
     * Writes the pages of shared memory as seen through one mapping; page addresses in the file are offsets into the
     * object.
     *
     * @param ranges {start, end, offset}
     */
    Count writeShared(List<long[]> ranges, ProcessMemory memory, PageFile.Writer writer) {
        return copy(ranges, java.util.Set.of(), memory::readVector, writer);
    }

    /**
     * Writes a file as far as it has content; page addresses are file offsets. What follows its end in the last page is
     * written as zeros.
     */
    Count writeFile(Fd file, long size, PageFile.Writer writer) {
        SparseFile sparse = new SparseFile(file, size);
        return copy(sparse.ranges(), java.util.Set.of(), sparse, writer);
    }

    private Count copy(List<long[]> ranges, java.util.Set<Long> exact, Source memory, PageFile.Writer writer) {
        long total = 0;
        for (long[] range : ranges) {
            total += range[1] - range[0];
        }
        if (total <= 2L * BUFFER_BYTES) {
            return copyAlone(ranges, exact, memory, writer);
        }
        try (Pipeline pipeline = new Pipeline(writer)) {
            forEachChunk(ranges, exact, memory, pipeline::take, pipeline::put);
            return pipeline.finish();
        }
    }

    private Count copyAlone(List<long[]> ranges, java.util.Set<Long> exact, Source memory, PageFile.Writer writer) {
        long[] count = new long[2];
        Chunk own = uninterrupted(FREE::take);
        try {
            forEachChunk(ranges, exact, memory, () -> own, chunk -> write(chunk, writer, count));
        } finally {
            FREE.add(own);
        }
        return new Count(count[0], count[1]);
    }

    /** Cuts the ranges into buffers and reads them. */
    private static void forEachChunk(
            List<long[]> ranges,
            java.util.Set<Long> exact,
            Source memory,
            java.util.function.Supplier<Chunk> source,
            java.util.function.Consumer<Chunk> sink) {
        Chunk chunk = null;
        for (long[] range : ranges) {
            boolean elide = !exact.contains(range[0]);
            long address = range[0];
            while (address < range[1]) {
                if (chunk != null && (chunk.buffer.position() == BUFFER_BYTES || chunk.elideZeroes != elide)) {
                    read(chunk, memory);
                    sink.accept(chunk);
                    chunk = null;
                }
                if (chunk == null) {
                    chunk = source.get();
                    chunk.buffer.clear();
                    chunk.ranges.clear();
                    chunk.elideZeroes = elide;
                }
                int length = (int) Math.min(range[1] - address, BUFFER_BYTES - chunk.buffer.position());
                chunk.ranges.add(new long[] {address, length, range[2] + (address - range[0])});
                chunk.buffer.position(chunk.buffer.position() + length);
                address += length;
            }
        }
        if (chunk != null) {
            read(chunk, memory);
            sink.accept(chunk);
        }
    }

    private static void read(Chunk chunk, Source memory) {
        long[] vector = new long[2 * chunk.ranges.size()];
        for (int i = 0; i < chunk.ranges.size(); i++) {
            vector[2 * i] = chunk.ranges.get(i)[0];
            vector[2 * i + 1] = chunk.ranges.get(i)[0] + chunk.ranges.get(i)[1];
        }
        int length = chunk.buffer.position();
        chunk.buffer.clear().limit(length);
        memory.read(vector, chunk.buffer);
    }

    /** Appends the runs of pages that are not zero. */
    private static void write(Chunk chunk, PageFile.Writer writer, long[] count) {
        ByteBuffer buffer = chunk.buffer;
        int position = 0;
        for (long[] range : chunk.ranges) {
            int end = position + (int) range[1];
            int runStart = position;
            for (int page = position; page < end; page += PAGE) {
                if (chunk.elideZeroes && ZeroPages.isZero(buffer, page)) {
                    append(writer, buffer, range[2] + (runStart - position), runStart, page, count);
                    count[1]++;
                    runStart = page + PAGE;
                }
            }
            append(writer, buffer, range[2] + (runStart - position), runStart, end, count);
            position = end;
        }
    }

    private static void append(
            PageFile.Writer writer, ByteBuffer buffer, long address, int from, int to, long[] count) {
        if (from < to) {
            buffer.limit(to).position(from);
            writer.append(address, buffer);
            buffer.clear();
            count[0] += (to - from) / PAGE;
        }
    }

    /** The second thread and what passes between the two. */
    private final class Pipeline implements AutoCloseable {
        private static final int LAST = 1;
        private final BlockingQueue<Chunk> full = new ArrayBlockingQueue<>(BUFFERS + LAST);
        private final Chunk end = new Chunk(0);
        private final long[] count = new long[2];
        private final Thread thread;
        private volatile RuntimeException failure;

        Pipeline(PageFile.Writer writer) {
            thread = Thread.ofPlatform().daemon().name("page-writer").start(() -> {
                try {
                    for (Chunk chunk = full.take(); chunk != end; chunk = full.take()) {
                        if (failure == null) {
                            try {
                                write(chunk, writer, count);
                            } catch (RuntimeException e) {
                                failure = e;
                            }
                        }
                        FREE.put(chunk);
                    }
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
        }

        Chunk take() {
            if (failure != null) {
                throw failure;
            }
            return uninterrupted(FREE::take);
        }

        void put(Chunk chunk) {
            full.add(chunk);
        }

        Count finish() {
            close();
            if (failure != null) {
                throw failure;
            }
            return new Count(count[0], count[1]);
        }

        @Override
        public void close() {
            if (thread.isAlive()) {
                full.add(end);
                uninterrupted(() -> {
                    thread.join();
                    return null;
                });
            }
        }
    }

    private interface Interruptible<T> {
        T call() throws InterruptedException;
    }

    /** A tracer thread is never interrupted: nobody has a reason to, and a frozen program would hang on it. */
    private static <T> T uninterrupted(Interruptible<T> action) {
        try {
            return action.call();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while copying pages", e);
        }
    }
}
