package io.stasis.actors.replay;

import io.stasis.actors.journal.EventLogJournal;
import io.stasis.actors.serialization.EventCodec;
import io.stasis.image.log.EventLog;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;

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
        SortedMap<String, Lifecycle<?, ?>.Track> tracks = new TreeMap<>();
        for (EventLog.Entry entry : entries) {
            if (entry.sequence() <= sequence && !entry.type().equals(EventLogJournal.DELETION)) {
                Object event = EventCodec.decode(entry);
                tracks.computeIfAbsent(entry.entity(), entity -> Lifecycle.track(event))
                        .follow(event);
            }
        }
        SortedMap<String, Map<String, Object>> result = new TreeMap<>();
        tracks.forEach((entity, track) -> {
            Object state = track.state();
            Map<String, Object> map = new LinkedHashMap<>();
            map.put("state", state.getClass().getSimpleName());
            map.putAll(EventText.asMap(state));
            result.put(entity, map);
        });
        return result;
    }

    /**
     * What changed between two records.
     *
     * @return for each entity that changed, each part of its state that did: what it was and what it is, null for none
     */
    public static SortedMap<String, Map<String, Change>> changes(List<EventLog.Entry> entries, long from, long to) {
        SortedMap<String, Map<String, Object>> before = stateAt(entries, from);
        SortedMap<String, Map<String, Object>> after = stateAt(entries, to);
        Set<String> entities = new TreeSet<>(before.keySet());
        entities.addAll(after.keySet());
        SortedMap<String, Map<String, Change>> changes = new TreeMap<>();
        for (String entity : entities) {
            Map<String, Change> parts =
                    changed(before.getOrDefault(entity, Map.of()), after.getOrDefault(entity, Map.of()));
            if (!parts.isEmpty()) {
                changes.put(entity, parts);
            }
        }
        return changes;
    }

    /** A part of a state as it was and as it is, null where the state had no such part. */
    public record Change(Object before, Object after) {}

    private static Map<String, Change> changed(Map<String, Object> before, Map<String, Object> after) {
        Set<String> parts = new LinkedHashSet<>(before.keySet());
        parts.addAll(after.keySet());
        Map<String, Change> changed = new LinkedHashMap<>();
        for (String part : parts) {
            if (!Objects.equals(before.get(part), after.get(part))) {
                changed.put(part, new Change(before.get(part), after.get(part)));
            }
        }
        return changed;
    }
}
