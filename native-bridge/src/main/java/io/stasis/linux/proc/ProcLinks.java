package io.stasis.linux.proc;

import io.stasis.linux.Pid;

/**
 * The links of a process to files: its executable, working directory, root and descriptors.
 *
 * <p>The kernel marks an unlinked file by " (deleted)" behind its name. Whether that is the mark or belongs to the name is
 * decided by a look at the file: no link left means deleted; else the whole name must lead to the same file. In another
 * mount namespace than ours a name may lead nowhere: then it counts as the mark.
 */
public final class ProcLinks {
    /**
     * Where a link leads.
     *
     * @param path without the mark
     * @param deleted the name no longer leads to the file
     */
    public record Target(String path, boolean deleted) {}

    private ProcLinks() {}

    /** The program. @throws io.stasis.linux.KernelException ENOENT for kernel threads and zombies */
    public static Target exe(Pid pid) {
        return target(pid, "exe");
    }

    public static Target cwd(Pid pid) {
        return target(pid, "cwd");
    }

    public static Target root(Pid pid) {
        return target(pid, "root");
    }

    /** A descriptor's file; for others than files the text as it is, such as "pipe:[123]". */
    public static Target fd(Pid pid, int fd) {
        return target(pid, "fd/" + fd);
    }

    private static Target target(Pid pid, String name) {
        String file = Procfs.file(pid, name);
        String text = Procfs.link(pid, file);
        if (!text.endsWith(Deleted.SUFFIX)) {
            return new Target(text, false);
        }
        FileStatus status = FileStatus.of(file);
        boolean real = status.nlink() > 0 && Deleted.isRealName(text, status.ino());
        return real ? new Target(text, false) : new Target(Deleted.strip(text), true);
    }
}
