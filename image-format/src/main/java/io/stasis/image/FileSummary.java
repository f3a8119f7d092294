package io.stasis.image;

/**
 * A file that has been written.
 *
 * @param size in bytes
 * @param crc32c CRC-32C over all its bytes
 */
public record FileSummary(long size, int crc32c) {
    /** Reads a file and sums it up. */
    public static FileSummary of(java.nio.file.Path file) {
        return PrivateFiles.summarize(file);
    }
}
