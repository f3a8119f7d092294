package io.stasis.client;

/** Exit codes of the {@code stasis} command; errors of the control protocol carry the same numbers. */
public final class ExitCode {
    public static final int OK = 0;
    /** The operation failed; the program is unharmed. */
    public static final int FAILED = 1;

    public static final int USAGE = 2;
    /** No agent, it could not be started, or it is of another version. */
    public static final int NO_AGENT = 3;
    /** The program holds a resource that cannot be captured; the checkpoint was refused. */
    public static final int UNSUPPORTED = 4;
    /** The image is damaged, incomplete or not for this host. */
    public static final int IMAGE = 5;
    /** No such computation or process, or no permission. */
    public static final int ACCESS = 6;
    /** A process id of the image is taken. */
    public static final int PID_TAKEN = 7;

    private ExitCode() {}
}
