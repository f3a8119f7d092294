package io.stasis.engine;

/**
 * A step of a checkpoint or restart failed. The message is one sentence for the user: what was being done, to what,
 * what the kernel said, what can be done about it.
 */
public class EngineException extends RuntimeException {
    /** What kind of failure it is, for exit codes. */
    public enum Kind {
        /** The operation failed; the program is unharmed. */
        FAILED,
        /** Something was under way that cannot be captured in its middle: it passes, and the next attempt succeeds. */
        BUSY,
        /** A resource cannot be captured. */
        UNSUPPORTED,
        /** The image is damaged, incomplete, or not for this host. */
        IMAGE,
        /** No such process, or no permission. */
        ACCESS,
        /** A pid is taken. */
        PID_TAKEN
    }

    private final Kind kind;

    public EngineException(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    public EngineException(Kind kind, String message, Throwable cause) {
        super(message, cause);
        this.kind = kind;
    }

    public Kind kind() {
        return kind;
    }
}
