package io.stasis.actors;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.Behaviors;
import akka.persistence.typed.PersistenceId;
import akka.persistence.typed.javadsl.CommandHandler;
import akka.persistence.typed.javadsl.EventHandler;
import akka.persistence.typed.javadsl.EventSourcedBehavior;
import io.stasis.engine.ProcessKey;
import io.stasis.engine.lifecycle.Decision;
import io.stasis.engine.lifecycle.ThreadLifecycle;
import java.util.ArrayList;
import java.util.List;

/**
 * One thread. What happened to it during an operation is recorded in one go when the process runs again: the facts are
 * in the process's own events before, so that nothing is lost and nothing of it costs the pause.
 */
final class ThreadActor extends EventSourcedBehavior<ThreadActor.Record, ThreadLifecycle.Event, ThreadLifecycle.State> {
    /** @param commands in order; those that do not fit are passed over */
    record Record(List<ThreadLifecycle.Command> commands, ActorRef<NodeAgent.Command> replyTo, String operation)
            implements Message {}

    private ThreadActor(ProcessKey process, int tid) {
        super(PersistenceId.ofUniqueId("thread|" + process + "/" + tid));
    }

    static Behavior<Record> create(ProcessKey process, int tid) {
        return Behaviors.setup(context -> new ThreadActor(process, tid));
    }

    @Override
    public ThreadLifecycle.State emptyState() {
        return ThreadLifecycle.initial();
    }

    @Override
    public CommandHandler<Record, ThreadLifecycle.Event, ThreadLifecycle.State> commandHandler() {
        return newCommandHandlerBuilder()
                .forAnyState()
                .onCommand(Record.class, (state, record) -> {
                    List<ThreadLifecycle.Event> events = new ArrayList<>();
                    ThreadLifecycle.State now = state;
                    for (ThreadLifecycle.Command command : record.commands) {
                        if (ThreadLifecycle.decide(now, command)
                                instanceof
                                Decision.Accepted<ThreadLifecycle.Event>(List<ThreadLifecycle.Event> accepted)) {
                            for (ThreadLifecycle.Event event : accepted) {
                                now = ThreadLifecycle.evolve(now, event);
                                events.add(event);
                            }
                        }
                    }
                    return Effect()
                            .persist(events)
                            .thenRun(() -> record.replyTo.tell(new NodeAgent.Recorded(record.operation)))
                            .thenStop();
                })
                .build();
    }

    @Override
    public EventHandler<ThreadLifecycle.State, ThreadLifecycle.Event> eventHandler() {
        return newEventHandlerBuilder().forAnyState().onAnyEvent(ThreadLifecycle::evolve);
    }
}
