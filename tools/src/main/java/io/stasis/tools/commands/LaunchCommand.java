package io.stasis.tools.commands;

import io.stasis.client.ExitCode;
import io.stasis.client.StasisClient;
import io.stasis.client.StasisException;
import io.stasis.image.seal.SigningKey;
import io.stasis.tools.StasisCommand;
import io.stasis.tools.launch.AgentStarter;
import io.stasis.tools.launch.Exec;
import io.stasis.tools.launch.InheritedDescriptors;
import io.stasis.tools.launch.ProgramEnvironment;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code stasis launch}: registers with the agent, then becomes the program by execve(2). */
@Command(
        name = "launch",
        description = {
            "Runs a program so that it can be checkpointed.",
            "The command becomes the program: same pid, parent, terminal, descriptors, signals and limits; nothing stays in "
                    + "between. The agent is started if none runs."
        })
public final class LaunchCommand extends StasisCommand {
    private static final int START_TIME = 22;

    @Option(
            names = "--dir",
            paramLabel = "DIR",
            description = "Image directory. Default: NAME.ckpt in the current directory.")
    private Path directory;

    @Option(
            names = "--name",
            paramLabel = "NAME",
            description =
                    "Name of the computation. Default: the program's file name, with a number when that is taken.")
    private String name;

    @Option(names = "--interval", paramLabel = "SECONDS", description = "Checkpoint every so many seconds.")
    private long interval;

    @Option(
            names = "--sign",
            paramLabel = "KEY",
            description = "Sign every generation with the key in this file, see 'stasis keygen'.")
    private Path key;

    @Parameters(arity = "1..*", paramLabel = "CMD", description = "The program and its arguments, after '--'.")
    private List<String> command;

    private final InheritedDescriptors inherited;

    /** @param inherited descriptors that the program gets; null when it is not going to be run */
    public LaunchCommand(InheritedDescriptors inherited) {
        this.inherited = inherited;
    }

    @Override
    public Integer call() throws IOException {
        if (interval < 0) {
            throw usage("--interval takes a number of seconds that is not negative");
        }
        if (inherited == null) {
            throw usage("'launch' must be the first word after 'stasis'");
        }
        if (key != null) {
            SigningKey.read(key); // what is wrong with it is told before the program starts
        }
        ProgramEnvironment environment = ProgramEnvironment.take();
        Exec exec = new Exec(command.size(), environment, inherited);
        try {
            List<byte[]> candidates = exec.candidates();
            String cookie = cookie();
            register(new AgentStarter(home()).connect(), cookie);
            exec.become(candidates, cookie);
            throw new IllegalStateException("execve returned");
        } catch (Exec.CannotRun e) {
            System.err.println("stasis: " + e.getMessage());
            return e.status();
        }
    }

    private void register(StasisClient agent, String cookie) throws IOException {
        String wanted = name != null
                ? name
                : Path.of(command.getFirst()).getFileName().toString().replaceAll("[^A-Za-z0-9._+-]", "_");
        String attempt = wanted;
        for (int number = 2; ; number++) {
            Path images = directory != null ? directory : Path.of(attempt + ".ckpt");
            try {
                agent.register(
                        attempt,
                        images.toAbsolutePath().normalize(),
                        interval,
                        ProcessHandle.current().pid(),
                        startTime(),
                        command,
                        cookie,
                        key);
                return;
            } catch (StasisException e) {
                if (!e.code().equals("name-taken") || name != null) {
                    throw e;
                }
                attempt = wanted + "-" + number;
            }
        }
    }

    /** Field 22 of proc_pid_stat(5); it stays the same through execve. */
    private static long startTime() throws IOException {
        String stat = Files.readString(Path.of("/proc/self/stat"));
        // The name in field 2 may hold blanks and parentheses; field 3 follows the last parenthesis.
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return Long.parseLong(fields[START_TIME - 3]);
    }

    private static String cookie() throws IOException {
        try (FileInputStream random = new FileInputStream("/dev/urandom")) {
            byte[] bytes = random.readNBytes(16);
            if (bytes.length != 16) {
                throw new StasisException("failed", ExitCode.FAILED, "/dev/urandom gave too few bytes");
            }
            return HexFormat.of().formatHex(bytes);
        }
    }
}
