package io.stasis.tools.launch;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.client.FakeAgent;
import io.stasis.tools.CommandRun;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code stasis launch} against a stand-in for the agent: what the program finds is what it would find without us. */
class LaunchIT {
    private static final String REGISTERED = "{\"result\":{\"name\":\"x\",\"dir\":\"/d\"}}";

    @TempDir
    Path directory;

    @Test
    void theProgramFindsItselfAsIfItHadBeenStartedDirectly() throws Exception {
        try (FakeAgent agent = new FakeAgent(directory.resolve("."), REGISTERED)) {
            String launcher = System.getProperty("stasis.launcher");
            Path report = program("report.py");
            String directly = insideOddParent(report.toString(), "a", "b c", "\u00e9");
            String launched =
                    insideOddParent(launcher, "launch", "--name", "x", "--", report.toString(), "a", "b c", "\u00e9");
            assertThat(launched.replaceAll("STASIS_COOKIE=[0-9a-f]{32}\n", "")).isEqualTo(directly);
            assertThat(launched).contains("STASIS_COOKIE=");
            Map<String, Object> request = agent.received().getLast();
            assertThat(launched).contains("pid is the parent's child: True");
            assertThat(request).containsEntry("request", "register").containsEntry("name", "x");
            assertThat(request).containsEntry("command", List.of(report.toString(), "a", "b c", "\u00e9"));
            assertThat(launched).contains("STASIS_COOKIE=" + request.get("cookie"));
        }
    }

    @Test
    void theNameIsTheProgramsAndTheImagesGoBesideTheUser() throws Exception {
        try (FakeAgent agent = new FakeAgent(directory, REGISTERED)) {
            CommandRun run = CommandRun.stasis(directory, "launch", "--", "sh", "-c", "exit 7");
            assertThat(run.status()).isEqualTo(7);
            assertThat(agent.received().getLast())
                    .containsEntry("name", "sh")
                    .containsEntry("dir", Path.of("sh.ckpt").toAbsolutePath().toString());
        }
    }

    @Test
    void aProgramThatIsNotThereGives127AndIsNotRegistered() throws Exception {
        try (FakeAgent agent = new FakeAgent(directory, REGISTERED)) {
            CommandRun run = CommandRun.stasis(directory, "launch", "--", "no-such-program");
            assertThat(run.status()).isEqualTo(127);
            assertThat(run.errors()).startsWith("stasis: cannot run no-such-program: ENOENT");
            assertThat(agent.received()).isEmpty();
        }
    }

    @Test
    void aFileThatCannotBeExecutedGives126() throws Exception {
        Path file = Files.writeString(directory.resolve("data"), "x");
        CommandRun run = CommandRun.stasis(directory, "launch", "--", file.toString());
        assertThat(run.status()).isEqualTo(126);
        assertThat(run.errors()).contains("EACCES");
    }

    @Test
    void aScriptWithoutAnInterpreterLineIsRunByTheShell() throws Exception {
        try (FakeAgent agent = new FakeAgent(directory, REGISTERED)) {
            Path script = Files.writeString(directory.resolve("script"), "echo from the script $1\n");
            assertThat(script.toFile().setExecutable(true)).isTrue();
            CommandRun run = CommandRun.stasis(directory, "launch", "--", script.toString(), "one");
            assertThat(run).isEqualTo(new CommandRun(0, "from the script one\n", ""));
            assertThat(agent.received()).hasSize(1);
        }
    }

    /** Runs a command as a child of a process with unusual signals, limits, descriptors and environment. */
    private String insideOddParent(String... command) throws Exception {
        List<String> words =
                new ArrayList<>(List.of("python3", program("odd_parent.py").toString()));
        words.addAll(List.of(command));
        CommandRun run = CommandRun.run(Map.of("STASIS_HOME", directory.toString()), words);
        assertThat(run.errors()).isEmpty();
        assertThat(run.status()).isZero();
        return run.output();
    }

    private static Path program(String name) throws Exception {
        Path file = Path.of(LaunchIT.class.getResource("/programs/" + name).toURI());
        assertThat(file.toFile().setExecutable(true)).isTrue();
        return file;
    }
}
