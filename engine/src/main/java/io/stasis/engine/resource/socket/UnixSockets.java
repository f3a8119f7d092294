package io.stasis.engine.resource.socket;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.engine.Outcome.Connection;
import io.stasis.engine.UnsupportedResourceException;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.engine.resource.StubDescriptors;
import io.stasis.image.model.OpenDescription.SocketFile;
import io.stasis.image.model.OpenDescription.SocketMessage;
import io.stasis.image.model.OpenDescription.UnixSocket;
import io.stasis.linux.Fd;
import io.stasis.linux.Pid;
import io.stasis.linux.net.Sockets;
import io.stasis.linux.net.UnixDiag.UnixEntry;
import io.stasis.linux.proc.FileStatus;
import io.stasis.linux.proc.ProcLinks;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.function.ToIntFunction;

/**
 * Unix sockets, see unix(7): pairs, listening ones with the connections that wait, connected ones, datagram sockets;
 * with names of every sort, with what is queued in them, descriptors on their way included.
 *
 * <p>A queue is peeked into, which leaves it as it is. At a restart {@link UnixPlan} makes the sockets again, and what
 * was queued is sent again from the other end.
 */
public final class UnixSockets implements DescriptorKind<UnixSocket> {
    private static final int CLOSE = 7;
    private static final int LISTEN = 10;
    private static final int SHUT_BOTH = 3;
    private static final int SHUT_READING = 1;
    private static final int SHUT_WRITING = 2;
    /** Ids of ends that nobody holds are the inode of the other end, with this bit. */
    private static final long GONE = 1L << 62;

    private final TreeSockets tree;
    private final List<Connection> connections = new ArrayList<>();
    private final List<UnixSocket> hidden = new ArrayList<>();
    /** Descriptors by which sockets were captured, by inode, and the inodes of their other ends. */
    private final Map<Long, Descriptor> captured = new HashMap<>();

    private final Map<Long, Long> peers = new HashMap<>();

    /** @param tree the sockets of the tree for a capture, of nobody for a restore */
    public UnixSockets(TreeSockets tree) {
        this.tree = tree;
    }

    @Override
    public Class<UnixSocket> type() {
        return UnixSocket.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        return descriptor.status().isSocket()
                && tree.unix(descriptor.status().ino()).isPresent();
    }

    @Override
    public void lookAgain() {
        tree.refresh();
    }

    /** Whether a socket is connected to one that no process of the tree holds. */
    static boolean leadsOutside(UnixEntry entry, TreeSockets tree) {
        long peer = Integer.toUnsignedLong(entry.peer());
        return peer != 0 && !tree.holds(peer) && tree.isHeldOutside(peer, Integer.toUnsignedLong(entry.inode()));
    }

    private static boolean isConnected(UnixEntry entry) {
        return entry.type() != Sockets.SOCK_DGRAM && entry.state() != LISTEN && entry.state() != CLOSE;
    }

    /** Whether its connection has not been accepted yet: the kernel has made the other end, but nobody holds it. */
    private static boolean isWaiting(UnixEntry entry) {
        return isConnected(entry) && entry.peer() == 0 && entry.shutdown() != SHUT_BOTH;
    }

    @Override
    public Optional<Problem> problem(Descriptor descriptor) {
        long inode = descriptor.status().ino();
        UnixEntry entry = tree.unix(inode).orElseThrow();
        if (isWaiting(entry)) {
            Optional<UnixEntry> listener = tree.listenerOf(inode);
            return listener.isEmpty() ? outside(descriptor) : Optional.empty();
        }
        if (!leadsOutside(entry, tree)) {
            return Optional.empty();
        }
        // A datagram socket that sends to a name, such as the system log's, can be connected to it again.
        boolean named = entry.type() == Sockets.SOCK_DGRAM && peerName(descriptor).length > 0;
        return named ? Optional.empty() : outside(descriptor);
    }

    private Optional<Problem> outside(Descriptor descriptor) {
        return Optional.of(DescriptorKind.problem(
                descriptor,
                what(descriptor),
                "its other end is held by a process outside the tree",
                "checkpoint the tree that holds both ends, or close it first"));
    }

    private String what(Descriptor descriptor) {
        var socket = tree.socket(descriptor);
        String name = String.valueOf(socket.local());
        String peer = socket.remote() == null ? "" : socket.remote().toString();
        return "Unix socket " + descriptor.link() + (name.isEmpty() ? "" : " " + name)
                + (peer.isEmpty() ? "" : " to " + peer);
    }

    private byte[] peerName(Descriptor descriptor) {
        Address remote = tree.socket(descriptor).remote();
        return remote == null ? new byte[0] : UnixNames.nameIn(remote.bytes());
    }

    @Override
    public UnixSocket capture(Descriptor descriptor) {
        throw new IllegalStateException("sockets need to know what is on its way in them");
    }

    @Override
    public UnixSocket capture(Descriptor descriptor, ToIntFunction<Descriptor> others) {
        long inode = descriptor.status().ino();
        UnixEntry entry = tree.unix(inode).orElseThrow();
        captured.put(inode, descriptor);
        if (isWaiting(entry) && entry.room() > 0) {
            throw new EngineException(
                    EngineException.Kind.BUSY,
                    what(descriptor)
                            + " has sent data over a connection that is not accepted yet; try again when it is");
        }
        return TreeSockets.withCopy(descriptor.pid(), descriptor.fd(), fd -> {
                    byte[] name = UnixNames.nameIn(Sockets.name(fd));
                    List<SocketMessage> queue = entry.state() == LISTEN ? List.of() : queue(fd, entry, others);
                    long bytes = queue.stream().mapToLong(m -> m.data().length).sum();
                    connections.add(new Connection(
                            descriptor.link(),
                            "unix",
                            bytes,
                            tree.holders(inode).stream().toList()));
                    boolean outside = leadsOutside(entry, tree);
                    return new UnixSocket(
                            descriptor.statusFlags(),
                            inode,
                            entry.type(),
                            name,
                            file(descriptor, entry, name),
                            entry.state() == LISTEN ? entry.room() : -1,
                            entry.state() == LISTEN ? pending(entry) : new long[0],
                            outside ? 0 : peer(inode, entry),
                            outside ? peerName(descriptor) : new byte[0],
                            entry.shutdown(),
                            false,
                            SocketOptions.capture(fd, Sockets.AF_UNIX, 0),
                            queue);
                })
                .orElseThrow(() -> new EngineException(
                        EngineException.Kind.FAILED,
                        "cannot look into " + what(descriptor) + " of process " + descriptor.pid()));
    }

    private long peer(long inode, UnixEntry entry) {
        if (entry.peer() != 0) {
            long peer = Integer.toUnsignedLong(entry.peer());
            peers.put(peer, inode);
            return peer;
        }
        if (!isConnected(entry) || isWaiting(entry)) {
            return 0;
        }
        // The other end is closed. It is made again, to be closed again.
        hidden.add(new UnixSocket(
                2,
                GONE | inode,
                entry.type(),
                new byte[0],
                null,
                -1,
                new long[0],
                inode,
                new byte[0],
                0,
                true,
                List.of(),
                List.of()));
        return GONE | inode;
    }

    @Override
    public List<UnixSocket> captureHidden() {
        List<UnixSocket> taken = List.copyOf(hidden);
        hidden.clear();
        if (taken.isEmpty()) {
            peers.forEach((peer, inode) -> {
                if (!captured.containsKey(peer)) {
                    throw new UnsupportedResourceException(
                            outside(captured.get(inode)).stream().toList());
                }
            });
        }
        return taken;
    }

    private long[] pending(UnixEntry entry) {
        List<Long> ids = new ArrayList<>();
        for (int inode : entry.pending()) {
            // One from outside the tree will see its connection end, as when the program had ended.
            if (inode != 0 && tree.holds(Integer.toUnsignedLong(inode))) {
                ids.add(Integer.toUnsignedLong(inode));
            }
        }
        return ids.stream().mapToLong(Long::longValue).toArray();
    }

    private static SocketFile file(Descriptor descriptor, UnixEntry entry, byte[] name) {
        if (name.length == 0 || name[0] == 0) {
            return null;
        }
        String path = UnixNames.path(name);
        String directory = path.startsWith("/")
                ? ""
                : ProcLinks.cwd(new Pid(descriptor.pid())).path();
        FileStatus status = FileStatus.of(directory.isEmpty() ? path : directory + "/" + path);
        boolean exists = status.isSocket() && (int) status.ino() == entry.fileInode();
        return new SocketFile(
                directory,
                exists,
                exists ? status.mode() & 07777 : 0755,
                exists ? status.uid() : -1,
                exists ? status.gid() : -1);
    }

    private List<SocketMessage> queue(Fd fd, UnixEntry entry, ToIntFunction<Descriptor> others) {
        List<SocketMessage> queue = new ArrayList<>();
        for (Sockets.Message message : UnixQueues.read(fd, entry)) {
            int[] descriptions = new int[message.descriptors().size()];
            try {
                for (int i = 0; i < descriptions.length; i++) {
                    descriptions[i] = others.applyAsInt(Descriptor.read(
                                    UnixQueues.OWN_PID,
                                    message.descriptors().get(i).value())
                            .orElseThrow());
                }
            } catch (UnsupportedResourceException e) {
                throw new UnsupportedResourceException(e.problems().stream()
                        .map(p -> new Problem(
                                0, -1, p.resource() + " on its way through a Unix socket", p.reason(), p.advice()))
                        .toList());
            } finally {
                message.descriptors().forEach(Fd::close);
            }
            queue.add(new SocketMessage(message.from(), message.data(), descriptions, message.credentials()));
        }
        return queue;
    }

    @Override
    public List<Connection> takeConnections() {
        List<Connection> taken = List.copyOf(connections);
        connections.clear();
        return taken;
    }

    @Override
    public List<Problem> verify(UnixSocket description) {
        return UnixNames.problem(description).stream().toList();
    }

    @Override
    public void openAll(SortedMap<Integer, UnixSocket> byTarget, StubCalls stub) {
        new UnixPlan(byTarget, stub).open();
    }

    @Override
    public void open(UnixSocket description, int target, StubCalls stub) {
        throw new IllegalStateException("Unix sockets are made all at once, see openAll");
    }

    @Override
    public List<Connection> complete(SortedMap<Integer, UnixSocket> byTarget, StubDescriptors stub) {
        Map<Long, Integer> targets = new HashMap<>();
        byTarget.forEach((target, socket) -> targets.put(socket.id(), target));
        byTarget.forEach((target, socket) -> {
            try (Fd fd = stub.copy(target)) {
                String what = "Unix socket " + UnixNames.path(socket.name()).replace('\0', '@');
                SocketOptions.restore(fd, socket.options(), what);
            }
        });
        List<Connection> done = new ArrayList<>();
        byTarget.forEach((target, socket) -> {
            if (!socket.queue().isEmpty()) {
                UnixQueues.refill(target, socket, byTarget, targets, stub);
                long bytes =
                        socket.queue().stream().mapToLong(m -> m.data().length).sum();
                done.add(new Connection("socket:[" + socket.id() + "]", "unix", bytes, List.of()));
            }
        });
        byTarget.forEach((target, socket) -> {
            boolean alive = socket.peer() != 0 && (socket.peer() & GONE) == 0;
            if (alive && socket.shutdown() != 0) {
                shutDown(target, socket.shutdown(), stub);
            }
        });
        return done;
    }

    private static void shutDown(int target, int how, StubDescriptors stub) {
        try (Fd fd = stub.copy(target)) {
            if ((how & SHUT_WRITING) != 0) {
                Sockets.shutdown(fd, Sockets.SHUT_WR);
            }
            if ((how & SHUT_READING) != 0) {
                Sockets.shutdown(fd, Sockets.SHUT_RD);
            }
        }
    }
}
