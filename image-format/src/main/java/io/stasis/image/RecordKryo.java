package io.stasis.image;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.Registration;
import com.esotericsoftware.kryo.Serializer;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import java.util.List;

/**
 * A Kryo for records that come from a file: it makes no object larger than the bytes that are there allow, whatever
 * lengths the file claims, and does not follow nesting without end. Not for use by two threads.
 */
final class RecordKryo extends Kryo {
    private static final int DEEPEST = 64;

    RecordKryo() {
        setRegistrationRequired(true);
        setReferences(false);
        setMaxDepth(DEEPEST);
    }

    /** Lists are one kind on disk, whatever class they have in memory. */
    @Override
    @SuppressWarnings("rawtypes")
    public Registration getRegistration(Class type) {
        return super.getRegistration(List.class.isAssignableFrom(type) ? List.class : type);
    }

    /** What lies in memory already, read with a look at what is left before anything is made. */
    static final class BoundedInput extends Input {
        BoundedInput(byte[] bytes, int offset, int length) {
            super(bytes, offset, length);
        }

        /** Fails unless {@code count} things of at least one byte each can follow. */
        private int bounded(int count) {
            if (count < 0 || count > limit - position) {
                throw new KryoException("a length of " + Integer.toUnsignedString(count) + " where "
                        + (limit - position) + " bytes follow");
            }
            return count;
        }

        @Override
        public byte[] readBytes(int length) {
            return super.readBytes(bounded(length));
        }

        @Override
        public int[] readInts(int length) {
            return super.readInts(bounded(length));
        }

        @Override
        public int[] readInts(int length, boolean optimizePositive) {
            return super.readInts(bounded(length), optimizePositive);
        }

        @Override
        public long[] readLongs(int length) {
            return super.readLongs(bounded(length));
        }

        @Override
        public long[] readLongs(int length, boolean optimizePositive) {
            return super.readLongs(bounded(length), optimizePositive);
        }

        @Override
        public String readString() {
            int start = position;
            if (readVarIntFlag()) {
                // The number of characters and one; 0 stands for null.
                bounded(Math.max(0, Math.subtractExact(readVarIntFlag(true), 1)));
            }
            position = start;
            return super.readString();
        }
    }

    /** Number of elements, then each with its class. */
    static final class ListSerializer extends Serializer<List<?>> {
        ListSerializer() {
            super(false, true);
        }

        @Override
        public void write(Kryo kryo, Output output, List<?> list) {
            output.writeVarInt(list.size(), true);
            list.forEach(element -> kryo.writeClassAndObject(output, element));
        }

        @Override
        public List<?> read(Kryo kryo, Input input, Class<? extends List<?>> type) {
            Object[] elements = new Object[((BoundedInput) input).bounded(input.readVarInt(true))];
            for (int i = 0; i < elements.length; i++) {
                elements[i] = kryo.readClassAndObject(input);
            }
            return List.of(elements);
        }
    }
}
