package io.stasis.actors.replay;

import io.stasis.actors.journal.EventLogJournal;
import io.stasis.actors.replay.Operation.End;
import io.stasis.actors.replay.Operation.PhaseSpan;
import io.stasis.actors.replay.Operation.Step;
import io.stasis.actors.serialization.EventCodec;
import io.stasis.engine.Outcome;
import io.stasis.engine.lifecycle.ComputationLifecycle;
import io.stasis.engine.lifecycle.Phase;
import io.stasis.engine.lifecycle.ProcessLifecycle;
import io.stasis.image.log.EventLog;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Finds the checkpoints and restarts that a log tells of. */
public final class Operations {
    private static final String COMPUTATION = "computation|";

    /** One that is being read. */
    private static final class Draft {
        final String id;
        final String computation;
        final EventLog.Entry first;
        boolean restart;
        int generation;
        String directory;
        boolean kill;
        String cause;
        long lastSequence;
        long endNanos;
        final List<PhaseSpan> phases = new ArrayList<>();
        final List<Step> steps = new ArrayList<>();
        End end = new End.Open();

        Draft(String id, String computation, EventLog.Entry first) {
            this.id = id;
            this.computation = computation;
            this.first = first;
        }

        void saw(EventLog.Entry entry) {
            lastSequence = entry.sequence();
            endNanos = Math.max(endNanos, entry.monotonicNanos());
        }

        Operation done() {
            phases.replaceAll(
                    span -> span.finished() ? span : new PhaseSpan(span.phase(), span.startNanos(), endNanos, false));
            steps.replaceAll(step -> step.outcome() != null || step.failure() != null
                    ? step
                    : new Step(
                            step.entity(),
                            step.phase(),
                            step.askedNanos(),
                            step.startNanos(),
                            endNanos,
                            null,
                            null,
                            step.sequence()));
            return new Operation(
                    id,
                    computation,
                    restart,
                    generation,
                    directory,
                    kill,
                    cause,
                    first.sequence(),
                    lastSequence,
                    first.monotonicNanos(),
                    endNanos,
                    first.wallNanos(),
                    List.copyOf(phases),
                    List.copyOf(steps),
                    end);
        }
    }

    private final Map<String, Draft> byId = new LinkedHashMap<>();
    /** What a computation is at, by its entity. */
    private final Map<String, Draft> current = new LinkedHashMap<>();
    /** Which operation a process takes part in, by its entity. */
    private final Map<String, Draft> processes = new LinkedHashMap<>();

    private Operations() {}

    /** In the order in which they began. */
    public static List<Operation> of(List<EventLog.Entry> entries) {
        Operations found = new Operations();
        for (EventLog.Entry entry : entries) {
            if (entry.type().equals(EventLogJournal.DELETION)) {
                continue;
            }
            switch (EventCodec.decode(entry)) {
                case ComputationLifecycle.Event event -> found.computation(entry, event);
                case ProcessLifecycle.Event event -> found.process(entry, event);
                default -> {}
            }
        }
        return found.byId.values().stream().map(Draft::done).toList();
    }

    private void computation(EventLog.Entry entry, ComputationLifecycle.Event event) {
        String name = entry.entity().substring(COMPUTATION.length());
        switch (event) {
            case ComputationLifecycle.Event.CheckpointStarted e -> {
                Draft draft = begin(e.operation(), name, entry);
                draft.generation = e.generation();
                draft.directory = e.directory();
                draft.kill = e.kill();
                draft.cause = e.cause();
            }
            case ComputationLifecycle.Event.RestartStarted e -> {
                Draft draft = begin(e.operation(), name, entry);
                draft.restart = true;
                draft.generation = e.generation();
                draft.directory = e.directory();
                draft.cause = e.cause();
            }
            default -> {
                Draft draft = current.get(entry.entity());
                if (draft != null) {
                    draft.saw(entry);
                    goOn(draft, entry, event);
                }
            }
        }
    }

    private Draft begin(String id, String name, EventLog.Entry entry) {
        Draft draft = new Draft(id, name, entry);
        draft.saw(entry);
        byId.put(id, draft);
        current.put(entry.entity(), draft);
        return draft;
    }

    private void goOn(Draft draft, EventLog.Entry entry, ComputationLifecycle.Event event) {
        switch (event) {
            case ComputationLifecycle.Event.PhaseStarted(Phase phase) ->
                draft.phases.add(new PhaseSpan(phase, entry.monotonicNanos(), entry.monotonicNanos(), false));
            case ComputationLifecycle.Event.PhaseFinished(Phase phase, long nanos) ->
                draft.phases.replaceAll(span -> span.phase() == phase
                        ? new PhaseSpan(phase, span.startNanos(), entry.monotonicNanos(), true)
                        : span);
            case ComputationLifecycle.Event.Committed(var g) ->
                over(draft, entry, new End.Committed(g.pauseNanos(), g.totalNanos(), g.bytes()));
            case ComputationLifecycle.Event.Restarted restarted -> over(draft, entry, new End.Restarted());
            case ComputationLifecycle.Event.Aborted(String id, String reason) ->
                over(draft, entry, new End.Aborted(reason));
            default -> {}
        }
    }

    private void over(Draft draft, EventLog.Entry entry, End end) {
        draft.end = end;
        current.remove(entry.entity());
    }

    private void process(EventLog.Entry entry, ProcessLifecycle.Event event) {
        if (event instanceof ProcessLifecycle.Event.Intended(Phase phase, String cause)) {
            Draft draft = byId.get(cause);
            if (draft != null) {
                processes.put(entry.entity(), draft);
                draft.saw(entry);
                long now = entry.monotonicNanos();
                draft.steps.add(new Step(entry.entity(), phase, now, now, now, null, null, entry.sequence()));
            }
            return;
        }
        Draft draft = processes.get(entry.entity());
        if (draft == null) {
            return;
        }
        draft.saw(entry);
        Outcome outcome = outcome(event);
        String failure = event instanceof ProcessLifecycle.Event.Failed(Phase phase, String reason) ? reason : null;
        for (int i = draft.steps.size() - 1; i >= 0; i--) {
            Step step = draft.steps.get(i);
            if (step.entity().equals(entry.entity()) && step.outcome() == null && step.failure() == null) {
                draft.steps.set(i, ended(step, entry, outcome, failure));
                return;
            }
        }
    }

    private static Step ended(Step step, EventLog.Entry entry, Outcome outcome, String failure) {
        return new Step(
                step.entity(),
                step.phase(),
                step.askedNanos(),
                outcome == null ? step.startNanos() : outcome.startedNanos(),
                outcome == null ? entry.monotonicNanos() : outcome.finishedNanos(),
                outcome,
                failure,
                entry.sequence());
    }

    private static Outcome outcome(ProcessLifecycle.Event event) {
        return switch (event) {
            case ProcessLifecycle.Event.Suspended(var o) -> o;
            case ProcessLifecycle.Event.Drained(var o) -> o;
            case ProcessLifecycle.Event.Written(var o) -> o;
            case ProcessLifecycle.Event.Refilled(var o) -> o;
            case ProcessLifecycle.Event.Resumed(var o) -> o;
            case ProcessLifecycle.Event.Terminated(var o) -> o;
            case ProcessLifecycle.Event.Created(var o) -> o;
            case ProcessLifecycle.Event.Rebuilt(var o) -> o;
            case ProcessLifecycle.Event.Replenished(var o) -> o;
            case ProcessLifecycle.Event.Released(var o) -> o;
            case ProcessLifecycle.Event.Intended e -> null;
            case ProcessLifecycle.Event.Vanished e -> null;
            case ProcessLifecycle.Event.Failed e -> null;
            case ProcessLifecycle.Event.Abandoned e -> null;
        };
    }
}
