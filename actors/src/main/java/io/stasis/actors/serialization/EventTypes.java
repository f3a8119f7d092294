package io.stasis.actors.serialization;

import io.stasis.engine.lifecycle.ComputationLifecycle;
import io.stasis.engine.lifecycle.ConnectionLifecycle;
import io.stasis.engine.lifecycle.ProcessLifecycle;
import io.stasis.engine.lifecycle.ThreadLifecycle;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The events of the log by the names they have on disk for ever. A changed event gets a new name with a higher version
 * ("process.suspended.2"); the old name stays readable.
 */
public final class EventTypes {
    private static final Map<Class<?>, String> NAMES = new LinkedHashMap<>();
    private static final Map<String, Class<?>> CLASSES = new HashMap<>();

    static {
        add("computation.registered", ComputationLifecycle.Event.Registered.class);
        add("computation.checkpoint-started", ComputationLifecycle.Event.CheckpointStarted.class);
        add("computation.restart-started", ComputationLifecycle.Event.RestartStarted.class);
        add("computation.phase-started", ComputationLifecycle.Event.PhaseStarted.class);
        add("computation.phase-finished", ComputationLifecycle.Event.PhaseFinished.class);
        add("computation.committed", ComputationLifecycle.Event.Committed.class);
        add("computation.restarted", ComputationLifecycle.Event.Restarted.class);
        add("computation.aborted", ComputationLifecycle.Event.Aborted.class);
        add("computation.ended", ComputationLifecycle.Event.Ended.class);
        add("process.intended", ProcessLifecycle.Event.Intended.class);
        add("process.suspended", ProcessLifecycle.Event.Suspended.class);
        add("process.drained", ProcessLifecycle.Event.Drained.class);
        add("process.written", ProcessLifecycle.Event.Written.class);
        add("process.refilled", ProcessLifecycle.Event.Refilled.class);
        add("process.resumed", ProcessLifecycle.Event.Resumed.class);
        add("process.terminated", ProcessLifecycle.Event.Terminated.class);
        add("process.created", ProcessLifecycle.Event.Created.class);
        add("process.rebuilt", ProcessLifecycle.Event.Rebuilt.class);
        add("process.replenished", ProcessLifecycle.Event.Replenished.class);
        add("process.released", ProcessLifecycle.Event.Released.class);
        add("process.vanished", ProcessLifecycle.Event.Vanished.class);
        add("process.failed", ProcessLifecycle.Event.Failed.class);
        add("process.abandoned", ProcessLifecycle.Event.Abandoned.class);
        add("thread.suspended", ThreadLifecycle.Event.Suspended.class);
        add("thread.resumed", ThreadLifecycle.Event.Resumed.class);
        add("thread.restored", ThreadLifecycle.Event.Restored.class);
        add("thread.ended", ThreadLifecycle.Event.Ended.class);
        add("connection.drained", ConnectionLifecycle.Event.Drained.class);
        add("connection.refilled", ConnectionLifecycle.Event.Refilled.class);
        add("connection.abandoned", ConnectionLifecycle.Event.Abandoned.class);
        add("computation.key-chosen", ComputationLifecycle.Event.KeyChosen.class);
    }

    private EventTypes() {}

    private static void add(String name, Class<?> type) {
        NAMES.put(type, name + ".1");
        CLASSES.put(name + ".1", type);
    }

    /** The name of an event's type; its class name for what is no event of ours (tests' own). */
    public static String name(Object event) {
        return NAMES.getOrDefault(event.getClass(), event.getClass().getName());
    }

    /** Null for a name that this version does not know. */
    static Class<?> type(String name) {
        return CLASSES.get(name);
    }

    static Iterable<Class<?>> classes() {
        return NAMES.keySet();
    }
}
