package io.stasis.linux.memory;

import java.nio.ByteBuffer;

/** Recognises pages that hold nothing but zeros, which an image need not store. */
public final class ZeroPages {
    /** Bytes of a page. */
    public static final int PAGE = 4096;

    private ZeroPages() {}

    /**
     * Whether the {@link #PAGE} bytes of {@code buffer} at {@code offset} are all zero. Position and limit don't matter
     * and stay. Most pages that are not zero differ in the first bytes, which is checked first.
     */
    public static boolean isZero(ByteBuffer buffer, int offset) {
        if (buffer.getLong(offset) != 0) {
            return false;
        }
        for (int i = offset; i < offset + PAGE; i += 64) {
            long any = buffer.getLong(i)
                    | buffer.getLong(i + 8)
                    | buffer.getLong(i + 16)
                    | buffer.getLong(i + 24)
                    | buffer.getLong(i + 32)
                    | buffer.getLong(i + 40)
                    | buffer.getLong(i + 48)
                    | buffer.getLong(i + 56);
            if (any != 0) {
                return false;
            }
        }
        return true;
    }
}
