package io.stasis.client;

/** What the greeting of the control protocol carries: command and agent must agree on all three. */
public final class Protocol {
    /** Version of Stasis. */
    public static final String VERSION = "0.1.0";
    /** Version of the control protocol. */
    public static final int NUMBER = 1;
    /** Version of the image format. */
    public static final int FORMAT = 1;

    private Protocol() {}
}
