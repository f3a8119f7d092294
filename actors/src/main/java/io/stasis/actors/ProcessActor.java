package io.stasis.actors;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.persistence.typed.PersistenceId;
import akka.persistence.typed.javadsl.CommandHandler;
import akka.persistence.typed.javadsl.Effect;
import akka.persistence.typed.javadsl.EventHandler;
import akka.persistence.typed.javadsl.EventSourcedBehavior;
import io.stasis.engine.Outcome;
import io.stasis.engine.ProcessKey;
import io.stasis.engine.lifecycle.Decision;
import io.stasis.engine.lifecycle.Phase;
import io.stasis.engine.lifecycle.ProcessLifecycle;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;

/**
 * One process during an operation. Its events drive the native work: the intent of a phase is in the log before the
 * work is asked for, the outcome after.
 */
final class ProcessActor
        extends EventSourcedBehavior<ProcessActor.Command, ProcessLifecycle.Event, ProcessLifecycle.State> {
    sealed interface Command extends Message {}

    /** @param cause id of the operation */
    record Begin(Phase phase, String cause, ActorRef<Report> replyTo) implements Command {}

    record Done(Outcome outcome, ActorRef<Report> replyTo) implements Command {}

    record Failed(Answer.Refused why, ActorRef<Report> replyTo) implements Command {}

    /** Closes whatever is open, and stops the actor. */
    record Abandon(String reason, ActorRef<Report> replyTo) implements Command {}

    /** What the node agent hears. */
    sealed interface Report extends Message {}

    record Completed(ProcessKey process, Outcome outcome) implements Report {}

    record Broken(ProcessKey process, Answer.Refused why) implements Report {}

    record LetGo(ProcessKey process) implements Report {}

    private final ProcessKey key;
    private final Function<Phase, CompletionStage<? extends Outcome>> work;
    private final ActorContext<Command> context;

    private ProcessActor(
            ActorContext<Command> context, ProcessKey key, Function<Phase, CompletionStage<? extends Outcome>> work) {
        super(PersistenceId.ofUniqueId("process|" + key));
        this.context = context;
        this.key = key;
        this.work = work;
    }

    /** @param work does a phase for this process on its tracer thread */
    static Behavior<Command> create(ProcessKey key, Function<Phase, CompletionStage<? extends Outcome>> work) {
        return Behaviors.setup(context -> new ProcessActor(context, key, work));
    }

    @Override
    public ProcessLifecycle.State emptyState() {
        return ProcessLifecycle.initial();
    }

    @Override
    public CommandHandler<Command, ProcessLifecycle.Event, ProcessLifecycle.State> commandHandler() {
        return newCommandHandlerBuilder()
                .forAnyState()
                .onCommand(Begin.class, this::begin)
                .onCommand(Done.class, this::done)
                .onCommand(Failed.class, this::failed)
                .onCommand(Abandon.class, this::abandon)
                .build();
    }

    private Effect<ProcessLifecycle.Event, ProcessLifecycle.State> begin(ProcessLifecycle.State state, Begin begin) {
        // A process whose agent died in the middle of a phase has run on since.
        List<ProcessLifecycle.Event> recovered = unfinished(state, begin.phase);
        ProcessLifecycle.State now = state;
        for (ProcessLifecycle.Event event : recovered) {
            now = ProcessLifecycle.evolve(now, event);
        }
        return switch (ProcessLifecycle.decide(now, new ProcessLifecycle.Command.Begin(begin.phase, begin.cause))) {
            case Decision.Accepted<ProcessLifecycle.Event>(List<ProcessLifecycle.Event> events) -> {
                List<ProcessLifecycle.Event> all = new java.util.ArrayList<>(recovered);
                all.addAll(events);
                yield Effect().persist(all).thenRun(() -> work(begin));
            }
            case Decision.Rejected<ProcessLifecycle.Event>(String reason) ->
                Effect()
                        .none()
                        .thenRun(() -> begin.replyTo.tell(new Broken(
                                key, new Answer.Refused("failed", 1, "process " + key.pid() + ": " + reason))));
        };
    }

    private static List<ProcessLifecycle.Event> unfinished(ProcessLifecycle.State state, Phase next) {
        boolean first = next == Phase.SUSPEND || next == Phase.CREATE;
        return first
                        && ProcessLifecycle.decide(
                                        state, new ProcessLifecycle.Command.Abandon("the agent ended meanwhile"))
                                instanceof
                                Decision.Accepted<ProcessLifecycle.Event>(List<ProcessLifecycle.Event> events)
                ? events
                : List.of();
    }

    private void work(Begin begin) {
        context.pipeToSelf(
                work.apply(begin.phase),
                (outcome, failure) -> failure == null
                        ? new Done(outcome, begin.replyTo)
                        : new Failed(Answer.Refused.of(failure), begin.replyTo));
    }

    private Effect<ProcessLifecycle.Event, ProcessLifecycle.State> done(ProcessLifecycle.State state, Done done) {
        return switch (ProcessLifecycle.decide(state, new ProcessLifecycle.Command.Complete(done.outcome))) {
            case Decision.Accepted<ProcessLifecycle.Event>(List<ProcessLifecycle.Event> events) -> {
                // The tree may go on at once: this actor logs the outcome before it takes the next command.
                done.replyTo.tell(new Completed(key, done.outcome));
                yield Effect().persist(events);
            }
            case Decision.Rejected<ProcessLifecycle.Event>(String reason) ->
                Effect()
                        .none()
                        .thenRun(() -> done.replyTo.tell(new Broken(
                                key, new Answer.Refused("failed", 1, "process " + key.pid() + ": " + reason))));
        };
    }

    private Effect<ProcessLifecycle.Event, ProcessLifecycle.State> failed(ProcessLifecycle.State state, Failed failed) {
        return switch (ProcessLifecycle.decide(state, new ProcessLifecycle.Command.Fail(failed.why.message()))) {
            case Decision.Accepted<ProcessLifecycle.Event>(List<ProcessLifecycle.Event> events) ->
                Effect().persist(events).thenRun(() -> failed.replyTo.tell(new Broken(key, failed.why)));
            case Decision.Rejected<ProcessLifecycle.Event> rejected ->
                Effect().none().thenRun(() -> failed.replyTo.tell(new Broken(key, failed.why)));
        };
    }

    private Effect<ProcessLifecycle.Event, ProcessLifecycle.State> abandon(
            ProcessLifecycle.State state, Abandon abandon) {
        List<ProcessLifecycle.Event> events = ProcessLifecycle.decide(
                                state, new ProcessLifecycle.Command.Abandon(abandon.reason))
                        instanceof Decision.Accepted<ProcessLifecycle.Event>(List<ProcessLifecycle.Event> accepted)
                ? accepted
                : List.of();
        return Effect()
                .persist(events)
                .thenRun(() -> abandon.replyTo.tell(new LetGo(key)))
                .thenStop();
    }

    @Override
    public EventHandler<ProcessLifecycle.State, ProcessLifecycle.Event> eventHandler() {
        return newEventHandlerBuilder().forAnyState().onAnyEvent(ProcessLifecycle::evolve);
    }
}
