package io.stasis.image;

/**
 * An image or log is damaged, incomplete, of a newer format, or cannot be read or written. The message is one sentence
 * that names the file, where in it, what was expected, and what the user can do.
 */
public final class ImageException extends RuntimeException {
    public ImageException(String message) {
        super(message);
    }

    public ImageException(String message, Throwable cause) {
        super(message, cause);
    }

    static ImageException io(String doing, java.nio.file.Path file, java.io.IOException cause) {
        String said = cause.getMessage() == null || cause.getMessage().equals(file.toString())
                ? cause.getClass().getSimpleName()
                : cause.getMessage();
        if (said.contains("No space left on device")) {
            said = "ENOSPC (No space left on device); free some, or give another directory with --dir";
        }
        return new ImageException("cannot " + doing + " " + file + ": " + said, cause);
    }

    static ImageException damaged(java.nio.file.Path file, String what) {
        return new ImageException(file + " is damaged: " + what + "; restart from another generation");
    }
}
