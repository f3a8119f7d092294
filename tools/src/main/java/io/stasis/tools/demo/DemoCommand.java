package io.stasis.tools.demo;

import io.stasis.client.ExitCode;
import io.stasis.client.StasisClient;
import io.stasis.client.StasisClient.Generation;
import io.stasis.client.StasisClient.Target;
import io.stasis.client.StasisException;
import io.stasis.client.StateDirectory;
import io.stasis.tools.StasisCommand;
import io.stasis.tools.commands.CheckpointCommand;
import io.stasis.tools.launch.AgentStarter;
import io.stasis.tools.output.Text;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code stasis demo}: a counting program goes through two generations and is none the wiser. */
@Command(
        name = "demo",
        description = {
            "Starts a counting program (threads, a child process, a pipe), checkpoints, kills and restarts it twice, and checks "
                    + "that the count went on without a gap.",
            "Uses an agent and a directory of its own and removes both. Exit code 0 when all went well, else 1."
        })
public final class DemoCommand extends StasisCommand {
    private static final String NAME = "counter";
    private static final int STEP = 100;
    private static final int RESTARTS = 2;
    private static final long END_SECONDS = 30;

    @Option(names = "--keep", description = "Keep the directory with images and logs.")
    private boolean keep;

    private Path directory;
    private Path images;
    private CountFile count;
    private Process program;

    @Override
    public Integer call() throws IOException, InterruptedException {
        directory = Files.createTempDirectory("stasis-demo");
        images = directory.resolve(NAME + ".ckpt");
        count = new CountFile(directory.resolve("count"));
        StateDirectory home = new StateDirectory(directory.resolve("state"));
        boolean done = false;
        try {
            StasisClient agent = new AgentStarter(home).connect();
            done = run(agent);
            return done ? ExitCode.OK : ExitCode.FAILED;
        } catch (IllegalStateException e) {
            throw new StasisException("demo", ExitCode.FAILED, "the demonstration failed: " + e.getMessage(), e);
        } finally {
            end(home);
            if (keep || !done) {
                System.out.println("Images and logs are kept in " + directory);
            } else {
                delete(directory);
            }
        }
    }

    private boolean run(StasisClient agent) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("launch", "--name", NAME, "--dir", images.toString(), "--"));
        command.addAll(program());
        start(command);
        int reached = count.await(STEP, program);
        tell("it counts: 1 ... " + reached);
        for (int restart = 1; restart <= RESTARTS; restart++) {
            Generation running = checkpoint(agent, false);
            reached = count.await(count.last() + STEP, program);
            tell("it ran on: ... " + reached);
            Generation last = checkpoint(agent, true);
            awaitEnd();
            int stopped = count.last();
            tell("it is gone; its last number is " + stopped);
            if (last.generation() != running.generation() + 1) {
                throw new IllegalStateException(
                        "generation " + last.generation() + " followed " + running.generation());
            }
            long started = System.nanoTime();
            start(List.of("restart", images.toString()));
            count.await(stopped + 1, program);
            tell("it counts on after " + Text.time(System.nanoTime() - started) + ", the command's own start included");
            reached = count.await(stopped + STEP, program);
            tell("... " + (stopped + 1) + " ... " + reached);
        }
        say("stasis kill " + NAME);
        agent.kill(Target.name(NAME), false, TimeUnit.SECONDS.toMillis(END_SECONDS));
        int status = awaitEnd();
        return verdict(status);
    }

    private boolean verdict(int status) throws IOException {
        int gap = count.firstGap();
        int last = count.numbers().size();
        tell("it ended with status " + status);
        if (status == 0 && gap == 0) {
            System.out.println("The count went from 1 to " + last + " without a gap, through "
                    + Text.count(RESTARTS, "restart", "restarts") + ".");
            return true;
        }
        System.out.println(
                gap == 0 ? "The program found a mistake itself." : "The count is wrong at number " + gap + ".");
        return false;
    }

    private Generation checkpoint(StasisClient agent, boolean kill) {
        say("stasis checkpoint " + (kill ? "--kill " : "") + NAME);
        Generation made =
                agent.checkpoint(Target.name(NAME), null, kill, progress -> {}).getFirst();
        tell(CheckpointCommand.describe(made));
        return made;
    }

    /** Starts a stasis command in the background; the launched or restarted program takes its place or is its child. */
    private void start(List<String> arguments) throws IOException {
        say("stasis " + String.join(" ", arguments));
        List<String> command = new ArrayList<>(List.of(System.getProperty("stasis.launcher", "stasis")));
        command.addAll(arguments);
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("STASIS_HOME", directory.resolve("state").toString());
        builder.redirectInput(new java.io.File("/dev/null"));
        builder.redirectOutput(
                ProcessBuilder.Redirect.appendTo(directory.resolve("output").toFile()));
        builder.redirectErrorStream(true);
        program = builder.start();
    }

    /** Python's counter when there is Python, else Java's. */
    private List<String> program() throws IOException {
        String file = directory.resolve("count").toString();
        for (String place :
                System.getenv().getOrDefault("PATH", "/usr/bin:/bin").split(":")) {
            Path python = Path.of(place, "python3");
            if (Files.isExecutable(python)) {
                return List.of(python.toString(), unpack("counter.py"), file);
            }
        }
        return List.of(System.getProperty("java.home") + "/bin/java", "-Xint", "-Xmx64m", unpack("Counter.java"), file);
    }

    private String unpack(String name) throws IOException {
        Path file = directory.resolve(name);
        try (InputStream resource = DemoCommand.class.getResourceAsStream(name)) {
            Files.copy(resource, file);
        }
        return file.toString();
    }

    private int awaitEnd() throws IOException, InterruptedException {
        if (!program.waitFor(END_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the program did not end within " + END_SECONDS + " seconds");
        }
        return program.exitValue();
    }

    /** Ends what this demonstration started. */
    private void end(StateDirectory home) {
        if (program != null && program.isAlive()) {
            program.descendants().forEach(ProcessHandle::destroyForcibly);
            program.destroyForcibly();
        }
        try {
            StasisClient.of(home).stop();
        } catch (StasisException e) {
            System.err.println("stasis: the demonstration's agent could not be ended: " + e.getMessage());
        }
    }

    private static void delete(Path tree) throws IOException {
        Files.walkFileTree(tree, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.deleteIfExists(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(Path file, IOException e) {
                // The agent removes its socket at the same time.
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path directory, IOException e) throws IOException {
                Files.deleteIfExists(directory);
                return FileVisitResult.CONTINUE;
            }
        });
    }

    private void say(String command) {
        System.out.println("$ " + command.replace(directory.toString() + "/", ""));
    }

    private void tell(String line) {
        System.out.println("  " + line.replace(directory.toString() + "/", ""));
    }
}
