package io.stasis.image;

import static org.assertj.core.api.Assertions.assertThat;

import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.LongRange;
import net.jqwik.api.constraints.Size;

class Crc32cTest {
    @Property(tries = 300)
    void theChecksumOfTwoPiecesIsThatOfTheWhole(
            @ForAll @Size(max = 5000) byte[] bytes, @ForAll @LongRange(min = 0, max = 5000) long cut) {
        int at = (int) Math.min(cut, bytes.length);
        int first = Crc32c.of(bytes, 0, at);
        int second = Crc32c.of(bytes, at, bytes.length - at);
        assertThat(Crc32c.combine(first, second, bytes.length - at)).isEqualTo(Crc32c.of(bytes, 0, bytes.length));
    }

    @Property(tries = 100)
    void lengthsBeyondFourGigabytesAddUp(
            @ForAll int a,
            @ForAll int b,
            @ForAll int c,
            @ForAll @LongRange(min = 0, max = 1L << 50) long bLength,
            @ForAll @LongRange(min = 0, max = 1L << 50) long cLength) {
        int left = Crc32c.combine(Crc32c.combine(a, b, bLength), c, cLength);
        int right = Crc32c.combine(a, Crc32c.combine(b, c, cLength), bLength + cLength);
        assertThat(left).isEqualTo(right);
    }
}
