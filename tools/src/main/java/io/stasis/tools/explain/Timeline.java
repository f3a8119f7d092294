package io.stasis.tools.explain;

import io.stasis.actors.replay.Operation;
import io.stasis.actors.replay.Operation.PhaseSpan;
import io.stasis.actors.replay.Operation.Step;
import io.stasis.engine.Outcome;
import io.stasis.engine.lifecycle.Phase;
import io.stasis.tools.output.Text;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * An operation laid out in rows: phases, and each process with its threads behind it. It begins with the first phase.
 *
 * @param startNanos CLOCK_MONOTONIC time that counts as 0
 * @param nanos its length, at least 1
 * @param phases those that all take together
 */
record Timeline(long startNanos, long nanos, List<Span> phases, List<Row> rows) {
    /**
     * A stretch of time in a row.
     *
     * @param kind a phase in small letters, "stopping" or "still"
     * @param startNanos from the timeline's begin
     * @param critical whether everything waited for it
     * @param broken whether it failed or did not finish
     * @param text its story in one sentence
     */
    record Span(
            String kind, long startNanos, long endNanos, boolean critical, boolean broken, String label, String text) {}

    /** @param tid of a thread, 0 for the row of the process itself */
    record Row(String entity, int pid, int tid, String name, List<Span> spans) {
        boolean isThread() {
            return tid != 0;
        }
    }

    static Timeline of(Operation operation) {
        long start = operation.phases().isEmpty()
                ? operation.startNanos()
                : operation.phases().getFirst().startNanos();
        long end = Math.max(
                operation.phases().stream().mapToLong(PhaseSpan::endNanos).max().orElse(operation.endNanos()),
                operation.steps().stream().mapToLong(Step::endNanos).max().orElse(start));
        List<Span> phases = operation.phases().stream()
                .map(span -> new Span(
                        kind(span.phase()),
                        span.startNanos() - start,
                        span.endNanos() - start,
                        false,
                        !span.finished(),
                        kind(span.phase()) + " " + Text.time(span.nanos()),
                        "phase " + kind(span.phase()) + ": " + Text.time(span.nanos())
                                + (span.finished() ? "" : ", not finished")))
                .toList();
        return new Timeline(start, Math.max(1, end - start), phases, rows(operation, start));
    }

    private static List<Row> rows(Operation operation, long start) {
        Set<Step> critical = new HashSet<>(operation.criticalPath());
        Map<String, List<Step>> byProcess = new LinkedHashMap<>();
        operation
                .steps()
                .forEach(step -> byProcess
                        .computeIfAbsent(step.entity(), entity -> new ArrayList<>())
                        .add(step));
        List<Row> rows = new ArrayList<>();
        byProcess.forEach((entity, steps) -> {
            rows.add(new Row(
                    entity,
                    pid(entity),
                    0,
                    name(entity, steps),
                    steps.stream()
                            .map(step -> span(step, start, critical.contains(step)))
                            .toList()));
            rows.addAll(threads(entity, steps, start, operation.endNanos()));
        });
        return rows;
    }

    private static Span span(Step step, long start, boolean critical) {
        String text = shortName(step.entity()) + " " + kind(step.phase()) + ": " + Text.time(step.nanos())
                + switch (step.outcome()) {
                    case Outcome.Suspended o -> ", " + Text.count(o.threads().size(), "thread", "threads") + " stopped";
                    case Outcome.Drained o ->
                        ", " + o.descriptors() + " descriptors, "
                                + Text.count(o.connections().size(), "connection", "connections");
                    case Outcome.Written o -> ", " + o.pages() + " pages, " + Text.bytes(o.bytes());
                    case Outcome.Rebuilt o -> ", " + o.mappings() + " mappings, " + Text.bytes(o.bytes());
                    case Outcome.Resumed o -> ", after a pause of " + Text.time(o.pausedNanos());
                    case null -> step.failure() == null ? ", no outcome" : ", failed: " + step.failure();
                    default -> "";
                }
                + (critical ? " (on the critical path)" : "");
        return new Span(
                kind(step.phase()),
                step.startNanos() - start,
                step.endNanos() - start,
                critical,
                !step.isDone(),
                kind(step.phase()),
                text);
    }

    /** A thread is asked to stop when its process is, and runs again when its process does. */
    private static List<Row> threads(String entity, List<Step> steps, long start, long end) {
        List<Row> rows = new ArrayList<>();
        long resumed = steps.stream()
                .filter(step -> step.phase() == Phase.RESUME || step.phase() == Phase.TERMINATE)
                .mapToLong(Step::endNanos)
                .findFirst()
                .orElse(end);
        for (Step step : steps) {
            if (step.outcome() instanceof Outcome.Suspended o) {
                for (Outcome.StoppedThread thread : o.threads()) {
                    long asked = o.startedNanos() - start;
                    long stopped = Math.min(asked + thread.waitNanos(), o.finishedNanos() - start);
                    String name = "thread " + thread.tid() + " \"" + thread.name() + "\"";
                    String where = thread.at().description() + " at 0x"
                            + Long.toHexString(thread.at().instruction());
                    Span stopping = new Span(
                            "stopping",
                            asked,
                            stopped,
                            false,
                            false,
                            "",
                            name + " was asked to stop " + where + "; it took " + Text.time(thread.waitNanos()));
                    Span still = new Span(
                            "still",
                            stopped,
                            resumed - start,
                            false,
                            false,
                            "",
                            name + " stood still " + where + " for " + Text.time(resumed - start - stopped));
                    rows.add(new Row(
                            entity,
                            pid(entity),
                            thread.tid(),
                            thread.tid() + " " + thread.at().description(),
                            List.of(stopping, still)));
                }
            }
        }
        return rows;
    }

    private static String name(String entity, List<Step> steps) {
        return shortName(entity)
                + steps.stream()
                        .map(Step::outcome)
                        .filter(Outcome.Suspended.class::isInstance)
                        .flatMap(o -> ((Outcome.Suspended) o).threads().stream())
                        .filter(thread -> thread.tid() == pid(entity))
                        .map(thread -> " " + thread.name())
                        .findFirst()
                        .orElse("");
    }

    /** "process|alpha/4711@1661623" without host and start time: "4711". */
    static String shortName(String entity) {
        return Integer.toString(pid(entity));
    }

    private static int pid(String entity) {
        return Integer.parseInt(entity.substring(entity.lastIndexOf('/') + 1, entity.lastIndexOf('@')));
    }

    private static String kind(Phase phase) {
        return phase.name().toLowerCase(Locale.ROOT);
    }
}
