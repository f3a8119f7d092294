package io.stasis.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonTest {
    @Test
    void whatIsWrittenIsReadBack() {
        Map<String, Object> object = new LinkedHashMap<>();
        object.put("text", "a \"quoted\" back\\slash, a\nline, \u0001 and \ud83d\ude00 é");
        object.put("number", Long.MIN_VALUE);
        object.put("fraction", 0.25);
        object.put("truth", true);
        object.put("nothing", null);
        object.put("list", Arrays.asList(1L, List.of(), Map.of(), "x"));
        String line = Json.write(object);
        assertThat(line).doesNotContain("\n");
        assertThat(Json.read(line)).isEqualTo(object);
    }

    @Test
    void blanksBetweenTokensDoNotMatter() {
        assertThat(Json.read(" { \"a\" : [ 1 , 2 ] } ")).isEqualTo(Map.of("a", List.of(1L, 2L)));
    }

    @Test
    void aPathIsWrittenAsAString() {
        assertThat(Json.write(java.nio.file.Path.of("/a/b"))).isEqualTo("\"/a/b\"");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "{",
                "[1,",
                "{\"a\"}",
                "{\"a\":1,}",
                "\"open",
                "\"\\x\"",
                "nul",
                "1 2",
                "--1",
                "{a:1}",
                "\"\\u12g4\""
            })
    void whatIsNoJsonIsRefused(String text) {
        assertThatIllegalArgumentException().isThrownBy(() -> Json.read(text)).withMessageContaining("no JSON");
    }

    @Test
    void deepNestingIsRefusedInsteadOfOverflowingTheStack() {
        assertThatIllegalArgumentException().isThrownBy(() -> Json.read("[".repeat(100_000)));
    }
}
