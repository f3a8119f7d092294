package io.stasis.engine.resource;

import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.ptrace.CallTable;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * The stub's descriptor table while descriptions are opened in it. Descriptors 0, 1 and 2 are open and stay as they
 * are; {@link #FIRST} is the lowest free one, so that the kernel gives it to whatever is opened next.
 */
public final class StubCalls {
    /** What an open gives. */
    public static final int FIRST = 3;

    private static final int F_SETFL = 4;

    private final Supplier<CallTable> table;
    private final int highBase;
    private final int namelessBase;
    private final Consumer<Consumer<StubDescriptors>> interlude;

    /**
     * @param table the table to add to, cut into pieces that fit by its owner
     * @param highBase the stub's descriptor of the first description
     * @param namelessBase the stub's descriptor of the first file without a path
     * @param interlude see {@link #then}
     */
    StubCalls(
            Supplier<CallTable> table, int highBase, int namelessBase, Consumer<Consumer<StubDescriptors>> interlude) {
        this.table = table;
        this.highBase = highBase;
        this.namelessBase = namelessBase;
        this.interlude = interlude;
    }

    /**
     * Lets the calls added so far run, and then does something through the stub's descriptors that calls alone cannot do,
     * such as trying again. Only in the stub.
     */
    public void then(Consumer<StubDescriptors> action) {
        interlude.accept(action);
    }

    /** Where a description of the image is open. */
    public int descriptor(int index) {
        return highBase + index;
    }

    /** The lowest number that a description has. */
    public int base() {
        return highBase;
    }

    public CallTable calls() {
        return table.get();
    }

    /** Opens a path at {@code target}, never creating or truncating anything. */
    public void open(String path, int flags, int target) {
        int safe = flags & ~(Fcntl.O_CREAT | Fcntl.O_EXCL | Fcntl.O_TRUNC | Fcntl.O_CLOEXEC | Fcntl.FASYNC)
                | Fcntl.O_NOCTTY;
        CallTable calls = calls();
        int opened = calls.must(
                "open " + path, SystemCall.OPENAT, Fcntl.AT_FDCWD, calls.string(path), safe | Fcntl.O_CLOEXEC, 0);
        place(opened, target);
    }

    /** Moves the descriptor that the call number {@code opened} of the current table gives to {@code target}. */
    public void place(int opened, int target) {
        CallTable calls = calls();
        int moved = calls.must("place descriptor " + target, SystemCall.DUP3, 0, target, Fcntl.O_CLOEXEC);
        calls.forward(opened, moved, 0);
        closeTemporaries();
    }

    /**
     * A path that opens a file of the image that has none, see {@link
     * io.stasis.image.model.ComputationImage#namelessFiles()}.
     */
    public String namelessFile(int index) {
        return "/proc/self/fd/" + (namelessBase + index);
    }

    public void duplicate(int from, int target) {
        calls().must("duplicate descriptor " + from, SystemCall.DUP3, from, target, Fcntl.O_CLOEXEC);
    }

    public void setStatusFlags(int fd, int flags) {
        int settable = flags & (Fcntl.O_APPEND | Fcntl.O_NONBLOCK | Fcntl.O_DIRECT | Fcntl.O_NOATIME);
        calls().must("set status flags", SystemCall.FCNTL, fd, F_SETFL, settable);
    }

    /** Closes everything between the standard descriptors and the descriptions. */
    public void closeTemporaries() {
        calls().must("close temporary descriptors", SystemCall.CLOSE_RANGE, FIRST, highBase - 1, 0);
    }
}
