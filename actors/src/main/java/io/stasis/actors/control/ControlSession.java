package io.stasis.actors.control;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.stasis.actors.Agent;
import io.stasis.actors.Answer;
import io.stasis.actors.Requests;
import io.stasis.actors.journal.OpenLogs;
import io.stasis.engine.CheckpointRequest;
import io.stasis.engine.Engine;
import io.stasis.engine.EngineException;
import io.stasis.engine.PidChoice;
import io.stasis.engine.RestartOptions;
import io.stasis.engine.lifecycle.ComputationLifecycle.Tree;
import io.stasis.image.FormatVersion;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** One connection of the control protocol: a greeting, one request, its answers. */
final class ControlSession {
    private static final int PROTOCOL = 1;
    private static final long DEFAULT_GRACE_MILLIS = 10_000;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Agent agent;
    private final Engine engine;
    private final SocketChannel channel;
    private final BufferedReader reader;
    private final Requests requests;

    ControlSession(Agent agent, Engine engine, SocketChannel channel) {
        this.agent = agent;
        this.engine = engine;
        this.channel = channel;
        this.reader =
                new BufferedReader(new InputStreamReader(Channels.newInputStream(channel), StandardCharsets.UTF_8));
        this.requests = new Requests(agent.coordinator(), agent.system());
    }

    void run() throws IOException {
        JsonNode hello = read();
        if (hello == null || !greet(hello.path("hello"))) {
            return;
        }
        JsonNode request = read();
        if (request != null) {
            serve(request);
        }
    }

    private JsonNode read() throws IOException {
        String line = reader.readLine();
        if (line == null) {
            return null;
        }
        try {
            return JSON.readTree(line);
        } catch (JsonProcessingException e) {
            error("usage", 2, "the request is no JSON object: " + e.getOriginalMessage());
            return null;
        }
    }

    private void send(String key, Object value) throws IOException {
        ByteBuffer line =
                ByteBuffer.wrap((JSON.writeValueAsString(Map.of(key, value)) + "\n").getBytes(StandardCharsets.UTF_8));
        while (line.hasRemaining()) {
            channel.write(line);
        }
    }

    private void error(String code, int exit, String message) throws IOException {
        Map<String, Object> error = new LinkedHashMap<>();
        error.put("code", code);
        error.put("message", message);
        error.put("exit", exit);
        send("error", error);
    }

    private boolean greet(JsonNode hello) throws IOException {
        String version = hello.path("version").asText();
        boolean same = version.equals(Agent.VERSION)
                && hello.path("protocol").asInt() == PROTOCOL
                && hello.path("format").asInt() == FormatVersion.CURRENT;
        if (!same) {
            error(
                    "version",
                    3,
                    "the command is version " + version + " (protocol "
                            + hello.path("protocol").asInt() + ", format "
                            + hello.path("format").asInt() + ") and the running agent is version " + Agent.VERSION
                            + " (protocol " + PROTOCOL + ", format " + FormatVersion.CURRENT
                            + "); run `stasis agent --stop`, and the next command starts the right one");
            return false;
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("version", Agent.VERSION);
        answer.put("protocol", PROTOCOL);
        answer.put("format", FormatVersion.CURRENT);
        answer.put("pid", ProcessHandle.current().pid());
        answer.put("host", agent.config().host());
        send("hello", answer);
        return true;
    }

    private void serve(JsonNode request) throws IOException {
        try {
            switch (request.path("request").asText()) {
                case "register" -> register(request);
                case "checkpoint" -> checkpoint(request);
                case "restart" -> restart(request);
                case "ps" -> ps();
                case "kill" -> kill(request);
                case "status" -> status();
                case "check" -> check(request);
                case "stop" -> {
                    send("result", Map.of());
                    agent.stop();
                }
                default -> error("usage", 2, "unknown request " + request.path("request"));
            }
        } catch (EngineException e) {
            refused(Requests.refusal(e));
        } catch (RuntimeException e) {
            org.slf4j.LoggerFactory.getLogger(ControlSession.class).error("request {}", request, e);
            refused(Requests.refusal(e));
        }
    }

    private void refused(Answer.Refused why) throws IOException {
        error(why.code(), why.exit(), why.message());
    }

    private static String text(JsonNode node, String field) {
        JsonNode value = node.path(field);
        return value.isMissingNode() || value.isNull() ? null : value.asText();
    }

    private void register(JsonNode request) throws IOException {
        List<String> command = new ArrayList<>();
        request.path("command").forEach(word -> command.add(word.asText()));
        int pid = request.path("pid").asInt();
        String name = text(request, "name");
        if (name == null) {
            name = (command.isEmpty() ? "program" : Path.of(command.getFirst()).getFileName()) + "-" + pid;
        }
        String directory = text(request, "dir");
        if (directory == null) {
            String cwd = text(request, "cwd");
            directory = Path.of(cwd == null ? "/" : cwd, name + ".ckpt").toString();
        }
        Tree tree = new Tree(
                agent.config().host(), pid, request.path("startTime").asLong(), text(request, "cookie"), command);
        Answer answer =
                requests.register(name, directory, request.path("interval").asInt(0), text(request, "sign"), tree);
        if (answer instanceof Answer.Registered(String given, String where)) {
            Map<String, Object> result = new LinkedHashMap<>();
            result.put("name", given);
            result.put("dir", where);
            result.put("computation", given);
            send("result", result);
        } else {
            unexpected(answer);
        }
    }

    private void unexpected(Answer answer) throws IOException {
        refused(answer instanceof Answer.Refused why ? why : new Answer.Refused("failed", 1, "unexpected " + answer));
    }

    private void checkpoint(JsonNode request) throws IOException {
        List<String> names = new ArrayList<>();
        if (request.path("all").asBoolean()) {
            if (!(requests.list() instanceof Answer.Listed(List<String> hosts, List<Answer.Described> all))) {
                refused(new Answer.Refused("failed", 1, "the coordinator does not answer"));
                return;
            }
            all.forEach(computation -> names.add(computation.name()));
        } else {
            names.add(text(request, "name"));
        }
        List<Map<String, Object>> generations = new ArrayList<>();
        for (String name : names) {
            Answer answer = requests.checkpoint(
                    agent.config().host(),
                    name,
                    request.path("pid").asInt(),
                    text(request, "dir"),
                    request.path("cwd").asText("/"),
                    request.path("kill").asBoolean(),
                    text(request, "sign"));
            if (!(answer instanceof Answer.Checkpointed checkpointed)) {
                unexpected(answer);
                return;
            }
            generations.add(describe(checkpointed));
        }
        send("result", Map.of("generations", generations));
    }

    private static Map<String, Object> describe(Answer.Checkpointed done) {
        var generation = done.generation();
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("name", done.name());
        result.put("generation", generation.number());
        result.put("dir", done.directory());
        result.put("path", generation.path());
        result.put("processes", generation.processes());
        result.put("threads", generation.threads());
        result.put("pauseNanos", generation.pauseNanos());
        result.put("totalNanos", generation.totalNanos());
        result.put("bytes", generation.bytes());
        return result;
    }

    private void restart(JsonNode request) throws IOException {
        Path directory = Path.of(request.path("dir").asText());
        int generation = request.path("generation").asInt(0);
        boolean detached = request.path("detach").asBoolean();
        var options = new RestartOptions(
                detached,
                !request.path("terminal").asText("").isEmpty(),
                request.path("pty").asBoolean(),
                pids(request));
        Answer prepared = requests.prepareRestart(
                agent.config().host(), directory, generation, options, text(request, "requireSignature"));
        if (!(prepared instanceof Answer.Prepared(String name, String operation, String stub, boolean pty))) {
            unexpected(prepared);
            return;
        }
        int pid = 0;
        if (!detached) {
            send("spawn", Map.of("stub", stub, "pty", pty));
            JsonNode spawned = read();
            if (spawned == null || !spawned.has("spawned")) {
                requests.cancelRestart(name, operation);
                return;
            }
            pid = spawned.path("spawned").path("pid").asInt();
        }
        Answer answer = requests.finishRestart(name, operation, pid);
        if (!(answer instanceof Answer.Restarted restarted)) {
            unexpected(answer);
            return;
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("name", restarted.name());
        result.put("generation", restarted.generation());
        result.put("pid", restarted.root());
        result.put("pids", restarted.pids());
        result.put("foregroundGroup", restarted.foregroundGroup());
        byte[] settings = restarted.terminalSettings();
        result.put("termios", settings == null ? null : Base64.getEncoder().encodeToString(settings));
        result.put("totalNanos", restarted.totalNanos());
        send("result", result);
    }

    private static PidChoice pids(JsonNode request) {
        return switch (request.path("pids").asText("")) {
            case "" -> PidChoice.DEFAULT;
            case "keep" -> PidChoice.KEEP;
            case "auto" -> PidChoice.AUTO;
            case "namespace" -> PidChoice.NAMESPACE;
            default -> throw new IllegalArgumentException("\"pids\" takes keep, auto or namespace");
        };
    }

    private void ps() throws IOException {
        if (!(requests.list() instanceof Answer.Listed(List<String> hosts, List<Answer.Described> all))) {
            refused(new Answer.Refused("failed", 1, "the coordinator does not answer"));
            return;
        }
        List<Map<String, Object>> computations = new ArrayList<>();
        for (Answer.Described d : all) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("name", d.name());
            row.put("host", String.join(",", d.trees().stream().map(Tree::host).toList()));
            row.put("state", d.state());
            row.put("roots", d.trees().stream().map(Tree::root).toList());
            row.put("processes", d.processes());
            row.put("threads", d.threads());
            row.put("dir", d.directory());
            row.put("interval", d.intervalSeconds());
            if (d.last() != null) {
                row.put("lastGeneration", d.last().number());
                row.put("lastPauseNanos", d.last().pauseNanos());
                row.put("lastBytes", d.last().bytes());
            }
            computations.add(row);
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("hosts", hosts);
        result.put("computations", computations);
        send("result", result);
    }

    private void kill(JsonNode request) throws IOException {
        long grace = request.path("now").asBoolean()
                ? 0
                : request.path("graceMillis").asLong(DEFAULT_GRACE_MILLIS);
        Answer answer = requests.kill(
                agent.config().host(),
                text(request, "name"),
                request.path("pid").asInt(),
                grace);
        if (answer instanceof Answer.Killed(List<Integer> pids)) {
            send("result", Map.of("killed", pids));
        } else {
            unexpected(answer);
        }
    }

    private void status() throws IOException {
        var log = OpenLogs.open(agent.config().eventLog()).log();
        int running = requests.list() instanceof Answer.Listed listed
                ? listed.computations().size()
                : 0;
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("pid", ProcessHandle.current().pid());
        result.put("version", Agent.VERSION);
        result.put("host", agent.config().host());
        result.put("uptimeMillis", agent.uptime().toMillis());
        result.put("rss", residentBytes());
        result.put("computations", running);
        result.put("log", Map.of("sequence", log.lastSequence(), "bytes", log.size()));
        result.put(
                "cluster",
                agent.clusterAddress()
                        .map(address -> Map.of("address", address, "members", agent.clusterMembers()))
                        .orElse(null));
        send("result", result);
    }

    private static long residentBytes() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
            }
        }
        return 0;
    }

    private void check(JsonNode request) throws IOException {
        List<Map<String, Object>> host = new ArrayList<>();
        for (Engine.HostCapability capability : engine.capabilities()) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("what", capability.what());
            row.put("ok", capability.available());
            row.put("detail", capability.detail());
            host.add(row);
        }
        List<Map<String, Object>> problems = new ArrayList<>();
        if (request.path("pid").asInt() > 0) {
            var survey = new CheckpointRequest(
                    agent.config().host(), List.of(request.path("pid").asInt()), null, null, "");
            for (Engine.Problem problem : engine.survey(survey)) {
                Map<String, Object> row = new LinkedHashMap<>();
                row.put("pid", problem.pid());
                if (problem.fd() >= 0) {
                    row.put("fd", problem.fd());
                }
                row.put("resource", problem.resource());
                row.put("reason", problem.reason());
                row.put("advice", problem.advice());
                problems.add(row);
            }
        }
        send("result", Map.of("host", host, "problems", problems));
    }
}
