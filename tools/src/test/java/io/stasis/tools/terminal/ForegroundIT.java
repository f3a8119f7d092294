package io.stasis.tools.terminal;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.client.FakeAgent;
import io.stasis.client.Json;
import io.stasis.tools.CommandRun;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * {@code stasis restart} in the foreground against a stand-in for the agent: its "restored" program is a script that the
 * command starts in the stub's place.
 */
class ForegroundIT {
    @TempDir
    Path directory;

    @Test
    void theCommandExitsWithTheProgramsStatus() throws Exception {
        assertThat(restart("#!/bin/sh\necho it runs\nexit 7\n")).isEqualTo(new CommandRun(7, "it runs\n", ""));
    }

    @Test
    void aSignalThatEndsTheProgramGives128PlusItsNumber() throws Exception {
        assertThat(restart("#!/bin/sh\nkill -9 $$\n").status()).isEqualTo(128 + 9);
    }

    @Test
    void theProgramInheritsOnlyTheThreeStandardDescriptors() throws Exception {
        CommandRun run = restart("#!/usr/bin/python3 -IS\nimport os\nprint(sorted(os.listdir('/proc/self/fd')))\n");
        // The fourth is the one that lists the directory.
        assertThat(run.output()).isEqualTo("['0', '1', '2', '3']\n");
    }

    @Test
    void thePidOfTheRootProcessIsWrittenToTheFile() throws Exception {
        Path pidFile = directory.resolve("pid");
        CommandRun run = restart("#!/bin/sh\necho $$\n", "--pidfile", pidFile.toString());
        assertThat(run.status()).isZero();
        assertThat(Files.readString(pidFile)).isEqualTo(run.output());
    }

    @Test
    void signalsSentToTheCommandReachTheProgram() throws Exception {
        Path output = directory.resolve("out");
        try (FakeAgent agent = agent(
                "#!/usr/bin/python3 -IS\nimport signal\ndef h(s, f):\n  print(signal.Signals(s).name, flush=True)\n"
                        + "names = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH', 'SIGCONT']\n"
                        + "for n in names: signal.signal(getattr(signal, n), h)\n"
                        + "print('ready', flush=True)\nwhile True: signal.pause()\n")) {
            Process command = start(agent, output);
            try {
                await(output, "ready\n");
                StringBuilder expected = new StringBuilder("ready\n");
                for (String signal : List.of("HUP", "INT", "QUIT", "USR1", "USR2", "WINCH", "CONT")) {
                    CommandRun.run(Map.of(), List.of("kill", "-" + signal, Long.toString(command.pid())));
                    await(
                            output,
                            expected.append("SIG").append(signal).append('\n').toString());
                }
                CommandRun.run(Map.of(), List.of("kill", "-TERM", Long.toString(command.pid())));
                assertThat(command.waitFor(30, TimeUnit.SECONDS)).isTrue();
                assertThat(command.exitValue()).isEqualTo(128 + 15);
            } finally {
                command.destroyForcibly();
            }
        }
    }

    @Test
    void onATerminalTheProgramStopsAndContinuesAsAJobOfTheShell() throws Exception {
        Path session = Path.of(
                ForegroundIT.class.getResource("/programs/job_control.py").toURI());
        Path program =
                Path.of(ForegroundIT.class.getResource("/programs/job.py").toURI());
        try (FakeAgent agent = agent(Files.readString(program))) {
            CommandRun run = CommandRun.run(
                    Map.of("STASIS_HOME", directory.toString()),
                    List.of(
                            "python3",
                            session.toString(),
                            System.getProperty("stasis.launcher"),
                            directory.toString()));
            assertThat(run.errors()).isEmpty();
            assertThat(run.status()).as(run.output()).isZero();
            assertThat(agent.received().getFirst().get("terminal").toString()).startsWith("/dev/pts/");
        }
    }

    private CommandRun restart(String program, String... options) throws Exception {
        try (FakeAgent agent = agent(program)) {
            Path images = Files.createDirectories(directory.resolve("x.ckpt"));
            String[] words = new String[options.length + 2];
            words[0] = "restart";
            System.arraycopy(options, 0, words, 1, options.length);
            words[options.length + 1] = images.toString();
            return CommandRun.stasis(agent.home().path(), words);
        }
    }

    private Process start(FakeAgent agent, Path output) throws Exception {
        Path images = Files.createDirectories(directory.resolve("x.ckpt"));
        return CommandRun.start(
                Map.of("STASIS_HOME", agent.home().path().toString()),
                List.of(System.getProperty("stasis.launcher"), "restart", images.toString()),
                output,
                directory.resolve("err"));
    }

    /** An agent that lets the command start {@code program} and calls it the restored root process. */
    private FakeAgent agent(String program) throws Exception {
        Path stub = Files.writeString(directory.resolve("stub"), program);
        assertThat(stub.toFile().setExecutable(true)).isTrue();
        return new FakeAgent(
                directory,
                Json.write(Map.of("spawn", Map.of("stub", stub))),
                FakeAgent.WAIT,
                "{\"result\":{\"name\":\"x\",\"generation\":1,\"pid\":$PID,\"pids\":[$PID],\"foregroundGroup\":$GROUP,"
                        + "\"termios\":null,\"totalNanos\":1}}");
    }

    private static void await(Path file, String content) throws Exception {
        Instant deadline = Instant.now().plus(Duration.ofSeconds(30));
        while (!Files.readString(file).equals(content)) {
            assertThat(Instant.now())
                    .as("output so far: " + Files.readString(file))
                    .isBefore(deadline);
            Thread.onSpinWait();
        }
    }
}
