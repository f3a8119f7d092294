package io.stasis.linux.proc;

import io.stasis.linux.Pid;

/** The open descriptors of a process, {@code /proc/P/fd}; needs ptrace read access. A zombie has none. */
public final class FdTable {
    private FdTable() {}

    /** Descriptor numbers, ascending. */
    public static int[] list(Pid pid) {
        return Procfs.numbers(pid, Procfs.file(pid, "fd"));
    }

    /**
     * What the link {@code /proc/P/fd/N} says: a path, or "pipe:[123]", "socket:[123]", "anon_inode:[eventfd]" and so on.
     * Names are decoded as UTF-8; bytes that are none become U+FFFD, and such a name does not lead to the file: open
     * {@code /proc/P/fd/N} instead. " (deleted)" is left in place, see {@link ProcLinks#fd}.
     *
     * @throws io.stasis.linux.KernelException ENOENT for a closed descriptor
     */
    public static String link(Pid pid, int fd) {
        return Procfs.link(pid, Procfs.file(pid, "fd/" + fd));
    }
}
