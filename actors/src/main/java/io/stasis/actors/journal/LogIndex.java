package io.stasis.actors.journal;

import io.stasis.image.log.EventLog;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;

/** The records of a log by the entity they belong to. Safe for use by several threads. */
public final class LogIndex {
    private static final class Entity {
        final List<EventLog.Entry> entries = new ArrayList<>();
        long highest;
        long deletedTo;
    }

    private final Map<String, Entity> entities = new ConcurrentHashMap<>();
    private final List<EventLog.Entry> all = new ArrayList<>();

    void addAll(List<EventLog.Entry> entries) {
        entries.forEach(this::add);
    }

    void add(EventLog.Entry entry) {
        synchronized (all) {
            all.add(entry);
        }
        Entity entity = entities.computeIfAbsent(entry.entity(), id -> new Entity());
        synchronized (entity) {
            if (entry.type().equals(EventLogJournal.DELETION)) {
                entity.deletedTo = Math.max(
                        entity.deletedTo, Long.parseLong(new String(entry.payload(), StandardCharsets.US_ASCII)));
                entity.entries.removeIf(e -> e.entitySequence() <= entity.deletedTo);
            } else {
                entity.entries.add(entry);
                entity.highest = Math.max(entity.highest, entry.entitySequence());
            }
        }
    }

    /** Highest sequence number ever given in this entity, deleted records included; 0 when there is none. */
    long highest(String id) {
        Entity entity = entities.get(id);
        if (entity == null) {
            return 0;
        }
        synchronized (entity) {
            return entity.highest;
        }
    }

    /** Records that are not deleted, in order. */
    List<EventLog.Entry> entries(String id, long from, long to) {
        Entity entity = entities.get(id);
        if (entity == null) {
            return List.of();
        }
        synchronized (entity) {
            return entity.entries.stream()
                    .filter(e -> e.entitySequence() >= from && e.entitySequence() <= to)
                    .toList();
        }
    }

    /** All records from a sequence number of the log on, in order. */
    public List<EventLog.Entry> since(long sequence) {
        synchronized (all) {
            int first = (int) Math.max(0, sequence - 1);
            return first >= all.size() ? List.of() : List.copyOf(all.subList(first, all.size()));
        }
    }

    /** Entities whose id begins so. */
    public Set<String> entities(String prefix) {
        Set<String> found = new TreeSet<>();
        for (String id : entities.keySet()) {
            if (id.startsWith(prefix)) {
                found.add(id);
            }
        }
        return found;
    }
}
