package io.stasis.actors;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.Behaviors;
import akka.persistence.typed.PersistenceId;
import akka.persistence.typed.javadsl.CommandHandler;
import akka.persistence.typed.javadsl.EventHandler;
import akka.persistence.typed.javadsl.EventSourcedBehavior;
import io.stasis.engine.lifecycle.ConnectionLifecycle;
import io.stasis.engine.lifecycle.Decision;
import java.util.ArrayList;
import java.util.List;

/** One pipe or socket between processes; recorded like a thread, see {@link ThreadActor}. */
final class ConnectionActor
        extends EventSourcedBehavior<ConnectionActor.Record, ConnectionLifecycle.Event, ConnectionLifecycle.State> {
    /** @param commands in order; those that do not fit are passed over */
    record Record(List<ConnectionLifecycle.Command> commands, ActorRef<NodeAgent.Command> replyTo, String operation)
            implements Message {}

    private ConnectionActor(String host, String id) {
        super(PersistenceId.ofUniqueId("connection|" + host + "/" + id));
    }

    static Behavior<Record> create(String host, String id) {
        return Behaviors.setup(context -> new ConnectionActor(host, id));
    }

    @Override
    public ConnectionLifecycle.State emptyState() {
        return ConnectionLifecycle.initial();
    }

    @Override
    public CommandHandler<Record, ConnectionLifecycle.Event, ConnectionLifecycle.State> commandHandler() {
        return newCommandHandlerBuilder()
                .forAnyState()
                .onCommand(Record.class, (state, record) -> {
                    List<ConnectionLifecycle.Event> events = new ArrayList<>();
                    ConnectionLifecycle.State now = state;
                    for (ConnectionLifecycle.Command command : record.commands) {
                        if (ConnectionLifecycle.decide(now, command)
                                instanceof
                                Decision.Accepted<ConnectionLifecycle.Event>(
                                        List<ConnectionLifecycle.Event> accepted)) {
                            for (ConnectionLifecycle.Event event : accepted) {
                                now = ConnectionLifecycle.evolve(now, event);
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
    public EventHandler<ConnectionLifecycle.State, ConnectionLifecycle.Event> eventHandler() {
        return newEventHandlerBuilder().forAnyState().onAnyEvent(ConnectionLifecycle::evolve);
    }
}
