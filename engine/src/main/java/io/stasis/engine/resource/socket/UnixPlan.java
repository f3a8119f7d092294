package io.stasis.engine.resource.socket;

import io.stasis.engine.resource.StubCalls;
import io.stasis.image.model.OpenDescription.UnixSocket;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.net.Sockets;
import io.stasis.linux.ptrace.CallTable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;

/**
 * Makes the Unix sockets of an image in the stub and joins them: pairs; names; listening sockets; connections through
 * the names they were made by; those that wait to be accepted; datagram sockets that send to a name. Names that led
 * nowhere any more are removed again at the end.
 */
final class UnixPlan {
    private static final String ASIDE = ".stasis-aside";

    private final SortedMap<Integer, UnixSocket> byTarget;
    private final StubCalls stub;
    private final Map<Long, Integer> targets = new HashMap<>();
    private final Set<Integer> made = new HashSet<>();
    /** Paths that were bound and are to be removed, with whether another file waits aside. */
    private final List<String> removals = new ArrayList<>();

    UnixPlan(SortedMap<Integer, UnixSocket> byTarget, StubCalls stub) {
        this.byTarget = byTarget;
        this.stub = stub;
        byTarget.forEach((target, socket) -> targets.put(socket.id(), target));
    }

    void open() {
        List<int[]> throughNames = new ArrayList<>();
        byTarget.forEach((target, socket) -> {
            Integer peer = targets.get(socket.peer());
            if (made.contains(target) || peer == null || !isMutual(socket, target, peer)) {
                return;
            }
            UnixSocket other = byTarget.get(peer);
            boolean stream = socket.type() != Sockets.SOCK_DGRAM;
            if (stream && (socket.name().length > 0 || other.name().length > 0)) {
                boolean first = isServer(socket, other);
                throughNames.add(first ? new int[] {target, peer} : new int[] {peer, target});
                // The accepted end is made by accept(2).
                made.add(first ? target : peer);
            } else {
                pair(socket.type(), target, peer);
                made.add(target);
                made.add(peer);
            }
        });
        Set<Integer> accepted = new HashSet<>();
        throughNames.forEach(pair -> accepted.add(pair[0]));
        byTarget.forEach((target, socket) -> {
            if (!made.contains(target)) {
                create(socket.type(), target);
            }
        });
        byTarget.forEach((target, socket) -> {
            if (!accepted.contains(target) && socket.name().length > 0) {
                bind(target, socket);
            }
        });
        byTarget.forEach((target, socket) -> {
            if (socket.backlog() >= 0) {
                stub.calls().must("listen on a Unix socket", SystemCall.LISTEN, target, Math.max(1, socket.backlog()));
            }
        });
        throughNames.forEach(pair -> connectAndAccept(pair[0], pair[1]));
        byTarget.forEach(this::connectOneWay);
        byTarget.forEach((target, socket) -> {
            for (long id : socket.pending()) {
                connect(targets.get(id), socket);
            }
            if (socket.backlog() == 0) {
                stub.calls().must("set a backlog", SystemCall.LISTEN, target, 0);
            }
        });
        removals.forEach(this::remove);
        byTarget.forEach((target, socket) -> stub.setStatusFlags(target, socket.statusFlags()));
    }

    private boolean isMutual(UnixSocket socket, int target, int peer) {
        return byTarget.get(peer).peer() == socket.id() && target != peer;
    }

    /** Of a connection through a name the end that has the listening socket's name. */
    private boolean isServer(UnixSocket socket, UnixSocket other) {
        if (socket.name().length == 0 || other.name().length == 0) {
            return socket.name().length > 0;
        }
        return listener(socket) >= 0;
    }

    private int listener(UnixSocket accepted) {
        for (var entry : byTarget.entrySet()) {
            UnixSocket socket = entry.getValue();
            if (socket.backlog() >= 0
                    && socket.type() == accepted.type()
                    && java.util.Arrays.equals(socket.name(), accepted.name())) {
                return entry.getKey();
            }
        }
        return -1;
    }

    private void pair(int type, int first, int second) {
        CallTable calls = stub.calls();
        calls.must("make a socket pair", SystemCall.SOCKETPAIR, Sockets.AF_UNIX, type, 0, calls.reserve(8));
        stub.duplicate(StubCalls.FIRST, first);
        stub.duplicate(StubCalls.FIRST + 1, second);
        stub.closeTemporaries();
    }

    private void create(int type, int target) {
        CallTable calls = stub.calls();
        int socket = calls.must("make a Unix socket", SystemCall.SOCKET, Sockets.AF_UNIX, type | Fcntl.O_CLOEXEC, 0);
        int moved = calls.must("make a Unix socket", SystemCall.DUP3, 0, target, Fcntl.O_CLOEXEC);
        calls.forward(socket, moved, 0);
        stub.closeTemporaries();
    }

    private void bind(int target, UnixSocket socket) {
        if (UnixNames.isPath(socket.name())) {
            makeRoom(socket);
            enter(socket);
        }
        CallTable calls = stub.calls();
        byte[] address = UnixNames.address(socket.name());
        calls.must(
                "give a Unix socket its name " + UnixNames.path(socket.name()).replace('\0', '@'),
                SystemCall.BIND,
                target,
                calls.data(address),
                address.length);
        if (UnixNames.isPath(socket.name())) {
            if (socket.file().exists()) {
                CallTable owner = stub.calls();
                String path = UnixNames.file(socket);
                owner.query(
                        SystemCall.FCHOWNAT,
                        Fcntl.AT_FDCWD,
                        owner.string(path),
                        socket.file().uid(),
                        socket.file().gid(),
                        0);
                owner.must(
                        "set the mode of " + path,
                        SystemCall.FCHMODAT,
                        Fcntl.AT_FDCWD,
                        owner.string(path),
                        socket.file().mode());
            } else {
                removals.add(UnixNames.file(socket));
            }
        }
    }

    /** What a killed program left behind goes; a file that is not this socket's waits aside until the name is free. */
    private void makeRoom(UnixSocket socket) {
        CallTable calls = stub.calls();
        String path = UnixNames.file(socket);
        if (socket.file().exists()) {
            calls.query(SystemCall.UNLINK, calls.string(path));
        } else {
            calls.query(SystemCall.RENAME, calls.string(path), calls.string(path + ASIDE));
        }
    }

    private void enter(UnixSocket socket) {
        if (!socket.file().directory().isEmpty()) {
            CallTable calls = stub.calls();
            calls.must(
                    "enter " + socket.file().directory(),
                    SystemCall.CHDIR,
                    calls.string(socket.file().directory()));
        }
    }

    private void remove(String path) {
        CallTable calls = stub.calls();
        calls.query(SystemCall.UNLINK, calls.string(path));
        calls.query(SystemCall.RENAME, calls.string(path + ASIDE), calls.string(path));
    }

    private void connect(int target, UnixSocket to) {
        if (UnixNames.isPath(to.name()) && to.file() != null) {
            enter(to);
        }
        connect(target, to.name());
    }

    private void connect(int target, byte[] name) {
        CallTable calls = stub.calls();
        byte[] address = UnixNames.address(name);
        calls.must(
                "connect to the Unix socket " + UnixNames.path(name).replace('\0', '@'),
                SystemCall.CONNECT,
                target,
                calls.data(address),
                address.length);
    }

    private void connectAndAccept(int server, int client) {
        UnixSocket accepted = byTarget.get(server);
        int listener = listener(accepted);
        boolean borrowed = listener < 0;
        if (borrowed) {
            // The listening socket is closed by now: another one lends the name.
            listener = server;
            create(accepted.type(), listener);
            bindForAWhile(listener, accepted);
        }
        connect(client, accepted);
        CallTable calls = stub.calls();
        int taken = calls.must("accept a connection", SystemCall.ACCEPT4, listener, 0, 0, Fcntl.O_CLOEXEC);
        int moved = calls.must("accept a connection", SystemCall.DUP3, 0, server, Fcntl.O_CLOEXEC);
        calls.forward(taken, moved, 0);
        stub.closeTemporaries();
        if (borrowed && UnixNames.isPath(accepted.name())) {
            remove(UnixNames.file(accepted));
        }
    }

    private void bindForAWhile(int target, UnixSocket socket) {
        CallTable calls = stub.calls();
        if (UnixNames.isPath(socket.name())) {
            String path = UnixNames.file(socket);
            calls.query(SystemCall.RENAME, calls.string(path), calls.string(path + ASIDE));
            enter(socket);
        }
        CallTable binding = stub.calls();
        byte[] address = UnixNames.address(socket.name());
        binding.must(
                "lend the name " + UnixNames.path(socket.name()).replace('\0', '@'),
                SystemCall.BIND,
                target,
                binding.data(address),
                address.length);
        stub.calls().must("listen on a Unix socket", SystemCall.LISTEN, target, 1);
    }

    /** A datagram socket that is connected to one that is not connected to it. */
    private void connectOneWay(int target, UnixSocket socket) {
        if (socket.type() != Sockets.SOCK_DGRAM) {
            return;
        }
        Integer peer = targets.get(socket.peer());
        if (peer != null
                && byTarget.get(peer).peer() != socket.id()
                && byTarget.get(peer).name().length > 0) {
            connect(target, byTarget.get(peer));
        } else if (socket.peerName().length > 0) {
            connect(target, socket.peerName());
        }
    }
}
