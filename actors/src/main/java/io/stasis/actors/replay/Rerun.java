package io.stasis.actors.replay;

import io.stasis.actors.journal.EventLogJournal;
import io.stasis.actors.serialization.EventCodec;
import io.stasis.image.log.EventLog;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/**
 * Decides a log's events again: each is led back to the command it answers, the command is put to the lifecycle in the
 * state that the events before have led to, and what it decides is compared with what is recorded.
 *
 * <p>A log that continues another, such as the slice in an image, begins in the middle of an entity's life: then the
 * lifecycle starts in a state in which the first record may come.
 */
public final class Rerun {
    /**
     * A record that is not what the lifecycles decide.
     *
     * @param sequence of the record, or of the entity's last one when something is missing at the end
     * @param recorded what the log says happened
     * @param decided what the lifecycle decides instead
     */
    public record Difference(long sequence, String entity, String recorded, String decided) {}

    /**
     * @param records that were decided again
     * @param entities they belong to
     * @param continued entities whose earlier records are not in this log
     * @param differences in the order of the log; empty when all is the same
     */
    public record Result(long records, int entities, Set<String> continued, List<Difference> differences) {}

    private final Map<String, Lifecycle<?, ?>.Track> tracks = new HashMap<>();
    private final Map<String, EventLog.Entry> last = new HashMap<>();
    private final Set<String> continued = new LinkedHashSet<>();
    private final List<Difference> differences = new ArrayList<>();
    private long records;

    private Rerun() {}

    /** @param chosen names of the entities to look at */
    public static Result of(List<EventLog.Entry> entries, Predicate<String> chosen) {
        Rerun rerun = new Rerun();
        for (EventLog.Entry entry : entries) {
            if (chosen.test(entry.entity()) && !entry.type().equals(EventLogJournal.DELETION)) {
                rerun.take(entry);
            }
        }
        rerun.end();
        return new Result(rerun.records, rerun.tracks.size(), rerun.continued, rerun.differences);
    }

    private void take(EventLog.Entry entry) {
        Object event = EventCodec.decode(entry);
        records++;
        Lifecycle<?, ?>.Track track = tracks.get(entry.entity());
        EventLog.Entry before = last.put(entry.entity(), entry);
        if (track == null) {
            track = Lifecycle.track(event);
            tracks.put(entry.entity(), track);
            if (entry.entitySequence() > 1) {
                continued.add(entry.entity());
                track.assume(event);
            }
        } else if (entry.entitySequence() != before.entitySequence() + 1) {
            differences.add(new Difference(
                    entry.sequence(),
                    entry.entity(),
                    "its event " + entry.entitySequence() + " after its event " + before.entitySequence(),
                    "its event " + (before.entitySequence() + 1)));
        }
        String otherwise = track.decideAgain(event);
        if (otherwise != null) {
            differences.add(new Difference(entry.sequence(), entry.entity(), EventText.describe(event), otherwise));
        }
    }

    /** A command whose second event never came. */
    private void end() {
        tracks.forEach((entity, track) -> track.due()
                .forEach(event -> differences.add(new Difference(
                        last.get(entity).sequence(), entity, "nothing more", EventText.describe(event)))));
        differences.sort(Comparator.comparingLong(Difference::sequence));
    }
}
