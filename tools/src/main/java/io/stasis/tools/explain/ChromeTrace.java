package io.stasis.tools.explain;

import io.stasis.actors.replay.Operation;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Operations in the Trace Event Format of Chrome, which Perfetto reads: {@code X} events with times in microseconds, {@code
 * M} events for names. Phases are those of process 0; a process's own steps are those of its thread 0.
 */
public final class ChromeTrace {
    private static final int PHASES = 0;

    private final List<Map<String, Object>> events = new ArrayList<>();

    private ChromeTrace() {}

    /** The JSON object to write to a file. */
    public static Map<String, Object> of(List<Operation> operations) {
        ChromeTrace trace = new ChromeTrace();
        trace.name("process_name", PHASES, 0, "phases");
        operations.forEach(trace::operation);
        Map<String, Object> file = new LinkedHashMap<>();
        file.put("displayTimeUnit", "ms");
        file.put("traceEvents", trace.events);
        return file;
    }

    private void operation(Operation operation) {
        String id = operation.id();
        complete(
                PHASES,
                0,
                operation.kind(),
                operation.startNanos(),
                operation.endNanos(),
                "operation",
                Map.of("id", id));
        Timeline timeline = Timeline.of(operation);
        long start = timeline.startNanos();
        for (Timeline.Span span : timeline.phases()) {
            complete(
                    PHASES,
                    0,
                    span.kind(),
                    start + span.startNanos(),
                    start + span.endNanos(),
                    "phase",
                    Map.of("operation", id));
        }
        for (Timeline.Row row : timeline.rows()) {
            name("process_name", row.pid(), 0, "process " + row.name());
            name("thread_name", row.pid(), row.tid(), row.isThread() ? "thread " + row.name() : "steps");
            for (Timeline.Span span : row.spans()) {
                Map<String, Object> facts = new LinkedHashMap<>();
                facts.put("operation", id);
                facts.put("text", span.text());
                facts.put("critical", span.critical());
                complete(
                        row.pid(),
                        row.tid(),
                        span.kind(),
                        start + span.startNanos(),
                        start + span.endNanos(),
                        row.isThread() ? "thread" : "step",
                        facts);
            }
        }
    }

    private void complete(
            int pid, int tid, String name, long startNanos, long endNanos, String category, Map<String, Object> facts) {
        Map<String, Object> event = new LinkedHashMap<>();
        event.put("ph", "X");
        event.put("name", name);
        event.put("cat", category);
        event.put("pid", pid);
        event.put("tid", tid);
        event.put("ts", startNanos / 1e3);
        event.put("dur", (endNanos - startNanos) / 1e3);
        event.put("args", facts);
        events.add(event);
    }

    private void name(String what, int pid, int tid, String name) {
        Map<String, Object> event = new LinkedHashMap<>();
        event.put("ph", "M");
        event.put("name", what);
        event.put("pid", pid);
        event.put("tid", tid);
        event.put("args", Map.of("name", name));
        if (!events.contains(event)) {
            events.add(event);
        }
    }
}
