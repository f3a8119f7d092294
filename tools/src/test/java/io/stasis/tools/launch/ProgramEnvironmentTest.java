package io.stasis.tools.launch;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;

class ProgramEnvironmentTest {
    private static ProgramEnvironment of(String... entries) {
        return ProgramEnvironment.of((String.join("\0", entries) + "\0").getBytes(StandardCharsets.ISO_8859_1));
    }

    private static List<String> texts(List<byte[]> entries) {
        return entries.stream()
                .map(entry -> new String(entry, StandardCharsets.ISO_8859_1))
                .toList();
    }

    @Test
    void entriesKeepTheirOrderBytesAndOddNames() {
        ProgramEnvironment environment = of("B=2", "BASH_FUNC_f%%=() {  :\n}", "A=\u00ff", "=x", "noequals");
        assertThat(texts(environment.entries()))
                .containsExactly("B=2", "BASH_FUNC_f%%=() {  :\n}", "A=\u00ff", "=x", "noequals");
    }

    @Test
    void theCookieReplacesThatOfAnOuterComputation() {
        ProgramEnvironment environment = of("STASIS_COOKIE=old", "A=1").withCookie("new");
        assertThat(texts(environment.entries())).containsExactly("A=1", "STASIS_COOKIE=new");
    }

    @Test
    void theLaunchersOwnVariableIsLeftOut() {
        assertThat(texts(of("STASIS_ENVIRONMENT=/f", "A=1").entries())).containsExactly("A=1");
    }

    @Test
    void thePathIsSplitAsExecvpDoes() {
        assertThat(texts(of("PATH=/a::/b").path())).containsExactly("/a", "", "/b");
        assertThat(texts(of("A=1").path())).containsExactly("/bin", "/usr/bin");
    }
}
