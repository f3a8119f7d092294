package io.stasis.image.model;

/**
 * One entry of a file descriptor table.
 *
 * @param fd descriptor number
 * @param closeOnExec FD_CLOEXEC
 * @param description index into {@link ComputationImage#descriptions()}: entries with the same index share one open
 *     file description, also across processes
 */
public record DescriptorEntry(int fd, boolean closeOnExec, int description) {}
