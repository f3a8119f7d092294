package io.stasis.engine.resource.event;

import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.image.model.OpenDescription.SignalQueue;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.ptrace.CallTable;

/**
 * signalfd(2): the set of signals it accepts, from /proc/PID/fdinfo. The signals themselves are pending for the process
 * or thread that reads, and are kept there.
 */
public final class SignalQueues implements DescriptorKind<SignalQueue> {
    private static final String LINK = "anon_inode:[signalfd]";
    /** Bytes of the kernel's sigset_t. */
    private static final int SIGNAL_SET_BYTES = 8;

    @Override
    public Class<SignalQueue> type() {
        return SignalQueue.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        return descriptor.link().equals(LINK);
    }

    @Override
    public SignalQueue capture(Descriptor descriptor) {
        long mask = descriptor
                .info()
                .value("sigmask")
                .map(text -> Long.parseUnsignedLong(text, 16))
                .orElse(0L);
        return new SignalQueue(descriptor.statusFlags(), mask);
    }

    @Override
    public void open(SignalQueue description, int target, StubCalls stub) {
        CallTable calls = stub.calls();
        int made = calls.must(
                "make a signalfd",
                SystemCall.SIGNALFD4,
                -1,
                calls.longs(description.mask()),
                SIGNAL_SET_BYTES,
                (description.statusFlags() & Fcntl.O_NONBLOCK) | Fcntl.O_CLOEXEC);
        stub.place(made, target);
    }
}
