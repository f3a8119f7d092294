package io.stasis.linux.ptrace;

import io.stasis.linux.libc.SystemCall;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * System calls to be made inside another process, in one go, with the data they point to.
 *
 * <pre>{@code
 * var calls = new CallTable();
 * int opened = calls.must("open /dev/null", SystemCall.OPENAT, -100, calls.string("/dev/null"), O_RDWR, 0);
 * int moved = calls.must("move it to descriptor 7", SystemCall.DUP3, 0, 7, 0);
 * calls.forward(opened, moved, 0);         // the first call's result is the second one's first argument
 * var results = remote.run(thread, calls);
 * }</pre>
 *
 * The table is interpreted by a loop of a few instructions in the target, see {@link InjectionBlock}. One entry:
 *
 * <pre>
 *   +0   system call number
 *   +8   six arguments
 *   +56  result, written by the target
 *   +64  address that gets a copy of the result, 0 for none
 *   +72  1 when an error ends the table early
 * </pre>
 *
 * Values returned by {@link #data}, {@link #string} and {@link #reserve} are handles, good only as arguments of this
 * table's calls; they become addresses when it is placed.
 */
public final class CallTable {
    /** Bytes of one entry. */
    static final int ENTRY = 80;

    static final int RESULT = 56;
    static final int FORWARD = 64;
    static final int STRICT = 72;

    /** Upper bits of a handle: no canonical user address, size, mask or descriptor looks like this. */
    private static final long HANDLE = 0x5da7_0000_0000_0000L;

    private static final long HANDLE_MASK = 0xffff_0000_0000_0000L;

    private record Entry(String what, long number, long[] arguments, boolean strict) {}

    private record Forward(int from, int to, int argument) {}

    private final List<Entry> entries = new ArrayList<>();
    private final List<Forward> forwards = new ArrayList<>();
    /** Positions in the data of longs that are handles. */
    private final List<Integer> pointers = new ArrayList<>();

    private final ByteArrayOutputStream data = new ByteArrayOutputStream();

    /** Adds a call whose result the caller looks at. Returns its index. */
    public int query(long number, long... arguments) {
        return add(null, number, false, arguments);
    }

    /** Adds a call that must succeed: an error ends the table and is thrown, with {@code what}. Returns its index. */
    public int must(String what, long number, long... arguments) {
        return add(what, number, true, arguments);
    }

    private int add(String what, long number, boolean strict, long... arguments) {
        entries.add(new Entry(what, number, java.util.Arrays.copyOf(arguments, 6), strict));
        return entries.size() - 1;
    }

    /** Makes the result of call {@code from} the argument number {@code argument} (0 to 5) of call {@code to}. */
    public void forward(int from, int to, int argument) {
        forwards.add(new Forward(from, to, argument));
    }

    /** Adds bytes for calls to read; 16-byte aligned. */
    public long data(byte[] bytes) {
        while ((data.size() & 15) != 0) {
            data.write(0);
        }
        long handle = HANDLE | data.size();
        data.writeBytes(bytes);
        return handle;
    }

    /** Adds a zero-terminated string. */
    public long string(String text) {
        byte[] bytes = text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        return data(java.util.Arrays.copyOf(bytes, bytes.length + 1));
    }

    /** Adds longs, in this machine's byte order. Handles among them become addresses: pointers in a structure. */
    public long longs(long... values) {
        ByteBuffer buffer = ByteBuffer.allocate(8 * values.length).order(ByteOrder.nativeOrder());
        buffer.asLongBuffer().put(values);
        long handle = data(buffer.array());
        for (int i = 0; i < values.length; i++) {
            if (isHandle(values[i])) {
                pointers.add((int) (handle ^ HANDLE) + 8 * i);
            }
        }
        return handle;
    }

    private static boolean isHandle(long value) {
        return (value & HANDLE_MASK) == HANDLE;
    }

    /** Adds zeroed room for calls to write to. */
    public long reserve(int bytes) {
        return data(new byte[bytes]);
    }

    public int size() {
        return entries.size();
    }

    public boolean isEmpty() {
        return entries.isEmpty();
    }

    /** Bytes that the placed table takes. */
    public int bytes() {
        return dataOffset() + data.size();
    }

    int dataOffset() {
        return (entries.size() * ENTRY + 15) & ~15;
    }

    /** What the call at {@code index} was to do, for an error message. */
    String describe(int index) {
        Entry entry = entries.get(index);
        String call = SystemCall.name(entry.number);
        return entry.what == null ? call : entry.what + " (" + call + ")";
    }

    /** The table as it must lie at {@code base}. */
    ByteBuffer place(long base) {
        ByteBuffer out = io.stasis.linux.libc.Libc.buffer(bytes());
        long dataBase = base + dataOffset();
        for (int i = 0; i < entries.size(); i++) {
            Entry entry = entries.get(i);
            int at = i * ENTRY;
            out.putLong(at, entry.number);
            for (int k = 0; k < 6; k++) {
                long argument = entry.arguments[k];
                out.putLong(at + 8 + 8 * k, isHandle(argument) ? dataBase + (argument ^ HANDLE) : argument);
            }
            out.putLong(at + STRICT, entry.strict ? 1 : 0);
        }
        for (Forward forward : forwards) {
            out.putLong(forward.from * ENTRY + FORWARD, base + (long) forward.to * ENTRY + 8 + 8L * forward.argument);
        }
        out.put(dataOffset(), data.toByteArray());
        for (int position : pointers) {
            int at = dataOffset() + position;
            out.putLong(at, dataBase + (out.getLong(at) ^ HANDLE));
        }
        return out;
    }

    /** What came back from a run. */
    public static final class Results {
        private final CallTable table;
        private final ByteBuffer image;

        Results(CallTable table, ByteBuffer image) {
            this.table = table;
            this.image = image;
        }

        /** The result of call {@code index}, a negated errno included. */
        public long result(int index) {
            return image.getLong(index * ENTRY + RESULT);
        }

        /** Bytes behind a handle, as the calls left them. */
        public byte[] data(long handle, int length) {
            byte[] bytes = new byte[length];
            image.get(table.dataOffset() + (int) (handle ^ HANDLE), bytes);
            return bytes;
        }

        /** A long behind a handle. */
        public long dataLong(long handle, int offset) {
            return image.getLong(table.dataOffset() + (int) (handle ^ HANDLE) + offset);
        }
    }
}
