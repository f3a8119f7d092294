package io.stasis.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.stasis.client.StasisClient.Generation;
import io.stasis.client.StasisClient.Progress;
import io.stasis.client.StasisClient.Target;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StasisClientTest {
    private static final String GENERATION =
            "{\"name\":\"counter\",\"generation\":3,\"dir\":\"/d\",\"path\":\"/d/0003\","
                    + "\"processes\":4,\"threads\":12,\"pauseNanos\":4100000,\"totalNanos\":9000000,\"bytes\":18300000}";

    @TempDir
    Path directory;

    @Test
    void aCheckpointReportsProgressAndReturnsItsGenerations() throws IOException {
        try (FakeAgent agent = new FakeAgent(
                directory,
                "{\"progress\":{\"phase\":\"write\",\"processes\":3,\"bytes\":17}}",
                "{\"result\":{\"generations\":[" + GENERATION + "]}}")) {
            List<Progress> progress = new ArrayList<>();
            List<Generation> made = StasisClient.connect(agent.home())
                    .checkpoint(Target.name("counter"), Path.of("/d"), true, progress::add);
            assertThat(progress).containsExactly(new Progress("write", 3, 17));
            assertThat(made)
                    .containsExactly(new Generation(
                            "counter", 3, Path.of("/d"), Path.of("/d/0003"), 4, 12, 4_100_000, 9_000_000, 18_300_000));
            assertThat(agent.received().getLast())
                    .containsEntry("request", "checkpoint")
                    .containsEntry("name", "counter")
                    .containsEntry("dir", "/d")
                    .containsEntry("kill", true);
        }
    }

    @Test
    void anErrorOfTheAgentCarriesItsSentenceAndExitCode() throws IOException {
        try (FakeAgent agent = new FakeAgent(
                directory, "{\"error\":{\"code\":\"unsupported\",\"message\":\"process 7: a socket\",\"exit\":4}}")) {
            assertThatExceptionOfType(StasisException.class)
                    .isThrownBy(() -> StasisClient.of(agent.home()).kill(Target.pid(7), true, 0))
                    .withMessage("process 7: a socket")
                    .satisfies(e -> assertThat(e.exitCode()).isEqualTo(ExitCode.UNSUPPORTED))
                    .satisfies(e -> assertThat(e.code()).isEqualTo("unsupported"));
        }
    }

    @Test
    void anAgentOfAnotherVersionIsNamedWithTheWayToReplaceIt() throws IOException {
        try (FakeAgent agent = new FakeAgent(directory).ofVersion("9.9.9")) {
            assertThatExceptionOfType(StasisException.class)
                    .isThrownBy(() -> StasisClient.connect(agent.home()))
                    .withMessageContainingAll("9.9.9", Protocol.VERSION, "stasis agent --stop")
                    .satisfies(e -> assertThat(e.exitCode()).isEqualTo(ExitCode.NO_AGENT));
        }
    }

    @Test
    void withoutAnAgentTheSocketIsNamed() {
        assertThatExceptionOfType(StasisException.class)
                .isThrownBy(() -> StasisClient.connect(new StateDirectory(directory)))
                .withMessageContaining(directory.resolve("agent.sock").toString())
                .satisfies(e -> assertThat(e.code()).isEqualTo("no-agent"));
    }

    @Test
    void anAgentThatHangsUpInTheMiddleIsReportedWithItsLog() throws IOException {
        try (FakeAgent agent = new FakeAgent(directory, "{\"progress\":{\"phase\":\"write\"}}")) {
            assertThatExceptionOfType(StasisException.class)
                    .isThrownBy(() -> StasisClient.of(agent.home()).request("ps", Map.of(), progress -> {}))
                    .withMessageContaining("agent.log")
                    .satisfies(e -> assertThat(e.code()).isEqualTo("agent-lost"));
        }
    }

    @Test
    void aRestartSpawnsTheStubAndReportsItsPid() throws IOException {
        try (FakeAgent agent = new FakeAgent(
                directory,
                "{\"spawn\":{\"stub\":\"/tmp/stub\"}}",
                FakeAgent.WAIT,
                "{\"result\":{\"name\":\"counter\",\"generation\":2,\"pid\":99,\"pids\":[99,100],\"foregroundGroup\":99,"
                        + "\"termios\":null,\"totalNanos\":5}}")) {
            List<String> spawned = new ArrayList<>();
            var program = StasisClient.of(agent.home())
                    .restart(
                            new StasisClient.Image(Path.of("/d"), 2, null, false, null),
                            "/dev/pts/3",
                            (stub, pty) -> {
                                spawned.add(stub);
                                return 4712;
                            },
                            progress -> {});
            assertThat(spawned).containsExactly("/tmp/stub");
            assertThat(program.pids()).containsExactly(99, 100);
            assertThat(program.foregroundGroup()).isEqualTo(99);
            assertThat(program.termios()).isNull();
            assertThat(agent.received().getFirst())
                    .containsEntry("generation", 2L)
                    .containsEntry("terminal", "/dev/pts/3")
                    .containsEntry("detach", false);
            assertThat(agent.received().getLast()).isEqualTo(Map.of("spawned", Map.of("pid", 4712L)));
        }
    }

    @Test
    void theStateDirectoryFollowsTheEnvironment() {
        assertThat(StateDirectory.of(Map.of("STASIS_HOME", "/s")).path()).isEqualTo(Path.of("/s"));
        assertThat(StateDirectory.of(Map.of("XDG_STATE_HOME", "/x", "STASIS_HOST", "h"))
                        .path())
                .isEqualTo(Path.of("/x/stasis/h"));
        assertThat(StateDirectory.of(Map.of("HOME", "/home/u", "STASIS_HOST", "h"))
                        .path())
                .isEqualTo(Path.of("/home/u/.local/state/stasis/h"));
    }

    @Test
    void aSocketPathThatIsTooLongIsNamedWithTheRemedy() {
        assertThatExceptionOfType(StasisException.class)
                .isThrownBy(() -> StasisClient.connect(new StateDirectory(Path.of("/" + "x".repeat(120)))))
                .withMessageContaining("STASIS_HOME");
    }
}
