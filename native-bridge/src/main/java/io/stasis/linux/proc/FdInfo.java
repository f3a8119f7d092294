package io.stasis.linux.proc;

import io.stasis.linux.Pid;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * {@code /proc/P/fdinfo/N}, see proc_pid_fdinfo(5).
 *
 * @param pos file offset
 * @param flags open flags, O_CLOEXEC (of the descriptor) included
 * @param mntId mount, as in mountinfo
 * @param ino inode, 0 on kernels before 5.14
 * @param extra all other lines as they are, such as "eventfd-count: 3" or "tfd: 5 events: 19 data: ..."
 */
public record FdInfo(long pos, int flags, int mntId, long ino, List<String> extra) {
    /** @throws io.stasis.linux.KernelException ENOENT for a closed descriptor */
    public static FdInfo read(Pid pid, int fd) {
        return parse(Procfs.read(pid, Procfs.file(pid, "fdinfo/" + fd)));
    }

    /** What follows {@code key} and its colon on the first line that begins so. */
    public Optional<String> value(String key) {
        for (String line : extra) {
            if (line.startsWith(key) && line.length() > key.length() && line.charAt(key.length()) == ':') {
                return Optional.of(line.substring(key.length() + 1).strip());
            }
        }
        return Optional.empty();
    }

    static FdInfo parse(ProcText text) {
        long pos = 0;
        int flags = 0;
        int mntId = 0;
        long ino = 0;
        List<String> extra = List.of();
        while (!text.atEnd()) {
            if (text.startsWith("pos:")) {
                text.position += 4;
                pos = text.decimal();
                text.skipLine();
            } else if (text.startsWith("flags:")) {
                text.position += 6;
                flags = text.octal();
                text.skipLine();
            } else if (text.startsWith("mnt_id:")) {
                text.position += 7;
                mntId = text.integer();
                text.skipLine();
            } else if (text.startsWith("ino:")) {
                text.position += 4;
                ino = text.decimal();
                text.skipLine();
            } else {
                if (extra.isEmpty()) {
                    extra = new ArrayList<>();
                }
                extra.add(text.restOfLine());
            }
        }
        return new FdInfo(pos, flags, mntId, ino, List.copyOf(extra));
    }
}
