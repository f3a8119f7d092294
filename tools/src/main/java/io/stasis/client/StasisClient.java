package io.stasis.client;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * Talks to the agent of this user on this host.
 *
 * <pre>{@code
 * StasisClient stasis = StasisClient.connect();
 * Generation made = stasis.checkpoint(Target.name("counter"), null, false, progress -> {}).getFirst();
 * System.out.println(made.path());
 * }</pre>
 *
 * <p>Every request opens a connection of its own, so one client serves any number of threads. Failures are
 * {@link StasisException}s. The protocol is one JSON object a line over a Unix-domain socket; {@link #request} sends any
 * request and returns the agent's result as it stands.
 */
public final class StasisClient {
    private static final int RETRIES = 10;
    /** The first wait; each is longer than the one before by as much. */
    private static final long RETRY_NANOS = 20_000_000L;

    private final StateDirectory home;

    private StasisClient(StateDirectory home) {
        this.home = home;
    }

    /**
     * A client of the agent that serves now.
     *
     * @throws StasisException code "no-agent" when none does, "version" when it is of another version
     */
    public static StasisClient connect() {
        return connect(StateDirectory.current());
    }

    public static StasisClient connect(StateDirectory home) {
        Connection.open(home).close();
        return new StasisClient(home);
    }

    /** A client that finds out at its first request whether an agent serves. */
    public static StasisClient of(StateDirectory home) {
        return new StasisClient(home);
    }

    /** Which computation a request is about. */
    public sealed interface Target {
        record Name(String name) implements Target {}

        record Pid(int pid) implements Target {}

        record All() implements Target {}

        static Target name(String name) {
            return new Name(name);
        }

        static Target pid(int pid) {
            return new Pid(pid);
        }
    }

    /**
     * What the agent is at.
     *
     * @param phase "suspend", "drain", "write", "refill", "resume", "commit", ...
     * @param processes processes done in this phase
     * @param bytes bytes written or read
     */
    public record Progress(String phase, long processes, long bytes) {}

    /** A committed generation of one computation. Times in nanoseconds. */
    public record Generation(
            String name,
            int generation,
            Path directory,
            Path path,
            long processes,
            long threads,
            long pauseNanos,
            long totalNanos,
            long bytes) {
        static Generation of(Map<String, Object> result) {
            return new Generation(
                    Json.string(result, "name", "?"),
                    (int) Json.number(result, "generation", 0),
                    Path.of(Json.string(result, "dir", "")),
                    Path.of(Json.string(result, "path", "")),
                    Json.number(result, "processes", 0),
                    Json.number(result, "threads", 0),
                    Json.number(result, "pauseNanos", 0),
                    Json.number(result, "totalNanos", 0),
                    Json.number(result, "bytes", 0));
        }
    }

    /**
     * What to restart.
     *
     * @param generation 0 for the newest complete one
     * @param pids "keep" for the image's pids, "namespace" for a pid namespace of its own, "auto" for that where pids are
     *     taken, null for that where this user may not choose pids
     * @param pty whether the program gets a pseudo-terminal of its own in any case
     * @param requiredKey base64 of the public key that must have signed the generation, or null
     */
    public record Image(Path directory, int generation, String pids, boolean pty, String requiredKey) {}

    /** Starts the restore stub of a restart. */
    public interface Spawner {
        /**
         * @param stub path of the program
         * @param pty whether on a pseudo-terminal of its own, which whoever starts it connects with its own terminal
         * @return its pid; it must be a child of this process
         */
        int spawn(String stub, boolean pty);
    }

    /**
     * A restarted computation.
     *
     * @param pid root process
     * @param foregroundGroup process group that had its terminal's foreground; 0 for none
     * @param termios the terminal's {@code struct termios2}, base64, or null
     */
    public record Restarted(
            String name,
            int generation,
            int pid,
            List<Integer> pids,
            int foregroundGroup,
            String termios,
            long totalNanos) {
        static Restarted of(Map<String, Object> result) {
            return new Restarted(
                    Json.string(result, "name", "?"),
                    (int) Json.number(result, "generation", 0),
                    (int) Json.number(result, "pid", 0),
                    numbers(result.get("pids")),
                    (int) Json.number(result, "foregroundGroup", 0),
                    Json.string(result, "termios", null),
                    Json.number(result, "totalNanos", 0));
        }
    }

    /** What {@code register} answered: the computation's name and image directory. */
    public record Registered(String name, Path directory) {}

    /**
     * Tells the agent of a program about to start.
     *
     * @param directory image directory, or null for the agent's choice
     * @param intervalSeconds seconds between automatic checkpoints; 0 for none
     * @param startTime field 22 of /proc/PID/stat
     * @param cookie value of STASIS_COOKIE in the program's environment
     * @param key file of the key that generations are signed with, or null
     */
    public Registered register(
            String name,
            Path directory,
            long intervalSeconds,
            long pid,
            long startTime,
            List<String> command,
            String cookie,
            Path key) {
        Map<String, Object> fields = new LinkedHashMap<>();
        put(fields, "name", name);
        put(fields, "dir", directory);
        put(fields, "interval", intervalSeconds > 0 ? intervalSeconds : null);
        put(fields, "pid", pid);
        put(fields, "startTime", startTime);
        put(fields, "command", command);
        put(fields, "cookie", cookie);
        put(fields, "sign", key == null ? null : key.toAbsolutePath());
        put(fields, "cwd", workingDirectory());
        Map<String, Object> result = request("register", fields, progress -> {});
        return new Registered(Json.string(result, "name", name), Path.of(Json.string(result, "dir", "")));
    }

    /**
     * Checkpoints and returns when the generations are committed.
     *
     * @param directory image directory, or null for the computation's own
     * @param kill end the program instead of letting it run on
     */
    public List<Generation> checkpoint(Target target, Path directory, boolean kill, Consumer<Progress> progress) {
        return generations(request("checkpoint", checkpointFields(target, directory, kill), progress));
    }

    /** The fields of a checkpoint request, for {@link #request}. */
    public static Map<String, Object> checkpointFields(Target target, Path directory, boolean kill) {
        Map<String, Object> fields = fields(target);
        put(fields, "dir", directory == null ? null : directory.toAbsolutePath());
        put(fields, "kill", kill);
        put(fields, "cwd", workingDirectory());
        return fields;
    }

    /** The generations in the result of a checkpoint request. */
    public static List<Generation> generations(Map<String, Object> result) {
        return Json.objects(result.get("generations")).stream()
                .map(Generation::of)
                .toList();
    }

    /** Restarts without a terminal: the agent owns the program. */
    public Restarted restartDetached(Image image, Consumer<Progress> progress) {
        Map<String, Object> fields = restartFields(image, null);
        fields.put("detach", true);
        return restarted(request("restart", fields, progress));
    }

    /**
     * Restarts the program as a child of this process.
     *
     * @param terminal path of the caller's terminal, or null
     * @param spawner starts the restore stub
     */
    public Restarted restart(Image image, String terminal, Spawner spawner, Consumer<Progress> progress) {
        Map<String, Object> fields = restartFields(image, terminal);
        fields.put("detach", false);
        try (Connection connection = begin("restart", fields)) {
            while (true) {
                Map<String, Object> line = connection.receive();
                if (line.get("spawn") instanceof Map<?, ?> order) {
                    Map<String, Object> stub = Json.object(order);
                    int pid = spawner.spawn(Json.string(stub, "stub", ""), stub.get("pty") == Boolean.TRUE);
                    connection.send(Map.of("spawned", Map.of("pid", pid)));
                } else if (line.containsKey("result")) {
                    return restarted(Json.object(line.get("result")));
                } else {
                    report(line, progress);
                }
            }
        }
    }

    /** The result of a restart request. */
    public static Restarted restarted(Map<String, Object> result) {
        return Restarted.of(result);
    }

    /** Ends a computation: SIGTERM, after the grace SIGKILL; {@code now} is SIGKILL at once. */
    public List<Integer> kill(Target target, boolean now, long graceMillis) {
        Map<String, Object> fields = fields(target);
        fields.put("now", now);
        fields.put("graceMillis", graceMillis);
        return numbers(request("kill", fields, progress -> {}).get("killed"));
    }

    /** Ends the agent; running programs are not touched. Works for an agent of another version as well. */
    public void stop() {
        request("stop", Map.of(), progress -> {});
    }

    /**
     * Sends one request and returns its result. Where the agent answers that something is under way that passes (code
     * "busy"), it is sent again after a moment, ten times.
     *
     * @param progress told what the agent is at
     */
    public Map<String, Object> request(String name, Map<String, Object> fields, Consumer<Progress> progress) {
        for (int attempt = 1; ; attempt++) {
            try {
                return requestOnce(name, fields, progress);
            } catch (StasisException e) {
                if (!e.code().equals("busy") || attempt > RETRIES) {
                    throw e;
                }
                LockSupport.parkNanos(attempt * RETRY_NANOS);
            }
        }
    }

    private Map<String, Object> requestOnce(String name, Map<String, Object> fields, Consumer<Progress> progress) {
        try (Connection connection = begin(name, fields)) {
            while (true) {
                Map<String, Object> line = connection.receive();
                if (line.containsKey("result")) {
                    return Json.object(line.get("result"));
                }
                report(line, progress);
            }
        }
    }

    private Connection begin(String name, Map<String, Object> fields) {
        Connection connection = Connection.open(home);
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("request", name);
        line.putAll(fields);
        connection.send(line);
        return connection;
    }

    private static void report(Map<String, Object> line, Consumer<Progress> progress) {
        if (line.get("progress") instanceof Map<?, ?> fields) {
            Map<String, Object> values = Json.object(fields);
            progress.accept(new Progress(
                    Json.string(values, "phase", ""),
                    Json.number(values, "processes", 0),
                    Json.number(values, "bytes", 0)));
        }
    }

    private static Map<String, Object> restartFields(Image image, String terminal) {
        Map<String, Object> fields = new LinkedHashMap<>();
        put(fields, "dir", image.directory().toAbsolutePath());
        put(fields, "generation", image.generation() > 0 ? image.generation() : null);
        put(fields, "pids", image.pids());
        put(fields, "requireSignature", image.requiredKey());
        put(fields, "pty", image.pty() ? true : null);
        put(fields, "clientPid", ProcessHandle.current().pid());
        put(fields, "terminal", terminal);
        return fields;
    }

    private static Map<String, Object> fields(Target target) {
        Map<String, Object> fields = new LinkedHashMap<>();
        switch (target) {
            case Target.Name(String name) -> fields.put("name", name);
            case Target.Pid(int pid) -> fields.put("pid", pid);
            case Target.All() -> fields.put("all", true);
        }
        return fields;
    }

    private static void put(Map<String, Object> fields, String name, Object value) {
        if (value != null) {
            fields.put(name, value);
        }
    }

    private static List<Integer> numbers(Object list) {
        return Json.list(list).stream()
                .filter(Number.class::isInstance)
                .map(pid -> ((Number) pid).intValue())
                .toList();
    }

    private static Path workingDirectory() {
        return Path.of("").toAbsolutePath();
    }
}
