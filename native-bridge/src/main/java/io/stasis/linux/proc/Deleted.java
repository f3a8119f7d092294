package io.stasis.linux.proc;

import io.stasis.linux.KernelException;

/** The " (deleted)" that the kernel appends to names of unlinked files, and files that are really called so. */
final class Deleted {
    static final String SUFFIX = " (deleted)";

    private Deleted() {}

    static String strip(String path) {
        return path.substring(0, path.length() - SUFFIX.length());
    }

    /** Whether {@code path}, suffix included, leads to inode {@code inode}. Device numbers lie on btrfs and overlayfs. */
    static boolean isRealName(String path, long inode) {
        if (!path.startsWith("/")) {
            return false;
        }
        try {
            FileStatus status = FileStatus.of(path);
            return status.exists() && status.ino() == inode;
        } catch (KernelException unreachable) {
            return false;
        }
    }
}
