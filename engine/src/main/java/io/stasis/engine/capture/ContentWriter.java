package io.stasis.engine.capture;

import io.stasis.engine.resource.file.InodeContent;
import io.stasis.engine.resource.file.InodeContent.Mapped;
import io.stasis.image.PageFile;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.memory.ProcessMemory;
import io.stasis.linux.proc.FileStatus;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.IntFunction;

/**
 * Writes the content of files and memory objects that processes share into page files whose addresses are offsets.
 *
 * <p>A file that can be opened is read as a file: so all of it is seen, its holes cost nothing, and no page comes to be
 * in the program. Of others what is mapped is read through the mappings.
 */
final class ContentWriter {
    private static final long PAGE = PageFile.PAGE;

    private final PageWriter pages;
    private final IntFunction<ProcessMemory> memories;

    /** @param memories the memory of a frozen process by its pid */
    ContentWriter(PageWriter pages, IntFunction<ProcessMemory> memories) {
        this.pages = pages;
        this.memories = memories;
    }

    /** Returns the size of the object in bytes. */
    long write(InodeContent content, Optional<Fd> file, PageFile.Writer writer) {
        return file.isPresent() ? writeFile(file.get(), writer) : writeMapped(content.mappings(), writer);
    }

    private long writeFile(Fd file, PageFile.Writer writer) {
        long size = FileStatus.ofFd(file.value()).size();
        pages.writeFile(file, size, writer);
        return size;
    }

    private long writeMapped(List<Mapped> mappings, PageFile.Writer writer) {
        long covered = 0;
        List<Mapped> ascending = mappings.stream()
                .sorted(Comparator.comparingLong(Mapped::offset))
                .toList();
        for (Mapped mapped : ascending) {
            ProcessMemory memory = memories.apply(mapped.pid());
            long from = Math.max(covered, mapped.offset());
            long to = mapped.offset() + readable(mapped.address(), mapped.length(), memory);
            if (from < to) {
                long address = mapped.address() + (from - mapped.offset());
                pages.writeShared(List.of(new long[] {address, address + (to - from), from}), memory, writer);
                covered = to;
            }
        }
        return covered;
    }

    /** The bytes of a mapping of a file up to the last page that the file has; the kernel gives nothing beyond. */
    static long readable(long address, long length, ProcessMemory memory) {
        if (isReadable(address + length - PAGE, memory)) {
            return length;
        }
        long readable = 0;
        long end = length;
        while (readable < end) {
            long middle = (readable + end) / 2 / PAGE * PAGE;
            if (isReadable(address + middle, memory)) {
                readable = middle + PAGE;
            } else {
                end = middle;
            }
        }
        return readable;
    }

    private static boolean isReadable(long address, ProcessMemory memory) {
        try {
            memory.readLong(address);
            return true;
        } catch (KernelException e) {
            return false;
        }
    }
}
