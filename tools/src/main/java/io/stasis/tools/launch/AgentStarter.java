package io.stasis.tools.launch;

import io.stasis.client.ExitCode;
import io.stasis.client.StasisClient;
import io.stasis.client.StasisException;
import io.stasis.client.StateDirectory;
import java.io.File;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Starts the agent when none serves. The agent gets a session of its own, {@code agent.log} as its output, and none of
 * this process's descriptors.
 *
 * <p>Two commands that find no agent at the same time start one: a file lock decides, the other waits for it.
 */
public final class AgentStarter {
    private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(60);
    private static final int LAST_LINES = 8;

    private final StateDirectory home;

    public AgentStarter(StateDirectory home) {
        this.home = home;
    }

    /**
     * A client of the running agent, which is started when there is none.
     *
     * @throws StasisException code "no-agent" with the last lines of its log when it does not serve in 60 seconds
     */
    public StasisClient connect() {
        try {
            return StasisClient.connect(home);
        } catch (StasisException e) {
            if (!e.code().equals("no-agent")) {
                throw e;
            }
        }
        return start();
    }

    private StasisClient start() {
        try {
            makeDirectory();
            try (FileChannel channel =
                            FileChannel.open(home.startLock(), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                    FileLock lock = channel.lock()) {
                if (serves() && lock.isValid()) {
                    return StasisClient.of(home);
                }
                long logged = Files.exists(home.agentLog()) ? Files.size(home.agentLog()) : 0;
                return await(spawn(), logged);
            }
        } catch (IOException e) {
            throw new StasisException(
                    "no-agent", ExitCode.NO_AGENT, "cannot start the agent in " + home.path() + ": " + reason(e), e);
        }
    }

    private void makeDirectory() throws IOException {
        var privately = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
        if (!Files.isDirectory(home.path(), LinkOption.NOFOLLOW_LINKS)) {
            Files.createDirectories(home.path(), privately);
        }
    }

    private boolean serves() {
        try {
            StasisClient.connect(home);
            return true;
        } catch (StasisException e) {
            if (e.code().equals("no-agent")) {
                return false;
            }
            throw e;
        }
    }

    private Process spawn() throws IOException {
        String launcher = System.getProperty("stasis.launcher", "stasis");
        ProcessBuilder builder = new ProcessBuilder(List.of(launcher, "agent", "--daemon"));
        builder.environment().remove(ProgramEnvironment.COOKIE);
        builder.environment().remove("STASIS_ENVIRONMENT");
        builder.environment().put("STASIS_HOME", home.path().toString());
        builder.directory(new File("/"));
        builder.redirectInput(new File("/dev/null"));
        builder.redirectErrorStream(true);
        builder.redirectOutput(ProcessBuilder.Redirect.appendTo(home.agentLog().toFile()));
        return builder.start();
    }

    private StasisClient await(Process agent, long logged) throws IOException {
        long deadline = System.nanoTime() + LIMIT_NANOS;
        while (!serves()) {
            try {
                // The launcher ends at once when it has started the agent in the background.
                if (agent.waitFor(10, TimeUnit.MILLISECONDS)) {
                    if (agent.exitValue() != 0) {
                        throw failed("the launcher ended with status " + agent.exitValue(), logged);
                    }
                    TimeUnit.MILLISECONDS.sleep(10);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw failed("interrupted while the agent started", logged);
            }
            if (System.nanoTime() > deadline) {
                throw failed("the agent did not answer within 60 seconds", logged);
            }
        }
        return StasisClient.of(home);
    }

    private StasisException failed(String what, long logged) throws IOException {
        Path log = home.agentLog();
        StringBuilder message = new StringBuilder(what).append("; see ").append(log);
        if (Files.exists(log)) {
            byte[] all = Files.readAllBytes(log);
            int from = (int) Math.min(logged, all.length);
            List<String> lines = new String(all, from, all.length - from, java.nio.charset.StandardCharsets.UTF_8)
                    .lines()
                    .toList();
            lines.subList(Math.max(0, lines.size() - LAST_LINES), lines.size())
                    .forEach(line -> message.append("\n  ").append(line));
        }
        return new StasisException("no-agent", ExitCode.NO_AGENT, message.toString());
    }

    private static String reason(IOException e) {
        return e.getClass().getSimpleName() + ": " + e.getMessage();
    }
}
