package io.stasis.linux.proc;

/**
 * One virtual memory area, a line of {@code /proc/P/maps}.
 *
 * @param start first address
 * @param end address behind the last
 * @param shared mapped MAP_SHARED (the "s" of maps)
 * @param offset file offset in bytes
 * @param inode 0 without a file
 * @param path of the file as the kernel names it, "[heap]" and the like, "" for anonymous memory; without " (deleted)"
 * @param deleted the name no longer leads to the file
 * @param vmFlags two-letter codes separated by blanks, "" when they were not read
 * @param rssKb resident KiB, -1 when not read
 */
public record MappingInfo(
        long start,
        long end,
        boolean read,
        boolean write,
        boolean exec,
        boolean shared,
        long offset,
        int devMajor,
        int devMinor,
        long inode,
        String path,
        boolean deleted,
        String vmFlags,
        long rssKb) {

    /** Bytes. */
    public long size() {
        return end - start;
    }

    /** Whether a two-letter flag of smaps is set, such as "gd" for MAP_GROWSDOWN. */
    public boolean hasVmFlag(String flag) {
        for (int i = 0; i + 1 < vmFlags.length(); i += 3) {
            if (vmFlags.charAt(i) == flag.charAt(0) && vmFlags.charAt(i + 1) == flag.charAt(1)) {
                return true;
            }
        }
        return false;
    }

    /** The vDSO's code or one of its data areas: not memory that could be read or saved. */
    public boolean isKernelProvided() {
        return path.startsWith("[v")
                && (path.equals("[vdso]") || path.startsWith("[vvar") || path.equals("[vsyscall]"));
    }
}
