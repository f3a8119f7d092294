package io.stasis.actors.replay;

import io.stasis.actors.replay.Operation.End;
import io.stasis.actors.replay.Operation.PhaseSpan;
import io.stasis.actors.replay.Operation.Step;
import io.stasis.actors.serialization.EventCodec;
import io.stasis.engine.Outcome;
import io.stasis.engine.lifecycle.Phase;
import io.stasis.image.log.EventLog;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Why a checkpoint or restart failed, or what took its time, in words.
 *
 * @param operation what was being done
 * @param verdict one sentence
 * @param phases time of each phase and what it waited for, one line each
 * @param entity that was waited for, or null
 * @param thread what the thread in question did when it was stopped, or null
 * @param kernel what the kernel answered, or null when it refused nothing
 * @param lastEvents of the entity that was waited for
 */
public record Explanation(
        Operation operation,
        String verdict,
        List<String> phases,
        String entity,
        String thread,
        String kernel,
        List<String> lastEvents) {

    private static final int LAST_EVENTS = 6;
    /** An error's name as errno(3) has it, with its text when it is there. */
    private static final Pattern ERRNO = Pattern.compile("\\bE[A-Z0-9]{2,}\\b(?: \\([^)]*\\))?");

    /** @param entries of the log that the operation is from */
    public static Explanation of(Operation operation, List<EventLog.Entry> entries) {
        Step culprit = culprit(operation);
        String entity = culprit == null ? null : culprit.entity();
        List<String> lines = new ArrayList<>();
        for (PhaseSpan span : operation.phases()) {
            lines.add(phase(operation, span));
        }
        lines.add(outside(operation));
        return new Explanation(
                operation,
                verdict(operation, culprit),
                lines,
                entity,
                entity == null ? null : thread(operation, entity),
                kernel(operation, culprit),
                entity == null ? List.of() : lastEvents(operation, entity, entries));
    }

    /** What failed; else what did not finish; else what took longest in the phase that took longest. */
    private static Step culprit(Operation operation) {
        for (Step step : operation.steps()) {
            if (step.failure() != null) {
                return step;
            }
        }
        if (!(operation.end() instanceof End.Committed || operation.end() instanceof End.Restarted)) {
            PhaseSpan last =
                    operation.phases().isEmpty() ? null : operation.phases().getLast();
            Step pending = last == null || last.finished()
                    ? null
                    : operation.steps(last.phase()).stream()
                            .filter(step -> !step.isDone())
                            .findFirst()
                            .orElse(null);
            if (pending != null) {
                return pending;
            }
        }
        return operation
                .longestPhase()
                .flatMap(span -> operation.steps(span.phase()).stream().max(Comparator.comparingLong(Step::nanos)))
                .orElse(null);
    }

    private static String verdict(Operation operation, Step culprit) {
        String what = operation.kind() + " " + operation.id() + " (generation " + operation.generation() + ")";
        return switch (operation.end()) {
            case End.Aborted(String reason) -> {
                String where = operation.phases().isEmpty()
                        ? "before its first phase, with nothing frozen"
                        : "in phase " + operation.phases().getLast().phase();
                String who = culprit != null && culprit.failure() != null ? ", at " + culprit.entity() : "";
                yield what + " failed after " + millis(operation.nanos()) + " " + where + who + ": " + reason;
            }
            case End.Committed(long pause, long total, long bytes) ->
                what + " took " + millis(total) + " and stood still for " + millis(pause) + longest(operation, culprit);
            case End.Restarted() -> what + " took " + millis(operation.nanos()) + longest(operation, culprit);
            case End.Open() -> {
                boolean inPhase = !operation.phases().isEmpty()
                        && !operation.phases().getLast().finished();
                yield what
                        + (inPhase
                                ? " is in phase " + operation.phases().getLast().phase() + " where the log ends"
                                : " had its phases done in " + millis(operation.nanos()) + " where the log ends")
                        + longest(operation, culprit);
            }
        };
    }

    private static String longest(Operation operation, Step culprit) {
        return operation
                .longestPhase()
                .map(span -> "; its longest phase was " + span.phase() + " with " + millis(span.nanos())
                        + (culprit != null && culprit.phase() == span.phase()
                                ? ", of which " + culprit.entity() + " had " + millis(culprit.nanos())
                                : ""))
                .orElse("");
    }

    /** What is no phase: looking for the processes, verifying an image, starting the first process, forcing files. */
    private static String outside(Operation operation) {
        if (operation.phases().isEmpty()) {
            return String.format(Locale.ROOT, "%-10s %10s", "(no phase)", millis(operation.nanos()));
        }
        long before = operation.phases().getFirst().startNanos() - operation.startNanos();
        long within = operation.phases().stream().mapToLong(PhaseSpan::nanos).sum();
        return String.format(
                Locale.ROOT,
                "%-10s %10s, of which %s before the first phase",
                "(no phase)",
                millis(operation.nanos() - within),
                millis(before));
    }

    private static String phase(Operation operation, PhaseSpan span) {
        List<Step> steps = operation.steps(span.phase());
        long waited = steps.stream()
                .max(Comparator.comparingLong(Step::endNanos))
                .map(step -> step.endNanos()
                        - steps.stream().mapToLong(Step::askedNanos).min().orElse(0))
                .orElse(0L);
        Step longest = steps.stream().max(Comparator.comparingLong(Step::nanos)).orElse(null);
        return String.format(
                Locale.ROOT,
                "%-10s %10s%s%s",
                span.phase(),
                millis(span.nanos()),
                span.finished() ? "" : ", not finished",
                longest == null
                        ? ""
                        : ", longest " + longest.entity() + " with " + millis(longest.nanos()) + detail(longest)
                                + (span.nanos() > waited && span.finished()
                                        ? "; " + millis(span.nanos() - waited) + " outside of the processes"
                                        : ""));
    }

    private static String detail(Step step) {
        return switch (step.outcome()) {
            case Outcome.Suspended o ->
                slowest(o)
                        .map(t -> ", thread " + t.tid() + " \"" + t.name() + "\" stopped last, " + t.at().description()
                                + ", after " + millis(t.waitNanos()))
                        .orElse("");
            case Outcome.Drained o ->
                ", " + o.descriptors() + " descriptors, " + o.connections().size() + " connections";
            case Outcome.Written o -> ", " + o.pages() + " pages, " + o.bytes() + " bytes";
            case Outcome.Rebuilt o -> ", " + o.mappings() + " mappings, " + o.bytes() + " bytes";
            case null -> step.failure() == null ? ", no outcome" : ", failed";
            default -> "";
        };
    }

    private static java.util.Optional<Outcome.StoppedThread> slowest(Outcome.Suspended o) {
        return o.threads().stream().max(Comparator.comparingLong(Outcome.StoppedThread::waitNanos));
    }

    private static String thread(Operation operation, String entity) {
        return operation.steps(Phase.SUSPEND).stream()
                .filter(step -> step.entity().equals(entity))
                .map(Step::outcome)
                .filter(Outcome.Suspended.class::isInstance)
                .flatMap(o -> slowest((Outcome.Suspended) o).stream())
                .findFirst()
                .map(t -> "thread " + t.tid() + " \"" + t.name() + "\" was " + t.at().description()
                        + (t.at().systemCall() >= 0 ? " (system call " + t.at().systemCall() + ")" : "") + " at 0x"
                        + Long.toHexString(t.at().instruction()) + " and took " + millis(t.waitNanos()) + " to stop")
                .orElse(null);
    }

    private static String kernel(Operation operation, Step culprit) {
        String said = culprit != null && culprit.failure() != null
                ? culprit.failure()
                : operation.end() instanceof End.Aborted(String reason) ? reason : "";
        Matcher errno = ERRNO.matcher(said);
        return errno.find() ? errno.group() : null;
    }

    private static List<String> lastEvents(Operation operation, String entity, List<EventLog.Entry> entries) {
        List<String> lines = entries.stream()
                .filter(entry -> entry.entity().equals(entity)
                        && entry.sequence() >= operation.firstSequence()
                        && entry.sequence() <= operation.lastSequence())
                .map(entry -> entry.sequence() + "  " + EventText.describe(EventCodec.decode(entry)))
                .toList();
        return lines.subList(Math.max(0, lines.size() - LAST_EVENTS), lines.size());
    }

    /** For people. */
    public String text() {
        StringBuilder out = new StringBuilder(verdict).append('\n');
        phases.forEach(line -> out.append("  ").append(line).append('\n'));
        if (entity != null) {
            out.append("waited for: ").append(entity).append('\n');
        }
        if (thread != null) {
            out.append("there: ").append(thread).append('\n');
        }
        out.append("the kernel: ")
                .append(kernel == null ? "refused nothing" : "answered " + kernel)
                .append('\n');
        lastEvents.forEach(line -> out.append("  ").append(line).append('\n'));
        return out.toString();
    }

    /** For programs. */
    public Map<String, Object> json() {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("operation", operation.id());
        map.put("kind", operation.kind());
        map.put("generation", operation.generation());
        map.put("verdict", verdict);
        map.put("nanos", operation.nanos());
        map.put("pauseNanos", operation.pauseNanos());
        List<Map<String, Object>> spans = new ArrayList<>();
        for (PhaseSpan span : operation.phases()) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("phase", span.phase().name());
            one.put("nanos", span.nanos());
            one.put("finished", span.finished());
            spans.add(one);
        }
        map.put("phases", spans);
        map.put("entity", entity);
        map.put("thread", thread);
        map.put("kernel", kernel);
        map.put("lastEvents", lastEvents);
        return map;
    }

    private static String millis(long nanos) {
        return EventText.millis(nanos);
    }
}
