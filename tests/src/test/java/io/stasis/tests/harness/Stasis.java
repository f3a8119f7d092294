package io.stasis.tests.harness;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * The product as a user has it: the command, and an agent with a state directory of its own, which the tests of a class
 * share.
 *
 * <pre>{@code
 * @RegisterExtension
 * static final Stasis stasis = new Stasis(Account.ROOT);
 *
 * @Test
 * void aCounterGoesOn() {
 *     var target = stasis.launch(Programs.c("counter"));
 *     target.checkpointAndKill();
 *     target.restart();
 *     target.finish();
 * }
 * }</pre>
 *
 * All that is started carries a mark in its environment; after each test what carries the mark, but for the agent, is
 * killed, after the class the agent too, each by its pid and start time. When a test fails, the tails of the agent's
 * log, of the event log and of the programs' output are printed.
 */
public final class Stasis
        implements BeforeAllCallback, AfterAllCallback, AfterEachCallback, AfterTestExecutionCallback {
    private static final String MARK = "STASIS_TEST_MARK";

    private final Account account;
    private final Map<String, String> environment = new HashMap<>();
    private final List<Target> targets = new ArrayList<>();
    private List<String> prefix = List.of();
    private final Thread interrupted = new Thread(() -> marked().forEach(ProcessTable::kill));
    private final String mark = UUID.randomUUID().toString();
    private Path base;
    private Path executable;
    private Path programs;
    private int launched;

    public Stasis(Account account) {
        this.account = account;
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        open();
    }

    /** For use outside of JUnit; {@link #close} ends it. */
    public void open() {
        try {
            base = Files.createTempDirectory("st-");
            Files.setPosixFilePermissions(base, PosixFilePermissions.fromString("rwxr-xr-x"));
            Files.createDirectories(work());
            Files.createDirectories(home());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        // A build that is interrupted leaves nothing behind either.
        Runtime.getRuntime().addShutdownHook(interrupted);
        environment.put("STASIS_HOME", home().resolve("s").toString());
        environment.put("HOME", home().toString());
        environment.put("JAVA_HOME", System.getProperty("java.home"));
        environment.put("PYTHONDONTWRITEBYTECODE", "1");
        environment.put(MARK, mark);
        account.own(work());
        account.own(home());
        Path root = Path.of(System.getProperty("stasis.root", ".."))
                .toAbsolutePath()
                .normalize();
        executable = root.resolve("stasis");
        programs = Programs.built();
        if (account.uid() != Account.current() && !account.reaches(executable)) {
            copyProduct(root);
        }
        // Now, and not in the background of the first commands.
        await(command("make-caches"), Await.PATIENCE.multipliedBy(3)).expectSuccess();
    }

    /** For a user who cannot reach the source tree. */
    private void copyProduct(Path root) {
        try {
            Path copy = base.resolve("product");
            Files.createDirectories(copy.resolve("tools/target"));
            Files.copy(
                    root.resolve("stasis"), copy.resolve("stasis"), java.nio.file.StandardCopyOption.COPY_ATTRIBUTES);
            DirectoryTree.copy(root.resolve("tools/target/stasis"), copy.resolve("tools/target/stasis"));
            executable = copy.resolve("stasis");
            programs = base.resolve("programs");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Runs on another file system, as another host, ...: a variable for all commands from now on. */
    public Stasis withEnvironment(String name, String value) {
        environment.put(name, value);
        return this;
    }

    /** Runs all commands from now on by way of another, such as {@code nsenter}, which must become them by execve(2). */
    public Stasis within(String... wrapper) {
        prefix = List.of(wrapper);
        return this;
    }

    public Account account() {
        return account;
    }

    /** Where programs write and images are kept. */
    public Path work() {
        return base.resolve("work");
    }

    private Path home() {
        return base.resolve("home");
    }

    /** The agent's state directory. */
    public Path state() {
        return Path.of(environment.get("STASIS_HOME"));
    }

    /** Runs a command of the product to its end. */
    public CommandResult run(String... arguments) {
        return run(List.of(), List.of(arguments));
    }

    /** @param prefix what runs it, such as {@code ip netns exec NAME} */
    public CommandResult run(List<String> prefix, List<String> arguments) {
        var command = new ArrayList<>(prefix);
        command.add(executable.toString());
        command.addAll(arguments);
        return await(command, Await.PATIENCE);
    }

    private CommandResult await(List<String> command, Duration patience) {
        Path out = fresh("out");
        Path err = fresh("err");
        long started = System.nanoTime();
        Process process = start(command, out, err);
        try {
            if (!process.waitFor(patience.toSeconds(), TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
                throw new AssertionError("no end of " + String.join(" ", command) + "\n" + Files.readString(out) + "\n"
                        + Files.readString(err));
            }
            var wall = Duration.ofNanos(System.nanoTime() - started);
            var result = new CommandResult(
                    List.copyOf(command), process.exitValue(), Files.readString(out), Files.readString(err), wall);
            Files.delete(out);
            Files.delete(err);
            return result;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }

    /** Runs a Python driver of src/test/python, which runs the product itself: DRIVER STASIS DIRECTORY ARGUMENT... */
    public CommandResult drive(String driver, String... arguments) {
        var command = new ArrayList<>(Programs.python(driver).command());
        command.add(executable.toString());
        command.add(work().toString());
        command.addAll(List.of(arguments));
        return await(command, Await.PATIENCE.multipliedBy(5));
    }

    private Path fresh(String suffix) {
        try {
            return Files.createTempFile(base, "", "." + suffix);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Starts any command as the account, with /dev/null as input. */
    Process start(List<String> command, Path out, Path err) {
        var whole = new ArrayList<>(prefix);
        whole.addAll(account.run(command));
        var builder = new ProcessBuilder(whole)
                .redirectInput(new File("/dev/null"))
                .redirectOutput(ProcessBuilder.Redirect.appendTo(out.toFile()))
                .redirectError(ProcessBuilder.Redirect.appendTo(err.toFile()))
                .directory(work().toFile());
        builder.environment().remove("XDG_STATE_HOME");
        builder.environment().remove("JAVA_TOOL_OPTIONS");
        builder.environment().putAll(environment);
        try {
            return builder.start();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Starts a program with {@code stasis launch} and waits for its first tick. */
    public Target launch(Program program) {
        return launchWith(List.of(), program);
    }

    /** @param options of {@code stasis launch} */
    public Target launchWith(List<String> options, Program program) {
        var target = prepare(program);
        target.launch(options);
        target.awaitTicks(1);
        return target;
    }

    /** Starts a program as part of a computation that several programs make, with one image directory. */
    public Target launch(Program program, String name, Path image) {
        var target = prepare(program, name, image);
        target.launch(List.of());
        target.awaitTicks(1);
        return target;
    }

    /** Starts a command of the product that goes on until it is ended, such as an agent in the foreground. */
    public Process start(String... arguments) {
        return start(command(arguments), work().resolve("foreground.out"), work().resolve("foreground.err"));
    }

    /** Starts a program without the product. */
    public Target startAlone(Program program) {
        var target = prepare(program);
        target.startAlone();
        target.awaitTicks(1);
        return target;
    }

    private Target prepare(Program program) {
        return prepare(program, "t" + ++launched, null);
    }

    private Target prepare(Program program, String name, Path image) {
        if (!programs.equals(Programs.built())) {
            program = forSomebodyElse(program);
        }
        Path directory = work().resolve(name);
        try {
            Files.createDirectories(directory);
            // Before the program has them: a restart opens them as the program's user, who must be their owner.
            for (String output : List.of("out", "err")) {
                if (Files.notExists(directory.resolve(output))) {
                    Files.createFile(directory.resolve(output));
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        account.own(directory);
        var target = new Target(this, program, name, directory, image == null ? directory.resolve("image") : image);
        targets.add(target);
        return target;
    }

    private Program forSomebodyElse(Program program) {
        DirectoryTree.delete(programs);
        DirectoryTree.copy(Programs.built(), programs);
        Path sources = base.resolve("sources");
        DirectoryTree.delete(sources);
        DirectoryTree.copy(Programs.sources(), sources);
        return new Program(
                program.name(),
                program.command().stream()
                        .map(word -> word.replace(Programs.built().toString(), programs.toString())
                                .replace(Programs.sources().toString(), sources.toString()))
                        .toList(),
                program.arguments());
    }

    List<String> command(String... arguments) {
        var command = new ArrayList<String>();
        command.add(executable.toString());
        command.addAll(List.of(arguments));
        return command;
    }

    /** The agent's pid; 0 when none runs. */
    public long agent() {
        var status = run("agent", "--status", "--json");
        return status.exit() == 0 ? status.json().path("pid").asLong() : 0;
    }

    /** What carries this class's mark, with the agent. */
    public List<Long> marked() {
        return ProcessTable.withEnvironment(MARK, mark);
    }

    private static boolean isAgent(long pid) {
        try {
            String command = Files.readString(Path.of("/proc/" + pid + "/cmdline"));
            return command.contains("io.stasis.tools.Main\0agent\0")
                    || command.contains("io.stasis.tools.Main\0coordinator\0");
        } catch (IOException | RuntimeException e) {
            return false;
        }
    }

    @Override
    public void afterTestExecution(ExtensionContext context) {
        context.getExecutionException().ifPresent(e -> System.err.println(story(context.getDisplayName())));
    }

    /** What happened, for the reader of a failed test. */
    public String story(String title) {
        var text = new StringBuilder("==== " + title + ": what happened ====\n");
        for (Target target : targets) {
            text.append(target.story());
        }
        text.append("---- agent.log\n").append(tail(state().resolve("agent.log"), 80));
        try {
            var log = run("log");
            text.append("---- stasis log\n").append(tail(log.out(), 80)).append(log.err());
        } catch (AssertionError | UncheckedIOException e) {
            text.append("no log: ").append(e.getMessage());
        }
        return text.append("====\n").toString();
    }

    static String tail(Path file, int lines) {
        try {
            return Files.exists(file) ? tail(Files.readString(file), lines) : "(no " + file + ")\n";
        } catch (IOException e) {
            return e + "\n";
        }
    }

    private static String tail(String text, int count) {
        var lines = text.lines().toList();
        return String.join("\n", lines.subList(Math.max(0, lines.size() - count), lines.size())) + "\n";
    }

    @Override
    public void afterEach(ExtensionContext context) {
        endPrograms();
    }

    /** Kills all programs and removes their files; the agent stays. */
    public void endPrograms() {
        killUntilGone(pid -> !isAgent(pid));
        for (Target target : targets) {
            target.awaitEnd();
            DirectoryTree.delete(target.directory());
        }
        targets.clear();
    }

    private void killUntilGone(java.util.function.LongPredicate which) {
        Await.until("all is killed that was started", () -> {
            var left = marked().stream().filter(which::test).toList();
            left.forEach(ProcessTable::kill);
            return left.isEmpty();
        });
    }

    @Override
    public void afterAll(ExtensionContext context) {
        close();
    }

    public void close() {
        endPrograms();
        if (state().resolve("agent.sock").toFile().exists()) {
            run("agent", "--stop");
        }
        killUntilGone(pid -> true);
        Runtime.getRuntime().removeShutdownHook(interrupted);
        DirectoryTree.delete(base);
    }
}
