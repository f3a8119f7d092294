package io.stasis.image.model;

/**
 * A file by path, with what tells whether it is still the same one, see inode(7).
 *
 * @param path absolute path as the process sees it
 * @param device st_dev
 * @param inode st_ino
 * @param mode st_mode: type and permissions
 * @param size st_size in bytes
 * @param modifiedNanos st_mtim in nanoseconds since the epoch
 */
public record FileReference(String path, long device, long inode, int mode, long size, long modifiedNanos) {}
