package io.stasis.client;

import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/**
 * Where the agent of one user on one host keeps its socket, event log and own log: {@code $STASIS_HOME}, else
 * {@code $XDG_STATE_HOME/stasis/HOST} with {@code ~/.local/state} for an unset XDG_STATE_HOME. The host is
 * {@code $STASIS_HOST}, else the kernel's host name.
 */
public record StateDirectory(Path path) {
    /** The longest path a Unix-domain socket address holds, see unix(7). */
    private static final int LONGEST_SOCKET_PATH = 107;

    /** The state directory of this process's environment. */
    public static StateDirectory current() {
        return of(System.getenv());
    }

    /** Name of this host: STASIS_HOST, or the kernel's. */
    public static String hostName() {
        return host(System.getenv());
    }

    static StateDirectory of(Map<String, String> environment) {
        String home = environment.getOrDefault("STASIS_HOME", "");
        if (!home.isEmpty()) {
            return new StateDirectory(Path.of(home).toAbsolutePath());
        }
        String state = environment.getOrDefault("XDG_STATE_HOME", "");
        Path base = state.startsWith("/")
                ? Path.of(state)
                : Path.of(environment.getOrDefault("HOME", System.getProperty("user.home")), ".local", "state");
        return new StateDirectory(base.resolve("stasis").resolve(host(environment)));
    }

    private static String host(Map<String, String> environment) {
        String host = environment.getOrDefault("STASIS_HOST", "");
        if (!host.isEmpty()) {
            return host;
        }
        try {
            return Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
        } catch (IOException e) {
            throw new StasisException(
                    "host",
                    ExitCode.FAILED,
                    "cannot read the host name from /proc/sys/kernel/hostname: set STASIS_HOST",
                    e);
        }
    }

    public Path socket() {
        return path.resolve("agent.sock");
    }

    public Path eventLog() {
        return path.resolve("events.log");
    }

    public Path agentLog() {
        return path.resolve("agent.log");
    }

    /** Held while a command starts the agent, so that two commands do not start two. */
    public Path startLock() {
        return path.resolve("start.lock");
    }

    UnixDomainSocketAddress address() {
        if (socket().toString().getBytes(java.nio.charset.StandardCharsets.UTF_8).length > LONGEST_SOCKET_PATH) {
            throw new StasisException(
                    "no-agent",
                    ExitCode.NO_AGENT,
                    "the socket path " + socket() + " is longer than the kernel allows (" + LONGEST_SOCKET_PATH
                            + " bytes): set STASIS_HOME to a shorter directory");
        }
        return UnixDomainSocketAddress.of(socket());
    }
}
