package io.stasis.image;

/** Version of everything written to disk. Readers refuse what is newer and read what is older. */
public final class FormatVersion {
    public static final int CURRENT = 1;

    private FormatVersion() {}

    /** @throws ImageException when {@code version} is newer than this program */
    public static void check(int version, String what) {
        if (version > CURRENT) {
            throw new ImageException(what + " has image format " + version + " and this version of Stasis reads up to "
                    + CURRENT + "; use the version of Stasis that wrote it, or a newer one");
        }
        if (version < 1) {
            throw new ImageException(what + " has no valid format version (" + version
                    + "): it is damaged; restart from another generation");
        }
    }
}
