package io.stasis.tools.output;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class TextTest {
    @Test
    void bytesHaveADecimalUnit() {
        assertThat(Text.bytes(0)).isEqualTo("0 B");
        assertThat(Text.bytes(999)).isEqualTo("999 B");
        assertThat(Text.bytes(18_300_000)).isEqualTo("18.3 MB");
        assertThat(Text.bytes(999_999)).isEqualTo("1.0 MB");
    }

    @Test
    void timesHaveTheUnitThatFits() {
        assertThat(Text.time(4_100_000)).isEqualTo("4.1 ms");
        assertThat(Text.time(1_250_000_000)).isEqualTo("1.25 s");
        assertThat(Text.time(200_000_000_000L)).isEqualTo("3 min 20 s");
        assertThat(Text.age(Duration.ofHours(52))).isEqualTo("2 d 4 h");
    }

    @Test
    void tableColumnsAreAsWideAsTheirWidestCell() {
        assertThat(Text.table(List.of("NAME", "N"), List.of(List.of("counter", "1"), List.of("x", "22"))))
                .isEqualTo("NAME     N\ncounter  1\nx        22\n");
    }
}
