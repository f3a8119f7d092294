package io.stasis.actors.replay;

import io.stasis.actors.serialization.EventCodec;
import io.stasis.actors.serialization.EventTypes;
import io.stasis.engine.Outcome;
import io.stasis.engine.ProcessKey;
import io.stasis.engine.lifecycle.ComputationLifecycle;
import io.stasis.engine.lifecycle.ComputationLifecycle.Event;
import io.stasis.engine.lifecycle.ConnectionLifecycle;
import io.stasis.engine.lifecycle.Phase;
import io.stasis.engine.lifecycle.ProcessLifecycle;
import io.stasis.engine.lifecycle.ThreadLifecycle;
import io.stasis.image.log.EventLog;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Logs as an agent writes them, event by event. */
final class LogStory {
    static final String COMPUTATION = "computation|job";
    static final ProcessKey PROCESS = new ProcessKey("host", 100, 7);
    static final String OPERATION = "job#1";
    static final Outcome.Connection PIPE = new Outcome.Connection("pipe:[5]", "pipe", 3, List.of(100));

    private record Told(String entity, long entitySequence, Object event) {}

    private final List<Told> told = new ArrayList<>();
    private final Map<String, Long> numbers = new HashMap<>();

    LogStory tell(String entity, Object event) {
        told.add(new Told(entity, numbers.merge(entity, 1L, Long::sum), event));
        return this;
    }

    LogStory process(ProcessLifecycle.Event event) {
        return tell("process|" + PROCESS, event);
    }

    LogStory computation(Event event) {
        return tell(COMPUTATION, event);
    }

    LogStory registered() {
        return computation(new Event.Registered(
                new ComputationLifecycle.Tree("host", 100, 7, null, List.of("job")), "/images", 0));
    }

    LogStory started(boolean kill) {
        return computation(new Event.CheckpointStarted(OPERATION, 1, "/images", kill, "a test"));
    }

    LogStory suspended() {
        var at = new Outcome.StopPoint(0x1000, 0, "in read");
        var thread = new Outcome.StoppedThread(100, "job", at, 500);
        computation(new Event.PhaseStarted(Phase.SUSPEND));
        process(new ProcessLifecycle.Event.Intended(Phase.SUSPEND, OPERATION));
        process(new ProcessLifecycle.Event.Suspended(
                new Outcome.Suspended(PROCESS, List.of(thread), List.of(), 1000, 3000)));
        return computation(new Event.PhaseFinished(Phase.SUSPEND, 4000));
    }

    /** To the end of the pause. */
    LogStory resumed() {
        suspended();
        for (Phase phase : List.of(Phase.DRAIN, Phase.WRITE, Phase.REFILL, Phase.RESUME)) {
            computation(new Event.PhaseStarted(phase));
            process(new ProcessLifecycle.Event.Intended(phase, OPERATION));
            process(
                    switch (phase) {
                        case DRAIN ->
                            new ProcessLifecycle.Event.Drained(
                                    new Outcome.Drained(PROCESS, 4, List.of(PIPE), 5000, 6000));
                        case WRITE ->
                            new ProcessLifecycle.Event.Written(new Outcome.Written(PROCESS, 9, 1, 36864, 7000, 9000));
                        case REFILL ->
                            new ProcessLifecycle.Event.Refilled(new Outcome.Refilled(PROCESS, List.of(), 9500, 9600));
                        default ->
                            new ProcessLifecycle.Event.Resumed(new Outcome.Resumed(PROCESS, 1, 9000, 9700, 10000));
                    });
            computation(new Event.PhaseFinished(phase, 100));
        }
        String thread = "thread|" + PROCESS + "/100";
        tell(thread, new ThreadLifecycle.Event.Suspended("job", new Outcome.StopPoint(0x1000, 0, "in read"), 500, ""));
        tell(thread, new ThreadLifecycle.Event.Resumed(OPERATION));
        tell("connection|host/pipe:[5]", new ConnectionLifecycle.Event.Drained(PIPE, OPERATION));
        tell("connection|host/pipe:[5]", new ConnectionLifecycle.Event.Refilled(3, OPERATION));
        return this;
    }

    LogStory committed() {
        return computation(
                new Event.Committed(new ComputationLifecycle.Generation(1, "/images/0001", 1, 1, 9000, 20000, 36864)));
    }

    /** As records of a log, all but the first few. */
    List<EventLog.Entry> entries(Path file, int without) {
        try (EventLog log = EventLog.open(file)) {
            return log.append(told.stream()
                    .skip(without)
                    .map(t -> new EventLog.Draft(
                            t.entity, t.entitySequence, 0, EventTypes.name(t.event), EventCodec.encode(t.event)))
                    .toList());
        }
    }

    List<EventLog.Entry> entries(Path directory) {
        return entries(directory.resolve("events.log"), 0);
    }
}
