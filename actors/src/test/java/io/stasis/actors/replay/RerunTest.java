package io.stasis.actors.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.engine.Outcome;
import io.stasis.engine.lifecycle.ComputationLifecycle.Event;
import io.stasis.engine.lifecycle.ConnectionLifecycle;
import io.stasis.engine.lifecycle.Phase;
import io.stasis.engine.lifecycle.ProcessLifecycle;
import io.stasis.engine.lifecycle.ThreadLifecycle;
import io.stasis.image.log.EventLog;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RerunTest {
    @TempDir
    Path directory;

    private static Rerun.Result rerun(List<EventLog.Entry> entries) {
        return Rerun.of(entries, name -> true);
    }

    private static LogStory whole() {
        return new LogStory().registered().started(false).resumed().committed();
    }

    @Test
    void whatAnAgentLogsIsDecidedAgain() {
        Rerun.Result result = rerun(whole().entries(directory));
        assertThat(result.differences()).isEmpty();
        assertThat(result.continued()).isEmpty();
        assertThat(result.records()).isEqualTo(27);
        assertThat(result.entities()).isEqualTo(4);
    }

    @Test
    void aLogMayBeginInTheMiddleOfEveryOperation() {
        int records = whole().entries(directory).size();
        for (int without = 1; without < records; without++) {
            List<EventLog.Entry> rest = whole().entries(directory.resolve("rest" + without), without);
            assertThat(rerun(rest).differences()).as("without %d", without).isEmpty();
            assertThat(Replay.stateAt(rest, Long.MAX_VALUE)).isNotEmpty();
        }
    }

    @Test
    void anEventThatTheLifecyclesDoNotDecideIsNamed() {
        var story = new LogStory()
                .registered()
                .started(false)
                .suspended()
                .process(new ProcessLifecycle.Event.Resumed(new Outcome.Resumed(LogStory.PROCESS, 1, 1, 2, 3)));
        List<Rerun.Difference> differences = rerun(story.entries(directory)).differences();
        assertThat(differences).hasSize(1);
        assertThat(differences.getFirst().sequence()).isEqualTo(7);
        assertThat(differences.getFirst().entity()).isEqualTo("process|host/100@7");
        assertThat(differences.getFirst().recorded()).startsWith("resumed 1 threads");
        assertThat(differences.getFirst().decided()).startsWith("nothing, as ");
    }

    @Test
    void bytesThatAConnectionNeverHadAreADifference() {
        var story = new LogStory()
                .tell("connection|host/p", new ConnectionLifecycle.Event.Drained(LogStory.PIPE, "x"))
                .tell("connection|host/p", new ConnectionLifecycle.Event.Refilled(4, "x"));
        assertThat(rerun(story.entries(directory)).differences())
                .containsExactly(
                        new Rerun.Difference(2, "connection|host/p", "has its 4 bytes again", "has its 3 bytes again"));
    }

    /** After a checkpoint with --kill the computation has ended: one command, two events. */
    @Test
    void theSecondEventOfACommandIsMissed() {
        var story = new LogStory().registered().started(true).suspended().committed();
        assertThat(rerun(story.entries(directory)).differences())
                .extracting(Rerun.Difference::recorded, Rerun.Difference::decided)
                .containsExactly(
                        org.assertj.core.groups.Tuple.tuple("nothing more", "ended: killed after its checkpoint"));
        story.computation(new Event.Ended("killed after its checkpoint"));
        assertThat(rerun(story.entries(directory.resolve("killed"), 0)).differences())
                .isEmpty();
    }

    @Test
    void aRecordThatWasLeftOutIsMissed() {
        List<EventLog.Entry> entries = new ArrayList<>(whole().entries(directory));
        entries.removeIf(entry -> entry.entitySequence() == 2 && entry.entity().startsWith("process|"));
        assertThat(rerun(entries).differences())
                .extracting(Rerun.Difference::recorded)
                .contains("its event 3 after its event 1");
    }

    @Test
    void aFailureIsOfThePhaseThatWasUnderWay() {
        var story = new LogStory()
                .process(new ProcessLifecycle.Event.Intended(Phase.SUSPEND, "x"))
                .process(new ProcessLifecycle.Event.Failed(Phase.DRAIN, "why"));
        assertThat(rerun(story.entries(directory)).differences())
                .extracting(Rerun.Difference::decided)
                .containsExactly("suspend failed: why");
    }

    @Test
    void onlyTheEntitiesAskedForAreLookedAt() {
        var story = whole().tell("thread|host/9@9/9", new ThreadLifecycle.Event.Resumed("x"));
        List<EventLog.Entry> entries = story.entries(directory);
        assertThat(rerun(entries).differences()).hasSize(1);
        assertThat(Rerun.of(entries, name -> name.startsWith("process|")).differences())
                .isEmpty();
    }

    @Test
    void changesAreThoseOfTheEntitiesThatChanged() {
        List<EventLog.Entry> entries = whole().entries(directory);
        var changes = Replay.changes(entries, 4, 5);
        assertThat(changes).containsOnlyKeys("process|host/100@7");
        assertThat(changes.get("process|host/100@7").get("state")).isEqualTo(new Replay.Change("Doing", "Did"));
        assertThat(Replay.changes(entries, 5, 5)).isEmpty();
    }
}
