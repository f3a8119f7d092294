package io.stasis.actors.replay;

import io.stasis.engine.Outcome;
import io.stasis.engine.lifecycle.Phase;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/**
 * One checkpoint or restart, as its log tells it. Times are CLOCK_MONOTONIC nanoseconds of the host that wrote the log.
 *
 * @param id such as "counter#1796140336823-4"
 * @param computation name
 * @param kill whether the program was to end
 * @param cause who asked for it
 * @param firstSequence its first record
 * @param lastSequence its last record, as far as this log goes
 * @param startNanos when it began
 * @param endNanos when it was over, or when the log ends
 * @param wallNanos when it began, since 1970
 * @param steps of processes, in the order in which they were asked for
 */
public record Operation(
        String id,
        String computation,
        boolean restart,
        int generation,
        String directory,
        boolean kill,
        String cause,
        long firstSequence,
        long lastSequence,
        long startNanos,
        long endNanos,
        long wallNanos,
        List<PhaseSpan> phases,
        List<Step> steps,
        End end) {

    /** How it ended. */
    public sealed interface End {
        /** @param pauseNanos longest time that a process stood still */
        record Committed(long pauseNanos, long totalNanos, long bytes) implements End {}

        record Restarted() implements End {}

        record Aborted(String reason) implements End {}

        /** The log goes no further: that of an image ends when its generation is written. */
        record Open() implements End {}
    }

    /**
     * A phase that all processes take together.
     *
     * @param finished false when it was given up, or the log ends in it
     */
    public record PhaseSpan(Phase phase, long startNanos, long endNanos, boolean finished) {
        public long nanos() {
            return endNanos - startNanos;
        }
    }

    /**
     * A phase of one process.
     *
     * @param entity of the process
     * @param askedNanos when its intent was logged
     * @param startNanos when the native work began; that of the intent when it did not finish
     * @param endNanos when the native work was done
     * @param outcome null when there is none
     * @param failure why it failed, or null
     * @param sequence of its last record
     */
    public record Step(
            String entity,
            Phase phase,
            long askedNanos,
            long startNanos,
            long endNanos,
            Outcome outcome,
            String failure,
            long sequence) {
        public long nanos() {
            return endNanos - startNanos;
        }

        /** Whether there is an outcome; a process that had ended has none and is no failure. */
        public boolean isDone() {
            return outcome != null;
        }
    }

    /** "checkpoint" or "restart". */
    public String kind() {
        return restart ? "restart" : "checkpoint";
    }

    public long nanos() {
        return endNanos - startNanos;
    }

    /** Steps of one phase. */
    public List<Step> steps(Phase phase) {
        return steps.stream().filter(step -> step.phase == phase).toList();
    }

    /** The phase that took longest; none when it was over before the first. */
    public Optional<PhaseSpan> longestPhase() {
        return phases.stream().max(Comparator.comparingLong(PhaseSpan::nanos));
    }

    /** From the first thread frozen to the last one running, as far as the log tells; 0 when nothing was frozen. */
    public long pauseNanos() {
        if (end instanceof End.Committed(long pause, long total, long bytes)) {
            return pause;
        }
        return steps.stream()
                .mapToLong(step -> step.outcome instanceof Outcome.Resumed o ? o.pausedNanos() : 0)
                .max()
                .orElse(0);
    }

    /** Bytes of pages and records that were written, or of memory that was made again. */
    public long bytes() {
        return steps.stream()
                .mapToLong(step -> switch (step.outcome) {
                    case Outcome.Written o -> o.bytes();
                    case Outcome.Rebuilt o -> o.bytes();
                    case null, default -> 0;
                })
                .sum();
    }

    /** Connections that were drained, each once. */
    public List<Outcome.Connection> connections() {
        return steps.stream()
                .flatMap(step -> switch (step.outcome) {
                    case Outcome.Drained o -> o.connections().stream();
                    case Outcome.Refilled o when restart -> o.connections().stream();
                    case null, default -> java.util.stream.Stream.empty();
                })
                .distinct()
                .toList();
    }

    /**
     * The steps that nothing could have been faster without: of each phase the one that was done last, and before it
     * always the last one that was done when it began.
     */
    public List<Step> criticalPath() {
        return phases.stream()
                .flatMap(span -> chain(steps(span.phase)).stream())
                .toList();
    }

    private static List<Step> chain(List<Step> steps) {
        List<Step> chain = new java.util.ArrayList<>();
        List<Step> left = new java.util.ArrayList<>(steps);
        long before = Long.MAX_VALUE;
        while (true) {
            long limit = before;
            Optional<Step> last =
                    left.stream().filter(step -> step.endNanos <= limit).max(Comparator.comparingLong(Step::endNanos));
            if (last.isEmpty()) {
                return chain;
            }
            chain.addFirst(last.get());
            left.remove(last.get());
            before = last.get().startNanos;
        }
    }
}
