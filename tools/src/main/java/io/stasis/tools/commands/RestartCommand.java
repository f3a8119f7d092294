package io.stasis.tools.commands;

import io.stasis.client.Json;
import io.stasis.client.StasisClient;
import io.stasis.client.StasisClient.Restarted;
import io.stasis.image.seal.SigningKey;
import io.stasis.tools.StasisCommand;
import io.stasis.tools.launch.AgentStarter;
import io.stasis.tools.output.ProgressLine;
import io.stasis.tools.output.Text;
import io.stasis.tools.terminal.Foreground;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code stasis restart}. */
@Command(
        name = "restart",
        description = {
            "Makes a program again from its image; it goes on where it was.",
            "In the foreground, the default, the program is this command's child: it has the terminal, gets the signals that "
                    + "are sent to this command, and the command exits with its status."
        })
public final class RestartCommand extends StasisCommand {
    private enum Pids {
        KEEP,
        AUTO,
        NAMESPACE
    }

    @Parameters(paramLabel = "DIR", description = "Image directory.")
    private Path directory;

    @Option(
            names = "--generation",
            paramLabel = "N",
            description = "Take this generation. Default: the newest complete one.")
    private int generation;

    @Option(names = "--detach", description = "Return when the program runs; the agent looks after it.")
    private boolean detach;

    @Option(names = "--pidfile", paramLabel = "F", description = "Write the root process's pid to this file.")
    private Path pidFile;

    @Option(
            names = "--pids",
            paramLabel = "keep|auto|namespace",
            description = {
                "keep: the processes get the pids they had, or are not restarted. namespace: they get a pid namespace of "
                        + "their own, in which they see the pids they had. auto: that only where their pids are taken.",
                "Default: keep for a user who may choose pids (root), namespace for others."
            })
    private Pids pids;

    @Option(
            names = "--pty",
            description = {
                "Give the program a new pseudo-terminal, which this command connects with its own terminal or standard "
                        + "input and output.",
                "Default: only a program that led the session of its terminal."
            })
    private boolean pty;

    @Option(
            names = "--require-signature",
            paramLabel = "PUBKEY",
            description = "Refuse a generation that is not signed with the key whose public half is in this file.")
    private Path publicKey;

    @Option(names = "--json", description = "Report as JSON, with --detach.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        if (generation < 0) {
            throw usage("--generation takes a positive number");
        }
        if (pty && detach) {
            throw usage("--pty goes without --detach: this command is the other end of the terminal");
        }
        if (json && !detach) {
            throw usage("--json goes with --detach: in the foreground the output is the program's");
        }
        StasisClient agent = new AgentStarter(home()).connect();
        return detach ? detached(agent) : foreground(agent);
    }

    private StasisClient.Image image() throws IOException {
        return new StasisClient.Image(
                directory, generation, pids == null ? null : pids.name().toLowerCase(Locale.ROOT), pty, requiredKey());
    }

    private int detached(StasisClient agent) throws IOException {
        Restarted program;
        try (ProgressLine progress = new ProgressLine()) {
            program = agent.restartDetached(image(), progress);
        }
        writePid(program);
        if (json) {
            Map<String, Object> report = new LinkedHashMap<>();
            report.put("name", program.name());
            report.put("generation", program.generation());
            report.put("pid", program.pid());
            report.put("pids", program.pids());
            report.put("totalNanos", program.totalNanos());
            System.out.println(Json.write(report));
        } else {
            System.out.println(program.name() + ": generation " + program.generation() + " runs as process "
                    + program.pid() + ", " + Text.count(program.pids().size(), "process", "processes")
                    + ", restarted in " + Text.time(program.totalNanos()));
        }
        return 0;
    }

    private int foreground(StasisClient agent) throws IOException {
        Foreground foreground = new Foreground();
        int[] stub = new int[1];
        Restarted program;
        try (ProgressLine progress = new ProgressLine()) {
            program = agent.restart(
                    image(),
                    foreground.terminalPath(),
                    (path, onPty) -> stub[0] = foreground.spawn(path, onPty),
                    progress);
        } catch (RuntimeException e) {
            foreground.abandon(stub[0]);
            throw e;
        }
        writePid(program);
        byte[] settings = program.termios() == null ? null : Base64.getDecoder().decode(program.termios());
        return foreground.follow(program.pid(), program.foregroundGroup(), settings);
    }

    /** For the agent, or null. */
    private String requiredKey() {
        return publicKey == null
                ? null
                : Base64.getEncoder()
                        .encodeToString(SigningKey.readPublic(publicKey).getEncoded());
    }

    private void writePid(Restarted program) throws IOException {
        if (pidFile != null) {
            // Whoever waits for the file never sees it half written.
            Path written = pidFile.resolveSibling(pidFile.getFileName() + ".new");
            Files.writeString(written, program.pid() + "\n");
            Files.move(written, pidFile, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        }
    }
}
