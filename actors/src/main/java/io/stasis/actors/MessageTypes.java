package io.stasis.actors;

import io.stasis.engine.PidChoice;
import io.stasis.engine.RestartOptions;
import io.stasis.engine.lifecycle.ConnectionLifecycle;
import io.stasis.engine.lifecycle.ThreadLifecycle;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** All messages of this module, in an order that agents of one version agree on. */
public final class MessageTypes {
    public static final List<Class<?>> ALL = all();

    private MessageTypes() {}

    private static List<Class<?>> all() {
        List<Class<?>> types = new ArrayList<>();
        for (Class<?> protocol : List.of(
                Answer.class,
                ProcessActor.class,
                ThreadActor.class,
                ConnectionActor.class,
                NodeAgent.class,
                ComputationActor.class,
                Coordinator.class)) {
            List<Class<?>> nested = new ArrayList<>(List.of(protocol.getDeclaredClasses()));
            nested.sort(Comparator.comparing(Class::getName));
            nested.stream().filter(Class::isRecord).forEach(types::add);
        }
        for (Class<?> command : List.of(ThreadLifecycle.Command.class, ConnectionLifecycle.Command.class)) {
            List<Class<?>> nested = new ArrayList<>(List.of(command.getDeclaredClasses()));
            nested.sort(Comparator.comparing(Class::getName));
            types.addAll(nested);
        }
        types.add(RestartOptions.class);
        types.add(PidChoice.class);
        return List.copyOf(types);
    }
}
