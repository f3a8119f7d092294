package io.stasis.tests.harness;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A self-checking program under the product's control, over all its lives. */
public final class Target {
    private final Stasis stasis;
    private final Program program;
    private final String name;
    private final Path directory;
    private final Path image;
    private final Progress progress;
    private Process process;
    private long pid;

    Target(Stasis stasis, Program program, String name, Path directory, Path image) {
        this.stasis = stasis;
        this.program = program;
        this.name = name;
        this.directory = directory;
        this.image = image;
        this.progress = new Progress(directory.resolve("progress"));
    }

    void launch(List<String> options) {
        var command = stasis.command("launch", "--name", name, "--dir", image().toString());
        command.addAll(options);
        command.add("--");
        command.addAll(program.commandLine(progress));
        process = stasis.start(command, out(), err());
        pid = process.pid();
    }

    void startAlone() {
        process = stasis.start(program.commandLine(progress), out(), err());
        pid = process.pid();
    }

    public String name() {
        return name;
    }

    /** The root process as the host knows it. */
    public long pid() {
        return pid;
    }

    public Progress progress() {
        return progress;
    }

    /** The computation's image directory. */
    public Path image() {
        return image;
    }

    Path directory() {
        return directory;
    }

    private Path out() {
        return directory.resolve("out");
    }

    private Path pidFile() {
        return directory.resolve("pid");
    }

    private Path err() {
        return directory.resolve("err");
    }

    /** Waits until the program has got that far, and sees that it found no fault in itself. */
    public void awaitTicks(long ticks) {
        Await.until(
                program + " has made " + ticks + " ticks",
                Await.PATIENCE,
                () -> {
                    progress.checkUnharmed();
                    boolean there = progress.ticks() >= ticks;
                    if (!there && !process.isAlive() && !ProcessTable.exists(pid)) {
                        throw new AssertionError(program + " ended with status " + process.exitValue() + " before tick "
                                + ticks + "\n" + story());
                    }
                    return there;
                },
                this::story);
    }

    /** Waits until the program has visibly gone on. */
    public void awaitMoreTicks() {
        awaitTicks(progress.ticks() + 5);
    }

    /** Waits until the program has written this line. */
    public void awaitLine(String line) {
        Await.until(
                program + " has written \"" + line + "\"",
                Await.PATIENCE,
                () -> {
                    progress.checkUnharmed();
                    return progress.lines().contains(line);
                },
                this::story);
    }

    /** Waits until a tick that was made once has been made again, in another life. */
    public void awaitTickAgain(long tick) {
        Await.until(
                program + " has made tick " + tick + " again",
                Await.PATIENCE,
                () -> {
                    progress.checkUnharmed();
                    return java.util.Collections.frequency(progress.lines(), "tick " + tick) > 1;
                },
                this::story);
    }

    /** A checkpoint after which the program runs on, which is not waited for. */
    public JsonNode checkpointOnly() {
        return checkpointWith();
    }

    /** A checkpoint after which the program runs on. Returns what the command reported of the generation. */
    public JsonNode checkpoint() {
        var generation = checkpointWith();
        awaitMoreTicks();
        return generation;
    }

    private JsonNode checkpointWith(String... options) {
        var arguments = new ArrayList<>(List.of("checkpoint", name, "--json"));
        arguments.addAll(List.of(options));
        var result = stasis.run(arguments.toArray(String[]::new)).expectSuccess();
        JsonNode generations = result.json().path("generations");
        if (generations.size() != 1) {
            throw new AssertionError("not one generation: " + result);
        }
        return generations.get(0);
    }

    /** A checkpoint with which the program ends. */
    public JsonNode checkpointAndKill() {
        var tree = ProcessTable.tree(pid);
        var generation = checkpointWith("--kill");
        awaitEnd();
        for (long member : tree) {
            Await.until(
                    "process " + member + " of the killed tree is gone",
                    () -> ProcessTable.state(member).orElse('Z') == 'Z');
        }
        return generation;
    }

    /** Restarts the newest generation in the foreground: the command goes on as long as the program. */
    public void restart(String... options) {
        restartOnly(options);
        awaitMoreTicks();
        // Another one than before where the program lives in a pid namespace.
        Await.until(program + " has a pid", Await.PATIENCE, () -> Files.exists(pidFile()), this::story);
        pid = Long.parseLong(Stasis.tail(pidFile(), 1).strip());
        if (!ProcessTable.tree(process.pid()).contains(pid)) {
            throw new AssertionError("process " + pid + " is no child of the restart command " + process.pid() + "\n"
                    + ProcessTable.describe(process.pid()));
        }
    }

    /** Starts the restart command and does not wait for anything. */
    public void restartOnly(String... options) {
        try {
            Files.deleteIfExists(pidFile());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        var command =
                new ArrayList<>(stasis.command("restart", "--pidfile", pidFile().toString()));
        command.addAll(List.of(options));
        command.add(image().toString());
        process = stasis.start(command, out(), err());
    }

    /** What a command line that restarts this target's image says, detached from the terminal. */
    public CommandResult restartDetached(String... options) {
        var arguments = new ArrayList<>(List.of("restart", "--detach", "--json"));
        arguments.addAll(List.of(options));
        arguments.add(image().toString());
        return stasis.run(arguments.toArray(String[]::new));
    }

    /** Lets the program end by itself; its status, its last checks and its count must be right. */
    public void finish() {
        end();
        progress.checkGapless();
    }

    /** Like {@link #finish}, for a program that went back to an older generation. */
    public void end() {
        progress.checkUnharmed();
        progress.stop();
        awaitEnd();
        progress.checkUnharmed();
        if (process.exitValue() != 42) {
            throw new AssertionError(program + " ended with status " + process.exitValue() + "\n" + story());
        }
        if (!progress.lines().getLast().equals("done")) {
            throw new AssertionError(program + " did not come to its end\n" + story());
        }
    }

    /** Waits until the program, or the command that restarted it, has ended. Returns its exit status. */
    public int awaitEnd() {
        if (process == null) {
            return 0;
        }
        Await.until(program + " has ended", Await.PATIENCE, () -> !process.isAlive(), this::story);
        return process.exitValue();
    }

    /** The way every program has to go: it runs on, is killed and restarted, killed and restarted again, and ends well. */
    public void liveThroughTwoRestarts() {
        checkpoint();
        checkpointAndKill();
        restart();
        checkpointAndKill();
        restart();
        stasis.run("verify", image().toString()).expectSuccess();
        finish();
    }

    /** Signals the root process. */
    public void signal(String signal) {
        try {
            new ProcessBuilder("kill", "-" + signal, Long.toString(pid)).start().waitFor(10, TimeUnit.SECONDS);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    String story() {
        return "---- " + name + ": " + program + ", pid " + pid + "\nprogress:\n" + progress.tail(6) + "\nprocesses:\n"
                + ProcessTable.describe(pid) + "stdout:\n" + Stasis.tail(out(), 20) + "stderr:\n"
                + Stasis.tail(err(), 20);
    }
}
