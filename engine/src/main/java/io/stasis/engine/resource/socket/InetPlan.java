package io.stasis.engine.resource.socket;

import io.stasis.engine.resource.StubCalls;
import io.stasis.engine.resource.StubDescriptors;
import io.stasis.image.model.OpenDescription.InetSocket;
import io.stasis.image.model.OpenDescription.SocketOption;
import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.net.Sockets;
import io.stasis.linux.ptrace.CallTable;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.concurrent.locks.LockSupport;

/**
 * Makes the internet sockets of an image in the stub and joins them. Of a TCP connection one end listens for a moment at
 * its own address, the other binds to its own and connects, and the end that is accepted takes the place of the one that
 * listened. Addresses are shared meanwhile (SO_REUSEADDR); what the program had set comes back with the other options.
 */
final class InetPlan {
    /** How long an address may stay taken by a connection that has just ended: TIME_WAIT can be taken over after 1 s. */
    private static final long PATIENCE_NANOS = 10_000_000_000L;

    /** How long the address of a connection that ended otherwise than by a checkpoint stays taken, and a little more. */
    private static final long TIME_WAIT_NANOS = 65_000_000_000L;

    private static final int IPPROTO_IP = 0;
    private static final int IP_BIND_ADDRESS_NO_PORT = 24;
    private static final int IP_LOCAL_PORT_RANGE = 51;

    private final SortedMap<Integer, InetSocket> byTarget;
    private final StubCalls stub;
    private final Map<Long, Integer> targets = new HashMap<>();

    InetPlan(SortedMap<Integer, InetSocket> byTarget, StubCalls stub) {
        this.byTarget = byTarget;
        this.stub = stub;
        byTarget.forEach((target, socket) -> targets.put(socket.id(), target));
    }

    void open() {
        List<int[]> pairs = pairs();
        Set<Integer> joined = new HashSet<>();
        for (int[] pair : pairs) {
            join(pair[0], pair[1]);
            joined.add(pair[0]);
            joined.add(pair[1]);
        }
        byTarget.forEach((target, socket) -> {
            if (!joined.contains(target)) {
                create(socket, target);
                if (InetSockets.isTcp(socket.type(), socket.protocol()) && socket.remote().length > 0) {
                    bindToConnect(socket, target);
                } else if (new Address(socket.local()).port() != 0 || !new Address(socket.local()).isWildcard()) {
                    bind(socket, target);
                }
                if (socket.backlog() >= 0) {
                    stub.calls()
                            .must(
                                    "listen at " + new Address(socket.local()),
                                    SystemCall.LISTEN,
                                    target,
                                    socket.backlog());
                }
            }
        });
        byTarget.forEach((target, socket) -> {
            if (!joined.contains(target) && socket.remote().length > 0) {
                connectAlone(socket, target);
            }
        });
        byTarget.forEach((target, socket) -> stub.setStatusFlags(target, socket.statusFlags()));
    }

    /** The connections with both ends in the image: the end that listens for a moment, and the one that connects. */
    private List<int[]> pairs() {
        List<int[]> pairs = new ArrayList<>();
        Set<Integer> seen = new HashSet<>();
        byTarget.forEach((target, socket) -> {
            Integer peer = targets.get(socket.peer());
            if (peer != null && !peer.equals(target) && seen.add(target) && seen.add(peer)) {
                // The end at the port of a listening socket was accepted there, as a rule.
                boolean serves = isServer(socket) || !isServer(byTarget.get(peer)) && socket.closed();
                pairs.add(serves ? new int[] {target, peer} : new int[] {peer, target});
            }
        });
        pairs.sort(Comparator.comparingInt(pair -> pair[0]));
        return pairs;
    }

    private boolean isServer(InetSocket socket) {
        Address local = new Address(socket.local());
        return byTarget.values().stream()
                .anyMatch(each -> each.backlog() >= 0 && new Address(each.local()).covers(local));
    }

    private void create(InetSocket socket, int target) {
        CallTable calls = stub.calls();
        int made = calls.must(
                "make a socket",
                SystemCall.SOCKET,
                socket.family(),
                socket.type() | Fcntl.O_CLOEXEC,
                socket.protocol());
        int moved = calls.must("make a socket", SystemCall.DUP3, 0, target, Fcntl.O_CLOEXEC);
        calls.forward(made, moved, 0);
        stub.closeTemporaries();
        option(target, new SocketOption(Sockets.SOL_SOCKET, SocketOptions.SO_REUSEADDR, Sockets.bytes(1)));
        // The ends that nobody holds have no options of their own.
        socket.options().stream()
                .filter(SocketOptions::isEarly)
                .filter(option -> !isZero(option.value()))
                .forEach(option -> option(target, option));
    }

    private static boolean isZero(byte[] value) {
        for (byte each : value) {
            if (each != 0) {
                return false;
            }
        }
        return true;
    }

    private void option(int target, SocketOption option) {
        CallTable calls = stub.calls();
        calls.must(
                "set option " + option.name() + " of level " + option.level(),
                SystemCall.SETSOCKOPT,
                target,
                option.level(),
                option.name(),
                calls.data(option.value()),
                option.value().length);
    }

    private void bind(InetSocket socket, int target) {
        stub.then(descriptors -> {
            long deadline = System.nanoTime() + TIME_WAIT_NANOS;
            while (true) {
                long result = call(SystemCall.BIND, descriptors, target, socket.local());
                boolean passes = result == -Errno.EADDRINUSE
                        && InetSockets.isTcp(socket.type(), socket.protocol())
                        && new InetTable().isOnlyWaiting(new Address(socket.local()));
                if (!passes || System.nanoTime() > deadline) {
                    Libc.check(result, "take the address " + new Address(socket.local()) + " for a socket");
                    return;
                }
                LockSupport.parkNanos(100_000_000);
            }
        });
    }

    /**
     * Gives the end that connects its port as connect(2) would have chosen it, by a range of one: other connections may
     * share the port, which bind(2) does not allow. Kernels before 6.3 have no such range.
     */
    private void bindToConnect(InetSocket socket, int target) {
        Address local = new Address(socket.local());
        stub.then(descriptors -> {
            byte[] anyPort = socket.local().clone();
            anyPort[2] = 0;
            anyPort[3] = 0;
            try (Fd fd = descriptors.copy(target)) {
                int range = local.port() | local.port() << 16;
                boolean ranged = Sockets.setOption(fd, IPPROTO_IP, IP_LOCAL_PORT_RANGE, range) == 0
                        && Sockets.setOption(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1) == 0;
                byte[] address = ranged ? anyPort : socket.local();
                Libc.check(
                        call(SystemCall.BIND, descriptors, target, address),
                        "take the address " + local + " for a socket");
            }
        });
    }

    private static long call(long number, StubDescriptors descriptors, int target, byte[] bytes) {
        ByteBuffer address = Libc.buffer(bytes.length);
        address.put(0, bytes);
        try (Fd fd = descriptors.copy(target)) {
            return Libc.call(number, fd.value(), Libc.address(address), address.capacity());
        }
    }

    private void join(int server, int client) {
        InetSocket accepted = byTarget.get(server);
        InetSocket connected = byTarget.get(client);
        create(accepted, server);
        bind(accepted, server);
        stub.calls().must("listen at " + new Address(accepted.local()), SystemCall.LISTEN, server, 1);
        create(connected, client);
        bindToConnect(connected, client);
        stub.then(descriptors -> connect(descriptors, client, connected, true));
        CallTable calls = stub.calls();
        int taken = calls.must("accept a connection", SystemCall.ACCEPT4, server, 0, 0, Fcntl.O_CLOEXEC);
        int moved = calls.must("accept a connection", SystemCall.DUP3, 0, server, Fcntl.O_CLOEXEC);
        calls.forward(taken, moved, 0);
        stub.closeTemporaries();
    }

    /** To a socket that listens, to somebody outside who may or may not answer, or a datagram socket to an address. */
    private void connectAlone(InetSocket socket, int target) {
        boolean tcp = InetSockets.isTcp(socket.type(), socket.protocol());
        boolean waits = !tcp || socket.pending();
        if (!waits) {
            stub.setStatusFlags(target, Fcntl.O_NONBLOCK);
        }
        stub.then(descriptors -> connect(descriptors, target, socket, waits));
    }

    private static void connect(StubDescriptors descriptors, int target, InetSocket socket, boolean waits) {
        long deadline = System.nanoTime() + PATIENCE_NANOS;
        while (true) {
            long result = call(SystemCall.CONNECT, descriptors, target, socket.remote());
            if (result == 0 || !waits && result == -Errno.EINPROGRESS) {
                return;
            }
            boolean passes = result == -Errno.EADDRNOTAVAIL || result == -Errno.EINTR;
            if (!passes || System.nanoTime() > deadline) {
                throw new KernelException(
                        "connect " + new Address(socket.local()) + " to " + new Address(socket.remote()),
                        (int) -result);
            }
            LockSupport.parkNanos(20_000_000);
        }
    }
}
