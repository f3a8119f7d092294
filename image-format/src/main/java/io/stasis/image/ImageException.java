package io.stasis.image;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.NotLinkException;
import java.nio.file.Path;
import java.util.Map;

/**
 * An image or log is damaged, incomplete, of a newer format, or cannot be read. The message is one sentence that names
 * the file, where in it, what was expected, and what the user can do. What could not be written is an {@link
 * ImageWriteException}.
 */
public sealed class ImageException extends RuntimeException permits ImageWriteException {
    /** What strerror(3) says, and the name of the error, for what the kernel answers to file operations. */
    private static final Map<String, String> NAMES = Map.ofEntries(
            Map.entry("Operation not permitted", "EPERM"),
            Map.entry("No such file or directory", "ENOENT"),
            Map.entry("Input/output error", "EIO"),
            Map.entry("Bad file descriptor", "EBADF"),
            Map.entry("Cannot allocate memory", "ENOMEM"),
            Map.entry("Permission denied", "EACCES"),
            Map.entry("File exists", "EEXIST"),
            Map.entry("Invalid cross-device link", "EXDEV"),
            Map.entry("Not a directory", "ENOTDIR"),
            Map.entry("Is a directory", "EISDIR"),
            Map.entry("Invalid argument", "EINVAL"),
            Map.entry("Too many open files in system", "ENFILE"),
            Map.entry("Too many open files", "EMFILE"),
            Map.entry("File too large", "EFBIG"),
            Map.entry("No space left on device", "ENOSPC"),
            Map.entry("Read-only file system", "EROFS"),
            Map.entry("File name too long", "ENAMETOOLONG"),
            Map.entry("Directory not empty", "ENOTEMPTY"),
            Map.entry("Too many levels of symbolic links", "ELOOP"),
            Map.entry("Stale file handle", "ESTALE"),
            Map.entry("Disk quota exceeded", "EDQUOT"));

    public ImageException(String message) {
        super(message);
    }

    public ImageException(String message, Throwable cause) {
        super(message, cause);
    }

    /** The kernel refused to read something: "cannot [doing] [file]: [what it said]". */
    public static ImageException reading(String doing, Path file, IOException cause) {
        return new ImageException("cannot " + doing + " " + file + ": " + describe(cause), cause);
    }

    static ImageException damaged(Path file, String what) {
        return new ImageException(file + " is damaged: " + what + "; restart from another generation");
    }

    /** What the kernel said, with the error's name, such as "ENOSPC (No space left on device)". */
    static String describe(IOException cause) {
        String said = switch (cause) {
            case NoSuchFileException e -> "No such file or directory";
            case FileAlreadyExistsException e -> "File exists";
            case AccessDeniedException e -> "Permission denied";
            case NotDirectoryException e -> "Not a directory";
            case DirectoryNotEmptyException e -> "Directory not empty";
            case FileSystemLoopException e -> "Too many levels of symbolic links";
            case NotLinkException e -> "Invalid argument";
            case FileSystemException e when e.getReason() != null -> e.getReason();
            default -> cause.getMessage() == null ? cause.getClass().getSimpleName() : cause.getMessage();
        };
        // The reason of a FileSystemException may go on after what strerror(3) said.
        String known = NAMES.keySet().stream()
                .filter(said::startsWith)
                .max(java.util.Comparator.comparingInt(String::length))
                .orElse(null);
        return known == null ? said : NAMES.get(known) + " (" + said + ")";
    }
}
