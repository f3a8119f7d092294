package io.stasis.client;

/**
 * A request failed. The message is one sentence for the user: what was being done, to what, why it failed, and what can
 * be done about it.
 */
public final class StasisException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final String code;
    private final int exitCode;

    /**
     * @param code the protocol's word for the kind of failure, such as "name-taken"
     * @param exitCode one of {@link ExitCode}
     */
    public StasisException(String code, int exitCode, String message) {
        super(message);
        this.code = code;
        this.exitCode = exitCode;
    }

    public StasisException(String code, int exitCode, String message, Throwable cause) {
        super(message, cause);
        this.code = code;
        this.exitCode = exitCode;
    }

    public String code() {
        return code;
    }

    public int exitCode() {
        return exitCode;
    }
}
