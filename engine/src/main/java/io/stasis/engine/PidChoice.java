package io.stasis.engine;

/** With which ids a restored tree lives on this host. Inside it always sees those of the image. */
public enum PidChoice {
    /** Those of the image where this user may choose pids, else in a pid namespace of its own. */
    DEFAULT,
    /** Those of the image, or no restart. */
    KEEP,
    /** Those of the image where they are free and this user may choose them, else in a pid namespace of its own. */
    AUTO,
    /** In a pid namespace of its own; this host gives it new ids. */
    NAMESPACE
}
