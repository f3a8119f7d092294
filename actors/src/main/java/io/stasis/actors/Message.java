package io.stasis.actors;

/** Whatever actors send each other: serializable by the Kryo serializer, as the receiver may be on another host. */
public interface Message {}
