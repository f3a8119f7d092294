package io.stasis.actors.replay;

import io.stasis.actors.journal.EventLogJournal;
import io.stasis.actors.serialization.EventCodec;
import io.stasis.engine.lifecycle.ComputationLifecycle;
import io.stasis.engine.lifecycle.ConnectionLifecycle;
import io.stasis.engine.lifecycle.ProcessLifecycle;
import io.stasis.engine.lifecycle.ThreadLifecycle;
import io.stasis.image.log.EventLog;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/** The states that a log's events lead to. */
public final class Replay {
    private Replay() {}

    /**
     * The state of every entity as of a record.
     *
     * @param sequence the last record that counts
     * @return for each entity its state's name under "state" and the state's parts
     */
    public static SortedMap<String, Map<String, Object>> stateAt(List<EventLog.Entry> entries, long sequence) {
        SortedMap<String, Object> states = new TreeMap<>();
        for (EventLog.Entry entry : entries) {
            if (entry.sequence() <= sequence && !entry.type().equals(EventLogJournal.DELETION)) {
                Object event = EventCodec.decode(entry);
                states.put(entry.entity(), evolve(states.get(entry.entity()), event));
            }
        }
        SortedMap<String, Map<String, Object>> result = new TreeMap<>();
        states.forEach((entity, state) -> {
            Map<String, Object> map = new LinkedHashMap<>();
            map.put("state", state.getClass().getSimpleName());
            map.putAll(EventText.asMap(state));
            result.put(entity, map);
        });
        return result;
    }

    private static Object evolve(Object state, Object event) {
        return switch (event) {
            case ProcessLifecycle.Event e ->
                ProcessLifecycle.evolve(state == null ? ProcessLifecycle.initial() : (ProcessLifecycle.State) state, e);
            case ThreadLifecycle.Event e ->
                ThreadLifecycle.evolve(state == null ? ThreadLifecycle.initial() : (ThreadLifecycle.State) state, e);
            case ConnectionLifecycle.Event e ->
                ConnectionLifecycle.evolve(
                        state == null ? ConnectionLifecycle.initial() : (ConnectionLifecycle.State) state, e);
            case ComputationLifecycle.Event e ->
                ComputationLifecycle.evolve(
                        state == null ? ComputationLifecycle.initial() : (ComputationLifecycle.State) state, e);
            default -> throw new IllegalStateException("no lifecycle has the event " + event);
        };
    }
}
