package io.stasis.actors.serialization;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import com.esotericsoftware.kryo.serializers.ImmutableCollectionsSerializers;
import io.stasis.engine.Engine;
import io.stasis.engine.Outcome;
import io.stasis.engine.ProcessKey;
import io.stasis.engine.lifecycle.ComputationLifecycle;
import io.stasis.engine.lifecycle.Phase;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;

/**
 * Kryo with the classes that events are made of, each with its number on disk: append, never reorder. One instance for
 * each thread.
 */
final class KryoPool {
    private static final List<Class<?>> PARTS = List.of(
            byte[].class,
            int[].class,
            long[].class,
            Phase.class,
            ProcessKey.class,
            Outcome.StopPoint.class,
            Outcome.StoppedThread.class,
            Outcome.Suspended.class,
            Outcome.Connection.class,
            Outcome.Drained.class,
            Outcome.Written.class,
            Outcome.Finished.class,
            Outcome.ImageFile.class,
            Outcome.ProcessSummary.class,
            Outcome.Refilled.class,
            Outcome.Resumed.class,
            Outcome.Created.class,
            Outcome.Rebuilt.class,
            Outcome.Released.class,
            Engine.Problem.class,
            Engine.HostCapability.class,
            ComputationLifecycle.Tree.class,
            ComputationLifecycle.Generation.class,
            ComputationLifecycle.Operation.class,
            ComputationLifecycle.State.class);

    private static final int FIRST_PART = 100;
    private static final int FIRST_EVENT = 200;
    private static final int MOST_BYTES = 64 << 20;

    private final ThreadLocal<Kryo> kryo;
    private final ThreadLocal<Output> output = ThreadLocal.withInitial(() -> new Output(4096, MOST_BYTES));

    /** @param more registers further classes, from number 300 on */
    KryoPool(Consumer<Kryo> more) {
        this.kryo = ThreadLocal.withInitial(() -> {
            Kryo made = new Kryo();
            made.setRegistrationRequired(true);
            made.setReferences(false);
            ImmutableCollectionsSerializers.addDefaultSerializers(made);
            made.register(ArrayList.class, 20);
            made.register(List.of().getClass(), 21);
            made.register(List.of(1).getClass(), 22);
            made.register(List.of(1, 2).subList(0, 1).getClass(), 23);
            made.register(TreeMap.class, 24);
            made.register(LinkedHashMap.class, 25);
            made.register(Map.of().getClass(), 26);
            made.register(Map.of(1, 1).getClass(), 27);
            register(made, PARTS, FIRST_PART);
            register(made, EventTypes.classes(), FIRST_EVENT);
            more.accept(made);
            return made;
        });
    }

    static void register(Kryo kryo, Iterable<Class<?>> classes, int first) {
        int number = first;
        for (Class<?> type : classes) {
            kryo.register(type, number++);
        }
    }

    byte[] write(Object object) {
        Output out = output.get();
        out.reset();
        kryo.get().writeClassAndObject(out, object);
        return out.toBytes();
    }

    Object read(byte[] bytes) {
        return kryo.get().readClassAndObject(new Input(bytes));
    }
}
