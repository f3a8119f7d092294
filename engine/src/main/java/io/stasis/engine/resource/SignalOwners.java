package io.stasis.engine.resource;

import io.stasis.engine.Engine.Problem;
import io.stasis.image.model.ComputationImage.SignalOwner;
import io.stasis.linux.Fd;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.ProcStat;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.IntUnaryOperator;

/**
 * Who gets a signal when something happens on a descriptor, and which one: F_SETOWN_EX, F_SETSIG and O_ASYNC of
 * fcntl(2). Any kind of description has them.
 */
final class SignalOwners {
    private static final int F_SETFL = 4;
    private static final int F_GETFL = 3;
    private static final int F_SETSIG = 10;
    private static final int F_GETSIG = 11;
    private static final int F_SETOWN_EX = 15;
    private static final int F_GETOWN_EX = 16;
    private static final int F_OWNER_TID = 0;
    private static final int F_OWNER_PID = 1;

    private SignalOwners() {}

    /** A descriptor whose signals go to somebody outside the tree cannot be captured. */
    static Optional<Problem> problem(Descriptor descriptor, Set<Integer> treePids) {
        if ((descriptor.statusFlags() & Fcntl.FASYNC) == 0) {
            return Optional.empty();
        }
        try (StubDescriptors copies = new StubDescriptors(descriptor.pid())) {
            SignalOwner owner = read(copies, descriptor.fd(), 0);
            return owner == null || owner.id() == 0 || isOfTree(owner, treePids)
                    ? Optional.empty()
                    : Optional.of(DescriptorKind.problem(
                            descriptor,
                            descriptor.link(),
                            "its signals (O_ASYNC) go to process or group " + owner.id() + ", which is not of the tree",
                            "checkpoint the tree that holds both, or switch O_ASYNC off"));
        } catch (io.stasis.linux.KernelException e) {
            return Optional.empty(); // gone meanwhile
        }
    }

    /** What the image keeps; null when nothing was set, or for somebody who would not be there at a restart. */
    static SignalOwner capture(StubDescriptors copies, int fd, int description, Set<Integer> treePids) {
        SignalOwner owner = read(copies, fd, description);
        return owner == null || (owner.id() != 0 && !isOfTree(owner, treePids)) ? null : owner;
    }

    private static SignalOwner read(StubDescriptors copies, int descriptor, int description) {
        try (Fd fd = copies.copy(descriptor)) {
            ByteBuffer owner = Libc.buffer(8);
            owner.putLong(0, 0);
            if (Libc.call(SystemCall.FCNTL, fd.value(), F_GETOWN_EX, Libc.address(owner)) != 0) {
                return null; // O_PATH
            }
            long signal = Libc.check(Libc.call(SystemCall.FCNTL, fd.value(), F_GETSIG, 0), "F_GETSIG");
            boolean asynchronous = (Libc.call(SystemCall.FCNTL, fd.value(), F_GETFL, 0) & Fcntl.FASYNC) != 0;
            int id = owner.getInt(4);
            return id == 0 && signal == 0 && !asynchronous
                    ? null
                    : new SignalOwner(description, owner.getInt(0), id, (int) signal, asynchronous);
        }
    }

    private static boolean isOfTree(SignalOwner owner, Set<Integer> treePids) {
        return switch (owner.type()) {
            case F_OWNER_TID ->
                treePids.stream().anyMatch(pid -> Files.exists(Path.of("/proc/" + pid + "/task/" + owner.id())));
            case F_OWNER_PID -> treePids.contains(owner.id());
            default ->
                treePids.stream()
                        .anyMatch(pid -> ProcStat.find(new Pid(pid))
                                .filter(stat -> stat.pgrp() == owner.id())
                                .isPresent());
        };
    }

    static void restore(List<SignalOwner> owners, StubDescriptors stub, IntUnaryOperator hostIds) {
        for (SignalOwner owner : owners) {
            try (Fd fd = stub.description(owner.description())) {
                ByteBuffer buffer = Libc.buffer(8);
                buffer.putInt(0, owner.type()).putInt(4, hostIds.applyAsInt(owner.id()));
                String whom = "of process, thread or group " + new Tid(owner.id());
                if (owner.id() != 0) {
                    Libc.check(
                            Libc.call(SystemCall.FCNTL, fd.value(), F_SETOWN_EX, Libc.address(buffer)),
                            "F_SETOWN_EX " + whom);
                }
                Libc.check(Libc.call(SystemCall.FCNTL, fd.value(), F_SETSIG, owner.signal()), "F_SETSIG " + whom);
                if (owner.asynchronous()) {
                    long flags = Libc.check(Libc.call(SystemCall.FCNTL, fd.value(), F_GETFL, 0), "F_GETFL");
                    Libc.check(
                            Libc.call(SystemCall.FCNTL, fd.value(), F_SETFL, flags | Fcntl.FASYNC), "F_SETFL " + whom);
                }
            }
        }
    }
}
