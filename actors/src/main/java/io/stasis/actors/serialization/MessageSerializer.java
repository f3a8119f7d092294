package io.stasis.actors.serialization;

import akka.actor.ExtendedActorSystem;
import akka.actor.typed.ActorRef;
import akka.actor.typed.ActorRefResolver;
import akka.actor.typed.javadsl.Adapter;
import akka.serialization.JSerializer;
import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.Serializer;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import io.stasis.actors.MessageTypes;

/** Akka's serializer for everything actors send each other and log: Kryo with registered classes. */
public final class MessageSerializer extends JSerializer {
    private static final int IDENTIFIER = 3_141_592;
    private static final int FIRST_MESSAGE = 300;
    private static final int ACTOR_REF = 50;

    private final KryoPool kryo;

    public MessageSerializer(ExtendedActorSystem system) {
        ActorRefResolver resolver = ActorRefResolver.get(Adapter.toTyped(system));
        this.kryo = new KryoPool(made -> {
            RefSerializer refs = new RefSerializer(resolver);
            made.addDefaultSerializer(ActorRef.class, refs);
            made.register(resolver.resolveActorRef(refPath(system)).getClass(), refs, ACTOR_REF);
            KryoPool.register(made, MessageTypes.ALL, FIRST_MESSAGE);
        });
    }

    private static String refPath(ExtendedActorSystem system) {
        return Adapter.toTyped(system).deadLetters().path().toSerializationFormat();
    }

    @Override
    public int identifier() {
        return IDENTIFIER;
    }

    @Override
    public boolean includeManifest() {
        return false;
    }

    @Override
    public byte[] toBinary(Object object) {
        return kryo.write(object);
    }

    @Override
    public Object fromBinaryJava(byte[] bytes, Class<?> manifest) {
        return kryo.read(bytes);
    }

    /** Actor references travel as their addresses. */
    private static final class RefSerializer extends Serializer<ActorRef<?>> {
        private final ActorRefResolver resolver;

        RefSerializer(ActorRefResolver resolver) {
            super(false, true);
            this.resolver = resolver;
        }

        @Override
        public void write(Kryo kryo, Output output, ActorRef<?> ref) {
            output.writeString(resolver.toSerializationFormat(ref));
        }

        @Override
        public ActorRef<?> read(Kryo kryo, Input input, Class<? extends ActorRef<?>> type) {
            return resolver.resolveActorRef(input.readString());
        }
    }
}
