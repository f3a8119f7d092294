package io.stasis.engine.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.engine.Outcome;
import io.stasis.engine.ProcessKey;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

/** No sequence of commands leads to an illegal state. */
class LifecyclesTest {
    private static final ProcessKey KEY = new ProcessKey("host", 1, 2);
    private static final Outcome.StopPoint AT = new Outcome.StopPoint(3, -1, "in user code");

    @Provide
    Arbitrary<List<ProcessLifecycle.Command>> processCommands() {
        Arbitrary<ProcessLifecycle.Command> begin =
                Arbitraries.of(Phase.class).map(phase -> new ProcessLifecycle.Command.Begin(phase, "op"));
        Arbitrary<ProcessLifecycle.Command> complete = Arbitraries.of(
                        new Outcome.Suspended(KEY, List.of(new Outcome.StoppedThread(1, "t", AT, 1)), List.of(), 0, 1),
                        new Outcome.Suspended(KEY, List.of(), List.of(), 0, 1),
                        new Outcome.Drained(KEY, 1, List.of(), 0, 1),
                        new Outcome.Written(KEY, 1, 1, 1, 0, 1),
                        new Outcome.Refilled(KEY, List.of(), 0, 1),
                        new Outcome.Resumed(KEY, 1, 1, 0, 1),
                        new Outcome.Created(KEY, 1, 0, 1),
                        new Outcome.Rebuilt(KEY, 1, 1, 1, 1, 0, 1),
                        new Outcome.Released(KEY, 0, 1))
                .map(ProcessLifecycle.Command.Complete::new);
        return Arbitraries.oneOf(
                        begin,
                        complete,
                        Arbitraries.just(new ProcessLifecycle.Command.Fail("why")),
                        Arbitraries.just(new ProcessLifecycle.Command.Abandon("why")))
                .list()
                .ofMaxSize(40);
    }

    @Property(tries = 2000)
    void aProcessGoesThroughItsPhasesInOrder(@ForAll("processCommands") List<ProcessLifecycle.Command> commands) {
        ProcessLifecycle.State state = ProcessLifecycle.initial();
        Phase done = null;
        for (var command : commands) {
            if (ProcessLifecycle.decide(state, command)
                    instanceof Decision.Accepted<ProcessLifecycle.Event>(List<ProcessLifecycle.Event> events)) {
                for (var event : events) {
                    if (event instanceof ProcessLifecycle.Event.Intended(Phase phase, String cause)) {
                        boolean first = phase == Phase.SUSPEND || phase == Phase.CREATE;
                        assertThat(first ? done == null : done != null && done.mayPrecede(phase))
                                .as("%s after %s", phase, done)
                                .isTrue();
                    }
                    state = ProcessLifecycle.evolve(state, event);
                    done = state instanceof ProcessLifecycle.State.Did(Phase phase)
                            ? phase
                            : state instanceof ProcessLifecycle.State.Free
                                            || state instanceof ProcessLifecycle.State.Ended
                                    ? null
                                    : done;
                }
            }
        }
    }

    @Property(tries = 1000)
    void anAbandonedProcessIsFreeOrEnded(@ForAll("processCommands") List<ProcessLifecycle.Command> commands) {
        ProcessLifecycle.State state = ProcessLifecycle.initial();
        for (var command : commands) {
            state = evolved(state, command);
        }
        state = evolved(state, new ProcessLifecycle.Command.Abandon("why"));
        assertThat(state).isInstanceOfAny(ProcessLifecycle.State.Free.class, ProcessLifecycle.State.Ended.class);
    }

    private static ProcessLifecycle.State evolved(ProcessLifecycle.State state, ProcessLifecycle.Command command) {
        ProcessLifecycle.State now = state;
        if (ProcessLifecycle.decide(state, command)
                instanceof Decision.Accepted<ProcessLifecycle.Event>(List<ProcessLifecycle.Event> events)) {
            for (var event : events) {
                now = ProcessLifecycle.evolve(now, event);
            }
        }
        return now;
    }

    @Provide
    Arbitrary<List<ComputationLifecycle.Command>> computationCommands() {
        var tree = new ComputationLifecycle.Tree("host", 1, 2, "cookie", List.of("cmd"));
        var other = new ComputationLifecycle.Tree("other", 1, 2, "cookie", List.of("cmd"));
        return Arbitraries.<ComputationLifecycle.Command>of(
                        new ComputationLifecycle.Command.Register(tree, "dir", 0),
                        new ComputationLifecycle.Command.Register(other, "dir", 5),
                        new ComputationLifecycle.Command.StartCheckpoint("op", 1, "dir", false, "user"),
                        new ComputationLifecycle.Command.StartCheckpoint("op", 1, "dir", true, "user"),
                        new ComputationLifecycle.Command.StartRestart("op", 1, "dir", "head", "user"),
                        new ComputationLifecycle.Command.StartPhase(Phase.SUSPEND),
                        new ComputationLifecycle.Command.StartPhase(Phase.CREATE),
                        new ComputationLifecycle.Command.FinishPhase(Phase.SUSPEND, 1),
                        new ComputationLifecycle.Command.Commit(
                                new ComputationLifecycle.Generation(1, "dir/0001", 1, 1, 1, 1, 1)),
                        new ComputationLifecycle.Command.FinishRestart(List.of(tree)),
                        new ComputationLifecycle.Command.Abort("why"),
                        new ComputationLifecycle.Command.End("why"))
                .list()
                .ofMaxSize(40);
    }

    @Property(tries = 3000)
    void aComputationDoesOneThingAtATime(@ForAll("computationCommands") List<ComputationLifecycle.Command> commands) {
        var state = ComputationLifecycle.initial();
        for (var command : commands) {
            if (ComputationLifecycle.decide(state, command)
                    instanceof Decision.Accepted<ComputationLifecycle.Event>(List<ComputationLifecycle.Event> events)) {
                for (var event : events) {
                    if (event instanceof ComputationLifecycle.Event.CheckpointStarted) {
                        assertThat(state.operation()).isNull();
                        assertThat(state.trees()).isNotEmpty();
                    }
                    if (event instanceof ComputationLifecycle.Event.RestartStarted) {
                        assertThat(state.operation()).isNull();
                        assertThat(state.trees()).isEmpty();
                    }
                    if (event instanceof ComputationLifecycle.Event.PhaseStarted(Phase phase)) {
                        assertThat(state.operation().restart()).isEqualTo(phase.isRestart());
                    }
                    state = ComputationLifecycle.evolve(state, event);
                }
            }
        }
    }

    @Provide
    Arbitrary<List<ThreadLifecycle.Command>> threadCommands() {
        return Arbitraries.<ThreadLifecycle.Command>of(
                        new ThreadLifecycle.Command.Suspend("t", AT, 1, "op"),
                        new ThreadLifecycle.Command.Resume("op"),
                        new ThreadLifecycle.Command.Restore("op"),
                        new ThreadLifecycle.Command.End("op"))
                .list();
    }

    @Property
    void aThreadIsResumedOnlyAfterItWasSuspended(@ForAll("threadCommands") List<ThreadLifecycle.Command> commands) {
        ThreadLifecycle.State state = ThreadLifecycle.initial();
        for (var command : commands) {
            if (ThreadLifecycle.decide(state, command)
                    instanceof Decision.Accepted<ThreadLifecycle.Event>(List<ThreadLifecycle.Event> events)) {
                for (var event : events) {
                    if (event instanceof ThreadLifecycle.Event.Resumed) {
                        assertThat(state).isInstanceOf(ThreadLifecycle.State.Stopped.class);
                    }
                    state = ThreadLifecycle.evolve(state, event);
                }
            }
        }
    }

    @Provide
    Arbitrary<List<ConnectionLifecycle.Command>> connectionCommands() {
        var connection = new Outcome.Connection("pipe:[1]", "pipe", 10, List.of(1, 2));
        return Arbitraries.<ConnectionLifecycle.Command>of(
                        new ConnectionLifecycle.Command.Drain(connection, "op"),
                        new ConnectionLifecycle.Command.Refill(connection, "op"),
                        new ConnectionLifecycle.Command.Abandon("why"))
                .list();
    }

    @Property
    void aConnectionIsNeverDrainedTwiceInARow(
            @ForAll("connectionCommands") List<ConnectionLifecycle.Command> commands) {
        ConnectionLifecycle.State state = ConnectionLifecycle.initial();
        for (var command : commands) {
            if (ConnectionLifecycle.decide(state, command)
                    instanceof Decision.Accepted<ConnectionLifecycle.Event>(List<ConnectionLifecycle.Event> events)) {
                for (var event : events) {
                    if (event instanceof ConnectionLifecycle.Event.Drained) {
                        assertThat(state).isInstanceOf(ConnectionLifecycle.State.Flowing.class);
                    }
                    state = ConnectionLifecycle.evolve(state, event);
                }
            }
        }
    }
}
