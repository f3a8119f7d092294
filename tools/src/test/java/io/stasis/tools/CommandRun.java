package io.stasis.tools;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** What a finished command left: its status and what it wrote. */
public record CommandRun(int status, String output, String errors) {
    private static final long LIMIT_SECONDS = 60;

    /** Runs the packaged {@code stasis} with a state directory of the test's own. */
    public static CommandRun stasis(Path stateDirectory, String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(System.getProperty("stasis.launcher")));
        command.addAll(List.of(arguments));
        return run(Map.of("STASIS_HOME", stateDirectory.toString()), command);
    }

    /** Runs any command and waits for its end. */
    public static CommandRun run(Map<String, String> environment, List<String> command) throws Exception {
        Path output = Files.createTempFile("command", ".out");
        Path errors = Files.createTempFile("command", ".err");
        try {
            Process process = start(environment, command, output, errors);
            return finish(process, output, errors);
        } finally {
            Files.delete(output);
            Files.delete(errors);
        }
    }

    /** Starts a command with empty input and its output in files. */
    public static Process start(Map<String, String> environment, List<String> command, Path output, Path errors)
            throws IOException {
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().putAll(environment);
        builder.redirectInput(Path.of("/dev/null").toFile());
        builder.redirectOutput(output.toFile());
        builder.redirectError(errors.toFile());
        return builder.start();
    }

    private static CommandRun finish(Process process, Path output, Path errors) throws Exception {
        if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            throw new AssertionError("the command did not end within " + LIMIT_SECONDS + " s: " + process.info());
        }
        return new CommandRun(
                process.exitValue(),
                Files.readString(output, StandardCharsets.UTF_8),
                Files.readString(errors, StandardCharsets.UTF_8));
    }
}
