package io.stasis.image;

import java.io.IOException;
import java.nio.file.Path;

/**
 * A part of an image or log could not be written: no space, no permission, a failing disk. What was complete before is
 * as it was. The message is one sentence that names the file, where in it, what the kernel said, and what the user can
 * do.
 */
public final class ImageWriteException extends ImageException {
    public ImageWriteException(String message) {
        super(message);
    }

    private ImageWriteException(String message, Throwable cause) {
        super(message, cause);
    }

    /** The kernel refused to write something: "cannot [doing] [file]: [what it said]; [what to do]". */
    public static ImageWriteException writing(String doing, Path file, IOException cause) {
        String said = describe(cause);
        return new ImageWriteException("cannot " + doing + " " + file + ": " + said + advice(said), cause);
    }

    private static String advice(String said) {
        return switch (said.split(" ", 2)[0]) {
            case "ENOSPC", "EDQUOT" -> "; free some, or give another directory with --dir";
            case "EACCES", "EPERM", "EROFS" -> "; give a directory that you may write to with --dir";
            case "EFBIG" -> "; raise the limit of the file size (ulimit -f), or use another file system";
            case "EIO" -> "; the disk may be failing, use another one";
            default -> "";
        };
    }
}
