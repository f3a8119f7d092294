package io.stasis.actors.journal;

import static org.assertj.core.api.Assertions.assertThat;

import akka.actor.ActorRef;
import akka.actor.ActorSystem;
import akka.actor.PoisonPill;
import akka.persistence.AtomicWrite;
import akka.persistence.JournalProtocol;
import akka.persistence.Persistence;
import akka.persistence.PersistentRepr;
import akka.testkit.javadsl.TestKit;
import com.typesafe.config.ConfigFactory;
import io.stasis.engine.lifecycle.Phase;
import io.stasis.engine.lifecycle.ProcessLifecycle;
import io.stasis.image.log.EventLog;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What Akka expects of a journal, spoken in the journal's own protocol: the ground that Akka's JournalSpec covers, in
 * JUnit 5.
 */
class JournalContractTest {
    private static final Duration SOON = Duration.ofSeconds(10);

    @TempDir
    Path directory;

    private ActorSystem system;
    private ActorRef journal;
    private TestKit sender;

    @BeforeEach
    void start() {
        system = ActorSystem.create(
                "journal",
                ConfigFactory.parseString(
                                "stasis.journal.file = \"" + file() + "\"\nakka.actor.serialize-messages = off")
                        .withFallback(ConfigFactory.load()));
        journal = Persistence.get(system).journalFor("stasis.journal", ConfigFactory.empty());
        sender = new TestKit(system);
    }

    @AfterEach
    void stop() {
        TestKit.shutdownActorSystem(system);
        OpenLogs.close(file());
    }

    private Path file() {
        return directory.resolve("events.log");
    }

    private static ProcessLifecycle.Event event(long number) {
        return new ProcessLifecycle.Event.Intended(Phase.SUSPEND, "event-" + number);
    }

    private PersistentRepr repr(String id, long number, Object payload) {
        return PersistentRepr.apply(payload, number, id, "", false, sender.getRef(), "writer");
    }

    private void send(List<AtomicWrite> writes) {
        journal.tell(
                new JournalProtocol.WriteMessages(
                        CollectionConverters.asScala(writes.stream()
                                        .map(write -> (akka.persistence.PersistentEnvelope) write)
                                        .toList())
                                .toSeq(),
                        sender.getRef(),
                        1),
                sender.getRef());
    }

    private static AtomicWrite atomic(List<PersistentRepr> reprs) {
        return AtomicWrite.apply(CollectionConverters.asScala(reprs).toSeq());
    }

    /** Writes events one by one, as numbers {@code from} to {@code to}. */
    private void write(String id, long from, long to) {
        List<AtomicWrite> writes = new ArrayList<>();
        for (long number = from; number <= to; number++) {
            writes.add(atomic(List.of(repr(id, number, event(number)))));
        }
        send(writes);
        sender.expectMsgClass(SOON, JournalProtocol.WriteMessagesSuccessful$.class);
        for (long number = from; number <= to; number++) {
            assertThat(sender.expectMsgClass(SOON, JournalProtocol.WriteMessageSuccess.class)
                            .persistent()
                            .sequenceNr())
                    .isEqualTo(number);
        }
    }

    private record Replayed(List<Long> numbers, List<Object> events, long highest) {}

    private Replayed replay(String id, long from, long to, long max) {
        journal.tell(new JournalProtocol.ReplayMessages(from, to, max, id, sender.getRef()), sender.getRef());
        List<Long> numbers = new ArrayList<>();
        List<Object> events = new ArrayList<>();
        while (true) {
            Object message = sender.expectMsgAnyClassOf(SOON, Object.class);
            switch (message) {
                case JournalProtocol.ReplayedMessage replayed -> {
                    numbers.add(replayed.persistent().sequenceNr());
                    events.add(replayed.persistent().payload());
                    assertThat(replayed.persistent().persistenceId()).isEqualTo(id);
                }
                case JournalProtocol.RecoverySuccess success -> {
                    return new Replayed(numbers, events, success.highestSequenceNr());
                }
                default -> throw new AssertionError("unexpected " + message);
            }
        }
    }

    private Replayed replayAll(String id) {
        return replay(id, 1, Long.MAX_VALUE, Long.MAX_VALUE);
    }

    @Test
    void allEventsAreReplayedInOrder() {
        write("a", 1, 5);
        Replayed replayed = replayAll("a");
        assertThat(replayed.numbers).containsExactly(1L, 2L, 3L, 4L, 5L);
        assertThat(replayed.events).containsExactly(event(1), event(2), event(3), event(4), event(5));
        assertThat(replayed.highest).isEqualTo(5);
    }

    @Test
    void aLowerAndAnUpperBoundAreInclusive() {
        write("a", 1, 5);
        assertThat(replay("a", 3, Long.MAX_VALUE, Long.MAX_VALUE).numbers).containsExactly(3L, 4L, 5L);
        assertThat(replay("a", 1, 3, Long.MAX_VALUE).numbers).containsExactly(1L, 2L, 3L);
        assertThat(replay("a", 2, 4, Long.MAX_VALUE).numbers).containsExactly(2L, 3L, 4L);
        assertThat(replay("a", 3, 3, Long.MAX_VALUE).numbers).containsExactly(3L);
    }

    @Test
    void aLimitEndsAReplayEarly() {
        write("a", 1, 5);
        assertThat(replay("a", 1, Long.MAX_VALUE, 3).numbers).containsExactly(1L, 2L, 3L);
        assertThat(replay("a", 2, 4, 2).numbers).containsExactly(2L, 3L);
        assertThat(replay("a", 1, Long.MAX_VALUE, 0).numbers).isEmpty();
    }

    @Test
    void aLowerBoundAboveTheUpperOneReplaysNothing() {
        write("a", 1, 5);
        assertThat(replay("a", 3, 2, Long.MAX_VALUE).numbers).isEmpty();
    }

    @Test
    void entitiesAreKeptApart() {
        write("a", 1, 2);
        write("b", 1, 3);
        assertThat(replayAll("a").numbers).containsExactly(1L, 2L);
        assertThat(replayAll("b").numbers).containsExactly(1L, 2L, 3L);
        assertThat(replayAll("c").numbers).isEmpty();
        assertThat(replayAll("c").highest).isZero();
    }

    @Test
    void anAtomicBatchIsOneFrame() {
        send(List.of(atomic(List.of(repr("a", 1, event(1)), repr("a", 2, event(2)), repr("a", 3, event(3))))));
        sender.expectMsgAnyClassOf(SOON, Object.class);
        for (int i = 0; i < 3; i++) {
            sender.expectMsgClass(SOON, JournalProtocol.WriteMessageSuccess.class);
        }
        assertThat(replayAll("a").numbers).containsExactly(1L, 2L, 3L);
        // A torn tail takes all three away.
        OpenLogs.open(file()).log().force();
        try (EventLog copy = EventLog.openReadOnly(file())) {
            assertThat(copy.read(1)).extracting(EventLog.Entry::entitySequence).containsExactly(1L, 2L, 3L);
        }
    }

    private void deleteTo(String id, long number) {
        journal.tell(new JournalProtocol.DeleteMessagesTo(id, number, sender.getRef()), sender.getRef());
        sender.expectMsgClass(SOON, akka.persistence.DeleteMessagesSuccess.class);
    }

    @Test
    void deletedEventsAreNotReplayedAndTheHighestNumberStays() {
        write("a", 1, 5);
        deleteTo("a", 3);
        assertThat(replayAll("a").numbers).containsExactly(4L, 5L);
        deleteTo("a", Long.MAX_VALUE);
        assertThat(replayAll("a").numbers).isEmpty();
        assertThat(replayAll("a").highest).isEqualTo(5);
    }

    @Test
    void everythingIsThereAfterARestartDeletionsIncluded() {
        write("a", 1, 5);
        deleteTo("a", 2);
        write("b", 1, 1);
        stop();
        start();
        assertThat(replayAll("a").numbers).containsExactly(3L, 4L, 5L);
        assertThat(replayAll("a").highest).isEqualTo(5);
        assertThat(replayAll("b").events).containsExactly(event(1));
        write("a", 6, 6);
        assertThat(replayAll("a").numbers).containsExactly(3L, 4L, 5L, 6L);
    }

    @Test
    void anEventThatCannotBeSerializedIsRejectedAndTheOthersAreWritten() {
        send(List.of(
                atomic(List.of(repr("a", 1, event(1)))),
                atomic(List.of(repr("a", 2, new Object()))),
                atomic(List.of(repr("a", 3, event(3))))));
        sender.expectMsgAnyClassOf(SOON, Object.class);
        sender.expectMsgClass(SOON, JournalProtocol.WriteMessageSuccess.class);
        assertThat(sender.expectMsgClass(SOON, JournalProtocol.WriteMessageRejected.class)
                        .cause())
                .hasMessageContaining("cannot serialize an event of a");
        sender.expectMsgClass(SOON, JournalProtocol.WriteMessageSuccess.class);
        assertThat(replayAll("a").numbers).containsExactly(1L, 3L);
    }

    @Test
    void aLogThatCannotBeWrittenFailsTheWrite() {
        write("a", 1, 1);
        OpenLogs.open(file()).log().close();
        send(List.of(atomic(List.of(repr("a", 2, event(2))))));
        assertThat(sender.expectMsgClass(SOON, JournalProtocol.WriteMessagesFailed.class)
                        .cause())
                .hasMessageContaining("event log");
        sender.expectMsgClass(SOON, JournalProtocol.WriteMessageFailure.class);
        journal.tell(PoisonPill.getInstance(), sender.getRef());
    }
}
