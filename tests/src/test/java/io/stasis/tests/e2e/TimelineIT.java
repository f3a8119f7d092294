package io.stasis.tests.e2e;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Programs;
import io.stasis.tests.harness.Stasis;
import io.stasis.tests.harness.Target;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** What {@code stasis replay} makes of a log for a browser and for Perfetto. */
class TimelineIT {
    private static final Path BROWSER = Path.of("/usr/bin/chromium");

    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ROOT);

    @TempDir
    Path directory;

    private Target checkpointed() {
        var target = stasis.launch(Programs.c("pipes"));
        target.checkpoint();
        return target;
    }

    @Test
    void thePageShowsProcessesThreadsConnectionsAndTheCriticalPath() throws Exception {
        var target = checkpointed();
        Path page = directory.resolve("page.html");
        stasis.run("replay", target.image().toString(), "--html", page.toString())
                .expectSuccess();
        String text = Files.readString(page);
        assertThat(text)
                .doesNotContain("http:", "https:", "src=", "url(", "@import")
                .contains("default-src 'none'", "critical", "thread stands still", target.name());
        target.finish();

        assumeTrue(Files.isExecutable(BROWSER), "chromium is not installed");
        String shown = shown(page);
        assertThat(count(shown, "class=\"bar suspend")).isGreaterThanOrEqualTo(3);
        assertThat(count(shown, "class=\"row process\"")).isGreaterThanOrEqualTo(2);
        assertThat(count(shown, "class=\"row thread\"")).isGreaterThanOrEqualTo(2);
        assertThat(count(shown, " critical\"")).isGreaterThanOrEqualTo(5);
        assertThat(shown).contains("in clock_nanosleep", "pipe:[");
        // The script ran: it makes the ticks of the axis, and keeps to the policy that allows nothing from outside.
        String axis = shown.substring(shown.indexOf("row axis"), shown.indexOf("row phases"));
        assertThat(count(axis, "<span style=\"left: ")).isGreaterThan(2);
    }

    private String shown(Path page) throws IOException, InterruptedException {
        Path dom = directory.resolve("dom.html");
        Process browser = new ProcessBuilder(
                        BROWSER.toString(),
                        "--headless",
                        "--no-sandbox",
                        "--disable-gpu",
                        "--user-data-dir=" + directory.resolve("browser"),
                        "--dump-dom",
                        page.toUri().toString())
                .redirectOutput(dom.toFile())
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        try {
            assertThat(browser.waitFor(2, TimeUnit.MINUTES))
                    .as("the browser ends")
                    .isTrue();
        } finally {
            browser.descendants().forEach(ProcessHandle::destroyForcibly);
            browser.destroyForcibly();
        }
        return Files.readString(dom, StandardCharsets.UTF_8);
    }

    private static long count(String text, String what) {
        return Pattern.compile(Pattern.quote(what)).matcher(text).results().count();
    }

    @Test
    void theTraceFollowsTheTraceEventFormat() throws IOException {
        var target = checkpointed();
        Path file = directory.resolve("trace.json");
        stasis.run("replay", target.image().toString(), "--trace", file.toString())
                .expectSuccess();
        JsonNode events = new ObjectMapper().readTree(file.toFile()).path("traceEvents");
        Map<String, TreeMap<Double, Double>> byThread = new HashMap<>();
        var names = new TreeSet<String>();
        var named = new TreeSet<Long>();
        for (JsonNode event : events) {
            assertThat(event.path("pid").isIntegralNumber()).isTrue();
            assertThat(event.path("tid").isIntegralNumber()).isTrue();
            assertThat(event.path("name").isTextual()).isTrue();
            switch (event.path("ph").asText()) {
                case "M" -> named.add(event.path("pid").asLong());
                case "X" -> {
                    assertThat(event.path("ts").isNumber()).isTrue();
                    assertThat(event.path("dur").asDouble()).isNotNegative();
                    names.add(event.path("cat").asText() + " "
                            + event.path("name").asText());
                    byThread.computeIfAbsent(event.path("pid") + "/" + event.path("tid"), t -> new TreeMap<>())
                            .put(
                                    event.path("ts").asDouble(),
                                    event.path("ts").asDouble()
                                            + event.path("dur").asDouble());
                }
                default -> throw new AssertionError("unexpected event " + event);
            }
        }
        assertThat(names).contains("operation checkpoint", "phase suspend", "step drain", "step write", "thread still");
        assertThat(named).contains(0L, target.pid());
        byThread.forEach((thread, spans) -> nested(thread, List.copyOf(spans.entrySet())));
        target.finish();
    }

    /** Events of one thread lie in each other or behind each other, never across. */
    private static void nested(String thread, List<Map.Entry<Double, Double>> spans) {
        for (int i = 0; i < spans.size(); i++) {
            for (int j = i + 1; j < spans.size(); j++) {
                double start = spans.get(j).getKey();
                double end = spans.get(j).getValue();
                double outer = spans.get(i).getValue();
                assertThat(start >= outer - 0.002 || end <= outer + 0.002)
                        .as("%s: %s and %s", thread, spans.get(i), spans.get(j))
                        .isTrue();
            }
        }
    }
}
