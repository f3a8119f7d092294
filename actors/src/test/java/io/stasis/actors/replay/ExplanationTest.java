package io.stasis.actors.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.engine.Outcome;
import io.stasis.engine.lifecycle.ComputationLifecycle.Event;
import io.stasis.engine.lifecycle.Phase;
import io.stasis.engine.lifecycle.ProcessLifecycle;
import io.stasis.image.log.EventLog;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ExplanationTest {
    private static final String REASON =
            "could not read process 100: process_vm_readv: EPERM (Operation not permitted)";

    @TempDir
    Path directory;

    private static Explanation last(List<EventLog.Entry> entries) {
        return Explanation.of(Operations.of(entries).getLast(), entries);
    }

    @Test
    void aFailureIsToldWithItsPhaseItsProcessItsThreadAndWhatTheKernelAnswered() {
        Explanation told = last(new LogStory()
                .registered()
                .started(false)
                .suspended()
                .computation(new Event.PhaseStarted(Phase.DRAIN))
                .process(new ProcessLifecycle.Event.Intended(Phase.DRAIN, LogStory.OPERATION))
                .process(new ProcessLifecycle.Event.Failed(Phase.DRAIN, REASON))
                .process(new ProcessLifecycle.Event.Abandoned(REASON))
                .computation(new Event.Aborted(LogStory.OPERATION, REASON))
                .entries(directory));
        assertThat(told.verdict())
                .contains("checkpoint job#1", "failed", "in phase DRAIN", "process|host/100@7", REASON);
        assertThat(told.entity()).isEqualTo("process|host/100@7");
        assertThat(told.thread()).contains("thread 100", "in read", "system call 0", "0x1000");
        assertThat(told.kernel()).isEqualTo("EPERM (Operation not permitted)");
        assertThat(told.lastEvents()).last().asString().contains("let go");
        assertThat(told.phases()).anyMatch(line -> line.startsWith("DRAIN") && line.contains("not finished"));
    }

    @Test
    void aProcessThatNeverAnsweredIsWhatWasWaitedFor() {
        Explanation told = last(new LogStory()
                .registered()
                .started(false)
                .computation(new Event.PhaseStarted(Phase.SUSPEND))
                .process(new ProcessLifecycle.Event.Intended(Phase.SUSPEND, LogStory.OPERATION))
                .entries(directory));
        assertThat(told.verdict()).contains("is in phase SUSPEND where the log ends");
        assertThat(told.entity()).isEqualTo("process|host/100@7");
        assertThat(told.thread()).isNull();
    }

    @Test
    void aRefusalBeforeTheFirstPhaseIsToldAsSuch() {
        Explanation told = last(new LogStory()
                .registered()
                .started(false)
                .computation(new Event.Aborted(LogStory.OPERATION, "process 100 holds a netlink socket"))
                .entries(directory));
        assertThat(told.verdict()).contains("before its first phase, with nothing frozen", "netlink");
        assertThat(told.kernel()).isNull();
    }

    @Test
    void aSlowCheckpointIsToldByItsLongestPhase() {
        Explanation told = last(
                new LogStory().registered().started(false).resumed().committed().entries(directory));
        assertThat(told.verdict()).contains("took 0.02 ms", "its longest phase was");
        assertThat(told.text()).contains("SUSPEND", "DRAIN", "WRITE", "REFILL", "RESUME", "refused nothing");
        assertThat(told.json()).containsKeys("verdict", "phases", "entity", "thread", "kernel", "lastEvents");
    }

    @Test
    void theCriticalPathIsTheChainOfStepsThatEachWaitedForTheOneBefore() {
        var other = new io.stasis.engine.ProcessKey("host", 101, 8);
        Operation operation = Operations.of(new LogStory()
                        .registered()
                        .started(false)
                        .suspended()
                        .tell("process|" + other, new ProcessLifecycle.Event.Intended(Phase.SUSPEND, "job#1"))
                        .tell(
                                "process|" + other,
                                new ProcessLifecycle.Event.Suspended(
                                        new Outcome.Suspended(other, List.of(), List.of(), 1500, 2500)))
                        .entries(directory))
                .getFirst();
        assertThat(operation.steps()).hasSize(2);
        assertThat(operation.criticalPath()).extracting(Operation.Step::entity).containsExactly("process|host/100@7");
    }
}
