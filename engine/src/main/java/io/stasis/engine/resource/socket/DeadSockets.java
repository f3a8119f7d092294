package io.stasis.engine.resource.socket;

import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.image.model.OpenDescription.DeadSocket;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.PidFd;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.ptrace.CallTable;
import java.nio.ByteBuffer;

/**
 * Unix stream sockets whose peer is closed, with nothing left to read. Java keeps one, half of a socketpair, to put in the
 * place of descriptors that are being closed. See unix(7).
 */
public final class DeadSockets implements DescriptorKind<DeadSocket> {
    private static final int AF_UNIX = 1;
    private static final int SOCK_STREAM = 1;
    private static final int SOL_SOCKET = 1;
    private static final int SO_TYPE = 3;
    private static final int SO_DOMAIN = 39;
    private static final int MSG_PEEK_DONTWAIT = 0x42;
    private static final short POLLHUP = 0x10;

    @Override
    public Class<DeadSocket> type() {
        return DeadSocket.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        if (!descriptor.status().isSocket() || descriptor.fd() <= 2) {
            return false;
        }
        // Looked at through a copy of the descriptor; nothing is taken from it.
        try (Fd pidfd = PidFd.open(new Pid(descriptor.pid()));
                Fd fd = PidFd.getFd(pidfd, descriptor.fd())) {
            return option(fd, SO_DOMAIN) == AF_UNIX
                    && option(fd, SO_TYPE) == SOCK_STREAM
                    && isUnnamed(fd)
                    && isHungUp(fd)
                    && isEmpty(fd);
        } catch (KernelException e) {
            return false;
        }
    }

    private static int option(Fd fd, int option) {
        ByteBuffer buffer = Libc.buffer(16);
        buffer.putInt(8, 4);
        long address = Libc.address(buffer);
        long result = Libc.call(SystemCall.GETSOCKOPT, fd.value(), SOL_SOCKET, option, address, address + 8, 0);
        return Libc.isError(result) ? -1 : buffer.getInt(0);
    }

    private static boolean isUnnamed(Fd fd) {
        ByteBuffer buffer = Libc.buffer(128);
        buffer.putInt(120, 110);
        long address = Libc.address(buffer);
        long result = Libc.call(SystemCall.GETSOCKNAME, fd.value(), address, address + 120);
        return result == 0 && buffer.getInt(120) == 2;
    }

    private static boolean isHungUp(Fd fd) {
        ByteBuffer poll = Libc.buffer(8);
        poll.putInt(0, fd.value());
        return Libc.call(SystemCall.POLL, Libc.address(poll), 1, 0) == 1 && (poll.getShort(6) & POLLHUP) != 0;
    }

    private static boolean isEmpty(Fd fd) {
        ByteBuffer one = Libc.buffer(8);
        return Libc.call(SystemCall.RECVFROM, fd.value(), Libc.address(one), 1, MSG_PEEK_DONTWAIT, 0, 0) == 0;
    }

    @Override
    public DeadSocket capture(Descriptor descriptor) {
        return new DeadSocket(descriptor.statusFlags());
    }

    @Override
    public void open(DeadSocket description, int target, StubCalls stub) {
        CallTable calls = stub.calls();
        calls.must("make a socket pair", SystemCall.SOCKETPAIR, AF_UNIX, SOCK_STREAM, 0, calls.reserve(8));
        stub.duplicate(StubCalls.FIRST, target);
        stub.setStatusFlags(target, description.statusFlags() & Fcntl.O_NONBLOCK);
        stub.closeTemporaries();
    }
}
