package io.stasis.actors.replay;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.stasis.actors.serialization.EventCodec;
import io.stasis.engine.Outcome;
import io.stasis.engine.lifecycle.ComputationLifecycle;
import io.stasis.engine.lifecycle.ConnectionLifecycle;
import io.stasis.engine.lifecycle.ProcessLifecycle;
import io.stasis.engine.lifecycle.ThreadLifecycle;
import io.stasis.image.log.EventLog;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.LinkedHashMap;
import java.util.Map;

/** Records of the event log for people and for programs. Loads no actor system. */
public final class EventText {
    private static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSSSSS").withZone(ZoneId.systemDefault());
    private static final ObjectMapper JSON = new ObjectMapper();

    private EventText() {}

    /** One line: sequence, time, entity, what happened. */
    public static String line(EventLog.Entry entry) {
        return String.format(
                "%6d  %s  %-36s  %s",
                entry.sequence(), TIME.format(instant(entry)), entry.entity(), describe(EventCodec.decode(entry)));
    }

    private static Instant instant(EventLog.Entry entry) {
        return Instant.ofEpochSecond(entry.wallNanos() / 1_000_000_000L, entry.wallNanos() % 1_000_000_000L);
    }

    /** The record with its event as nested maps, ready to be written as JSON. */
    public static Map<String, Object> json(EventLog.Entry entry) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("sequence", entry.sequence());
        map.put("time", instant(entry).toString());
        map.put("monotonicNanos", entry.monotonicNanos());
        map.put("entity", entry.entity());
        map.put("entitySequence", entry.entitySequence());
        map.put("type", entry.type());
        map.put("event", asMap(EventCodec.decode(entry)));
        map.put("chain", java.util.HexFormat.of().formatHex(entry.chain()));
        return map;
    }

    /** The components of a record, deeply, as maps and lists. */
    static Map<String, Object> asMap(Object record) {
        return JSON.convertValue(record, new TypeReference<>() {});
    }

    /** What happened, in words. */
    public static String describe(Object event) {
        return switch (event) {
            case ProcessLifecycle.Event e -> process(e);
            case ThreadLifecycle.Event e -> thread(e);
            case ConnectionLifecycle.Event e -> connection(e);
            case ComputationLifecycle.Event e -> computation(e);
            default -> event.toString();
        };
    }

    private static String process(ProcessLifecycle.Event event) {
        return switch (event) {
            case ProcessLifecycle.Event.Intended(var phase, String cause) ->
                "will " + phase.name().toLowerCase(java.util.Locale.ROOT) + " for " + cause;
            case ProcessLifecycle.Event.Suspended(Outcome.Suspended o) ->
                "suspended " + o.threads().size() + " threads in " + millis(o) + slowest(o);
            case ProcessLifecycle.Event.Drained(Outcome.Drained o) ->
                "drained: " + o.descriptors() + " descriptors, "
                        + o.connections().stream()
                                .mapToLong(Outcome.Connection::bytes)
                                .sum() + " bytes in flight, in " + millis(o);
            case ProcessLifecycle.Event.Written(Outcome.Written o) ->
                "written: " + o.pages() + " pages (" + o.zeroPages() + " zero pages left out), " + o.bytes()
                        + " bytes, in " + millis(o);
            case ProcessLifecycle.Event.Refilled(Outcome.Refilled o) -> "refilled in " + millis(o);
            case ProcessLifecycle.Event.Resumed(Outcome.Resumed o) ->
                "resumed " + o.threads() + " threads after a pause of " + millis(o.pausedNanos());
            case ProcessLifecycle.Event.Terminated(Outcome.Resumed o) -> "terminated, as asked for";
            case ProcessLifecycle.Event.Created(Outcome.Created o) ->
                "created as a child of " + o.parent() + " in " + millis(o);
            case ProcessLifecycle.Event.Rebuilt(Outcome.Rebuilt o) ->
                "rebuilt: " + o.threads() + " threads, " + o.mappings() + " mappings, " + o.descriptors()
                        + " descriptors, " + o.bytes() + " bytes of memory, in " + millis(o);
            case ProcessLifecycle.Event.Replenished(Outcome.Refilled o) ->
                "replenished " + o.connections().size() + " connections in " + millis(o);
            case ProcessLifecycle.Event.Released(Outcome.Released o) -> "released: it runs";
            case ProcessLifecycle.Event.Vanished() -> "had ended before it could be suspended";
            case ProcessLifecycle.Event.Failed(var phase, String reason) ->
                phase.name().toLowerCase(java.util.Locale.ROOT) + " failed: " + reason;
            case ProcessLifecycle.Event.Abandoned(String reason) -> "let go: " + reason;
        };
    }

    private static String slowest(Outcome.Suspended o) {
        return o.threads().stream()
                .max(java.util.Comparator.comparingLong(Outcome.StoppedThread::waitNanos))
                .map(t -> ", last thread " + t.tid() + " " + t.at().description())
                .orElse("");
    }

    private static String thread(ThreadLifecycle.Event event) {
        return switch (event) {
            case ThreadLifecycle.Event.Suspended(String name, Outcome.StopPoint at, long wait, String cause) ->
                "\"" + name + "\" suspended " + at.description() + " at 0x" + Long.toHexString(at.instruction())
                        + " after " + millis(wait);
            case ThreadLifecycle.Event.Resumed e -> "resumed";
            case ThreadLifecycle.Event.Restored e -> "restored";
            case ThreadLifecycle.Event.Ended e -> "ended";
        };
    }

    private static String connection(ConnectionLifecycle.Event event) {
        return switch (event) {
            case ConnectionLifecycle.Event.Drained(Outcome.Connection c, String cause) ->
                c.kind() + " drained: " + c.bytes() + " bytes, held by " + c.holders();
            case ConnectionLifecycle.Event.Refilled(long bytes, String cause) -> "has its " + bytes + " bytes again";
            case ConnectionLifecycle.Event.Abandoned(String reason) -> "let go: " + reason;
        };
    }

    private static String computation(ComputationLifecycle.Event event) {
        return switch (event) {
            case ComputationLifecycle.Event.Registered(var tree, String directory, int interval) ->
                "registered: process " + tree.root() + " on " + tree.host() + ", images in " + directory;
            case ComputationLifecycle.Event.CheckpointStarted e ->
                "checkpoint " + e.operation() + " started: generation " + e.generation()
                        + (e.kill() ? ", then kill" : "") + " (" + e.cause() + ")";
            case ComputationLifecycle.Event.RestartStarted e ->
                "restart " + e.operation() + " started from generation " + e.generation() + " of " + e.directory();
            case ComputationLifecycle.Event.PhaseStarted(var phase) -> "phase " + phase + " started";
            case ComputationLifecycle.Event.PhaseFinished(var phase, long nanos) ->
                "phase " + phase + " done in " + millis(nanos);
            case ComputationLifecycle.Event.Committed(var g) ->
                "generation " + g.number() + " committed: " + g.bytes() + " bytes, pause " + millis(g.pauseNanos())
                        + ", " + millis(g.totalNanos()) + " in all";
            case ComputationLifecycle.Event.Restarted(var trees) ->
                "restarted: "
                        + trees.stream()
                                .map(t -> "process " + t.root() + " on " + t.host())
                                .toList();
            case ComputationLifecycle.Event.Aborted(String operation, String reason) ->
                operation + " aborted: " + reason;
            case ComputationLifecycle.Event.Ended(String reason) -> "ended: " + reason;
            case ComputationLifecycle.Event.KeyChosen(String file) ->
                file == null ? "generations are not signed any more" : "generations are signed with the key in " + file;
        };
    }

    private static String millis(Outcome outcome) {
        return millis(outcome.finishedNanos() - outcome.startedNanos());
    }

    static String millis(long nanos) {
        return String.format(java.util.Locale.ROOT, "%.2f ms", nanos / 1e6);
    }
}
