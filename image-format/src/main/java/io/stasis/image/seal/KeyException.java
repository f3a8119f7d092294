package io.stasis.image.seal;

/** A key file cannot be used. The message is one sentence: which file, what is wrong, what the user can do. */
public final class KeyException extends RuntimeException {
    private static final long serialVersionUID = 1;

    KeyException(String message) {
        super(message);
    }

    KeyException(String message, Throwable cause) {
        super(message, cause);
    }
}
