package io.stasis.image.model;

import java.util.List;

/**
 * The address space of a process without its bytes.
 *
 * @param mappings all mappings in address order, the kernel's own ([vdso], [vvar...]) included, [vsyscall] left out
 * @param layout the marks that PR_SET_MM_MAP takes, see prctl(2)
 * @param auxiliaryVector /proc/PID/auxv as raw bytes
 * @param executable the file behind /proc/PID/exe
 * @param pageFile name of the page file with this process's private pages, relative to the generation directory
 */
public record MemoryImage(
        List<Mapping> mappings, Layout layout, byte[] auxiliaryVector, FileReference executable, String pageFile) {

    /** Fields 26 to 28 and 45 to 51 of /proc/PID/stat; {@code currentBreak} is what brk(0) returned. */
    public record Layout(
            long startCode,
            long endCode,
            long startData,
            long endData,
            long startBreak,
            long currentBreak,
            long startStack,
            long argumentsStart,
            long argumentsEnd,
            long environmentStart,
            long environmentEnd) {}

    /**
     * One mapping, [start, end) in bytes, page aligned.
     *
     * @param protection PROT_READ 1, PROT_WRITE 2, PROT_EXEC 4
     * @param shared MAP_SHARED or else MAP_PRIVATE
     * @param kernelFlags the two-letter VmFlags of proc_pid_smaps(5), separated by blanks
     * @param guards guard pages of madvise(2) MADV_GUARD_INSTALL, as pairs of start and end
     */
    public record Mapping(
            long start, long end, int protection, boolean shared, Backing backing, String kernelFlags, long[] guards) {
        public long length() {
            return end - start;
        }

        /** Whether VmFlags holds {@code flag}, such as "gd" (grows down) or "hg" (MADV_HUGEPAGE). */
        public boolean hasFlag(String flag) {
            return (" " + kernelFlags + " ").contains(" " + flag + " ");
        }
    }

    /** What lies behind a mapping. */
    public sealed interface Backing {
        /** Zero-filled memory of this process alone (copy-on-write shared with relatives at most). */
        record Anonymous() implements Backing {}

        /** A file that exists under its path; {@code offset} in bytes. */
        record MappedFile(FileReference file, long offset) implements Backing {}

        /**
         * Memory shared by mappings of one inode without a usable path (MAP_SHARED|MAP_ANONYMOUS). {@code object} is
         * the index into {@link ComputationImage#sharedObjects()}; {@code offset} in bytes.
         */
        record SharedMemory(int object, long offset) implements Backing {}

        /**
         * A file that no path leads to, see {@link ComputationImage#namelessFiles()}; {@code offset} in bytes.
         */
        record MappedNamelessFile(int file, long offset) implements Backing {}

        /**
         * Private memory of a file that no path leads to and that could not be opened either: all of its pages are among
         * the process's own, and it comes back as anonymous memory.
         */
        record Detached() implements Backing {}

        /** A mapping the kernel itself put there; {@code name} is "[vdso]", "[vvar]" or "[vvar_vclock]". */
        record Kernel(String name) implements Backing {}
    }
}
