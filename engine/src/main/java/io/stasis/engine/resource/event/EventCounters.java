package io.stasis.engine.resource.event;

import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.image.model.OpenDescription.EventCounter;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.ptrace.CallTable;

/** eventfd(2): its counter and whether it is a semaphore, from /proc/PID/fdinfo. */
public final class EventCounters implements DescriptorKind<EventCounter> {
    private static final String LINK = "anon_inode:[eventfd]";
    private static final int EFD_SEMAPHORE = 1;

    @Override
    public Class<EventCounter> type() {
        return EventCounter.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        return descriptor.link().equals(LINK);
    }

    @Override
    public EventCounter capture(Descriptor descriptor) {
        long count = descriptor
                .info()
                .value("eventfd-count")
                .map(text -> Long.parseUnsignedLong(text, 16))
                .orElse(0L);
        boolean semaphore = descriptor
                .info()
                .value("eventfd-semaphore")
                .map(text -> text.equals("1"))
                .orElse(false);
        return new EventCounter(descriptor.statusFlags(), count, semaphore);
    }

    @Override
    public void open(EventCounter description, int target, StubCalls stub) {
        CallTable calls = stub.calls();
        int flags = (description.statusFlags() & Fcntl.O_NONBLOCK)
                | (description.semaphore() ? EFD_SEMAPHORE : 0)
                | Fcntl.O_CLOEXEC;
        int made = calls.must("make an eventfd", SystemCall.EVENTFD2, 0, flags);
        int moved = calls.must("make an eventfd", SystemCall.DUP3, 0, target, Fcntl.O_CLOEXEC);
        calls.forward(made, moved, 0);
        if (description.count() != 0) {
            calls.must("set an eventfd's counter", SystemCall.WRITE, target, calls.longs(description.count()), 8);
        }
        stub.closeTemporaries();
    }
}
