package io.stasis.actors.journal;

import akka.dispatch.Futures;
import akka.persistence.AtomicWrite;
import akka.persistence.PersistentRepr;
import akka.persistence.journal.Tagged;
import akka.persistence.journal.japi.AsyncWriteJournal;
import com.typesafe.config.Config;
import io.stasis.actors.serialization.EventCodec;
import io.stasis.actors.serialization.EventTypes;
import io.stasis.image.log.EventLog;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import scala.concurrent.Future;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Akka's journal on the event log.
 *
 * <p>What is appended together (an atomic write) is one frame of the log, there as a whole or not at all. Deletion is
 * logical: the log is an audit trail, so the records stay and a deletion is one more record; replay passes over what it
 * covers. Appends are not forced to disk one by one: whoever commits a generation forces the log.
 *
 * <p>The records stay in memory, by entity, see {@link LogIndex}: replay touches no disk.
 */
public final class EventLogJournal extends AsyncWriteJournal {
    /** Type of a record that deletes its entity's records up to the sequence number in its payload. */
    public static final String DELETION = "journal.deleted.1";

    private final EventLog log;
    private final LogIndex index;

    /** @param config the plugin's section; {@code file} names the log */
    public EventLogJournal(Config config) {
        OpenLogs.Shared shared = OpenLogs.open(Path.of(config.getString("file")));
        this.log = shared.log();
        this.index = shared.index();
    }

    @Override
    public Future<Iterable<Optional<Exception>>> doAsyncWriteMessages(Iterable<AtomicWrite> messages) {
        List<Optional<Exception>> results = new ArrayList<>();
        for (AtomicWrite write : messages) {
            List<EventLog.Draft> drafts = new ArrayList<>();
            try {
                for (PersistentRepr repr : CollectionConverters.asJava(write.payload())) {
                    drafts.add(draft(repr));
                }
            } catch (RuntimeException e) {
                // An event that has no serial form is rejected; the entity may go on.
                results.add(Optional.of(new IllegalArgumentException(
                        "cannot serialize an event of " + write.persistenceId() + ": " + e.getMessage())));
                continue;
            }
            try {
                index.addAll(log.append(drafts));
            } catch (RuntimeException e) {
                return Futures.failed(e);
            }
            results.add(Optional.empty());
        }
        return Futures.successful(results);
    }

    private static EventLog.Draft draft(PersistentRepr repr) {
        Object event = repr.payload() instanceof Tagged tagged ? tagged.payload() : repr.payload();
        return new EventLog.Draft(
                repr.persistenceId(), repr.sequenceNr(), 0, EventTypes.name(event), EventCodec.encode(event));
    }

    @Override
    public Future<Void> doAsyncDeleteMessagesTo(String persistenceId, long toSequenceNr) {
        try {
            long to = Math.min(toSequenceNr, index.highest(persistenceId));
            byte[] payload = Long.toString(to).getBytes(StandardCharsets.US_ASCII);
            index.addAll(log.append(List.of(new EventLog.Draft(persistenceId, 0, 0, DELETION, payload))));
            return Futures.successful(null);
        } catch (RuntimeException e) {
            return Futures.failed(e);
        }
    }

    @Override
    public Future<Void> doAsyncReplayMessages(
            String persistenceId,
            long fromSequenceNr,
            long toSequenceNr,
            long max,
            Consumer<PersistentRepr> replayCallback) {
        try {
            long left = max;
            for (EventLog.Entry entry : index.entries(persistenceId, fromSequenceNr, toSequenceNr)) {
                if (left-- <= 0) {
                    break;
                }
                replayCallback.accept(PersistentRepr.apply(
                        EventCodec.decode(entry), entry.entitySequence(), persistenceId, "", false, null, ""));
            }
            return Futures.successful(null);
        } catch (RuntimeException e) {
            return Futures.failed(e);
        }
    }

    @Override
    public Future<Long> doAsyncReadHighestSequenceNr(String persistenceId, long fromSequenceNr) {
        return Futures.successful(index.highest(persistenceId));
    }
}
