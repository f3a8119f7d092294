package io.stasis.image;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/**
 * CRC-32C of bytes, and of the concatenation of two pieces whose checksums are known. The second is what lets one pass
 * over the pages give both the checksum of each run and that of the whole file, and lets several threads read parts of
 * one file.
 *
 * <p>Appending n bytes multiplies the checksum so far, read as a polynomial over GF(2), by x^8n modulo the polynomial
 * of CRC-32C (RFC 3720, section 12.1); the method is that of zlib's {@code crc32_combine}.
 */
final class Crc32c {
    /** Bit reversed: the highest bit is the coefficient of x^0. */
    private static final int POLYNOMIAL = 0x82F63B78;

    private static final int ONE = 1 << 31;
    /** x^(2^i). */
    private static final int[] POWERS = new int[Long.SIZE + 3];

    static {
        POWERS[0] = ONE >>> 1;
        for (int i = 1; i < POWERS.length; i++) {
            POWERS[i] = multiply(POWERS[i - 1], POWERS[i - 1]);
        }
    }

    private Crc32c() {}

    /** Checksum of what remains in the buffer, which stays as it is. */
    static int of(ByteBuffer bytes) {
        CRC32C crc = new CRC32C();
        crc.update(bytes.duplicate());
        return (int) crc.getValue();
    }

    static int of(byte[] bytes, int from, int length) {
        CRC32C crc = new CRC32C();
        crc.update(bytes, from, length);
        return (int) crc.getValue();
    }

    /** Checksum of one piece and a second one of {@code secondLength} bytes behind it. */
    static int combine(int first, int second, long secondLength) {
        int factor = ONE;
        int power = 3; // x^8 a byte
        for (long left = secondLength; left != 0; left >>>= 1, power++) {
            if ((left & 1) != 0) {
                factor = multiply(POWERS[power], factor);
            }
        }
        return multiply(factor, first) ^ second;
    }

    private static int multiply(int a, int b) {
        int product = 0;
        int shifted = b;
        for (int left = a; left != 0; left <<= 1) {
            if (left < 0) {
                product ^= shifted;
            }
            shifted = (shifted & 1) == 0 ? shifted >>> 1 : shifted >>> 1 ^ POLYNOMIAL;
        }
        return product;
    }
}
