package io.stasis.actors.serialization;

import io.stasis.image.ImageException;
import io.stasis.image.log.EventLog;

/** Events of the log as bytes. Needs no actor system, so that a log can be read without one. */
public final class EventCodec {
    private static final KryoPool KRYO = new KryoPool(kryo -> {});

    private EventCodec() {}

    /** @throws RuntimeException when the object is no event */
    public static byte[] encode(Object event) {
        return KRYO.write(event);
    }

    /** @throws ImageException when the record is of a type or form that this version does not know */
    public static Object decode(EventLog.Entry entry) {
        Class<?> type = EventTypes.type(entry.type());
        if (type == null) {
            throw new ImageException("record " + entry.sequence() + " of " + entry.entity() + " is of type "
                    + entry.type() + ", which this version of Stasis does not know; use the version that wrote it");
        }
        try {
            return type.cast(KRYO.read(entry.payload()));
        } catch (RuntimeException e) {
            throw new ImageException(
                    "record " + entry.sequence() + " of " + entry.entity() + " cannot be read: " + e.getMessage(), e);
        }
    }
}
