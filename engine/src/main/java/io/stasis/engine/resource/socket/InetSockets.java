package io.stasis.engine.resource.socket;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.EngineException;
import io.stasis.engine.Outcome.Connection;
import io.stasis.engine.resource.Descriptor;
import io.stasis.engine.resource.DescriptorKind;
import io.stasis.engine.resource.StubCalls;
import io.stasis.engine.resource.StubDescriptors;
import io.stasis.engine.resource.socket.InetTable.Row;
import io.stasis.engine.resource.socket.TreeSockets.TreeSocket;
import io.stasis.image.model.OpenDescription.InetSocket;
import io.stasis.image.model.OpenDescription.SocketMessage;
import io.stasis.linux.Fd;
import io.stasis.linux.net.Sockets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.function.Function;

/**
 * Sockets of IPv4 and IPv6: TCP connections both of whose ends are in the tree, with what is in flight on them; those that
 * wait to be accepted, are half closed, or whose other end is gone; listening ones; UDP and other datagram sockets.
 *
 * <p>What a socket has not read is peeked into. At a restart {@link InetPlan} connects the ends anew between the same
 * addresses, which needs no privilege, and what was in flight is sent again.
 */
public final class InetSockets implements DescriptorKind<InetSocket> {
    static final int ESTABLISHED = 1;
    static final int SYN_SENT = 2;
    static final int CLOSE = 7;
    static final int CLOSE_WAIT = 8;
    static final int LISTEN = 10;
    /** Ids of ends that nobody holds are the inode of the other end, with this bit. */
    static final long GONE = 1L << 62;

    private static final int IPPROTO_TCP = 6;
    private static final int TCP_INFO = 11;
    /** Offset of tcpi_sacked in struct tcp_info: of a listening socket the backlog. */
    private static final int TCPI_SACKED = 28;

    private static final int SO_LINGER = 13;
    /** struct linger: on, 0 seconds. */
    private static final byte[] RESET = {1, 0, 0, 0, 0, 0, 0, 0};

    private final TreeSockets tree;
    private final List<Connection> connections = new ArrayList<>();
    private final List<InetSocket> hidden = new ArrayList<>();
    /** By the socket that receives. */
    private final Map<Long, TcpStreams.Direction> directions = new HashMap<>();
    /** Descriptors of connections. */
    private final List<Descriptor> joined = new ArrayList<>();

    private InetTable table;

    /** @param tree the sockets of the tree for a capture, of nobody for a restore */
    public InetSockets(TreeSockets tree) {
        this.tree = tree;
    }

    @Override
    public Class<InetSocket> type() {
        return InetSocket.class;
    }

    @Override
    public boolean claims(Descriptor descriptor) {
        if (!descriptor.status().isSocket()) {
            return false;
        }
        int family = tree.socket(descriptor).family();
        return family == Sockets.AF_INET || family == Sockets.AF_INET6;
    }

    @Override
    public void lookAgain() {
        tree.refresh();
        table = null;
    }

    private InetTable table() {
        if (table == null) {
            table = new InetTable();
        }
        return table;
    }

    static boolean isTcp(int type, int protocol) {
        return type == Sockets.SOCK_STREAM && protocol == IPPROTO_TCP;
    }

    private static boolean isConnection(TreeSocket socket) {
        return isTcp(socket.type(), socket.protocol()) && socket.remote() != null;
    }

    /** The other end, on this host, of a connection whose other end no process of the tree holds. */
    private Optional<Row> strayEnd(TreeSocket socket) {
        return table().otherEnd(socket.local(), socket.remote());
    }

    /** Whether the other end waits in the queue of a listening socket of the tree. */
    private boolean isPending(TreeSocket socket) {
        return strayEnd(socket)
                        .filter(row -> row.inode() == 0 && row.state() == ESTABLISHED)
                        .isPresent()
                && tree.listens(socket.remote());
    }

    /** Whether the other end has been closed by everybody. */
    private boolean isAbandoned(TreeSocket socket) {
        Optional<Row> row = strayEnd(socket);
        return row.isPresent() ? row.get().inode() == 0 : tree.isLocal(socket.remote());
    }

    @Override
    public Optional<Problem> problem(Descriptor descriptor) {
        TreeSocket socket = tree.socket(descriptor);
        if (socket.type() == Sockets.SOCK_STREAM && socket.protocol() != IPPROTO_TCP) {
            return Optional.of(DescriptorKind.problem(
                    descriptor,
                    "socket of IP protocol " + socket.protocol(),
                    "of the connected protocols only TCP is supported",
                    "close it before the checkpoint"));
        }
        if (!isConnection(socket) || tree.otherEnd(socket).isPresent()) {
            return Optional.empty();
        }
        if (isPending(socket)) {
            return Optional.empty();
        }
        return isAbandoned(socket)
                ? Optional.empty()
                : Optional.of(DescriptorKind.problem(
                        descriptor,
                        what(socket),
                        "its other end is held by a process outside the tree",
                        "checkpoint the tree that holds both ends, or close it first"));
    }

    private static String what(TreeSocket socket) {
        return (isTcp(socket.type(), socket.protocol()) ? "TCP socket " : "socket ")
                + socket.local()
                + (socket.remote() == null ? "" : " to " + socket.remote());
    }

    @Override
    public InetSocket capture(Descriptor descriptor) {
        long inode = descriptor.status().ino();
        TreeSocket socket = tree.socket(descriptor);
        return TreeSockets.withCopy(descriptor.pid(), descriptor.fd(), fd -> capture(descriptor, inode, socket, fd))
                .orElseThrow(() -> new EngineException(
                        EngineException.Kind.FAILED,
                        "cannot look into " + what(socket) + " of process " + descriptor.pid()));
    }

    private InetSocket capture(Descriptor descriptor, long inode, TreeSocket socket, Fd fd) {
        boolean tcp = isTcp(socket.type(), socket.protocol());
        byte[] info = tcp ? Sockets.option(fd, IPPROTO_TCP, TCP_INFO).orElse(new byte[0]) : new byte[0];
        int state = info.length > 0 ? info[0] : CLOSE;
        Address remote = socket.remote();
        if (tcp && state == SYN_SENT) {
            // The socket itself does not tell where it is connecting to.
            remote = table().byInode(inode).map(Row::remote).orElse(null);
        }
        boolean connected = isConnection(socket);
        Optional<Long> other = connected ? tree.otherEnd(socket) : Optional.empty();
        boolean pending = connected && other.isEmpty() && isPending(socket);
        if (pending && strayEnd(socket).orElseThrow().unread() > 0) {
            throw new EngineException(
                    EngineException.Kind.BUSY,
                    what(socket) + " has sent data over a connection that is not accepted yet; try again when it is");
        }
        long peer = other.orElse(0L);
        if (connected) {
            joined.add(descriptor);
        }
        if (connected && other.isEmpty() && !pending) {
            peer = GONE | inode;
            hidden.add(gone(inode, socket));
        }
        List<SocketMessage> received = List.of();
        byte[] unsent = {};
        if (connected) {
            if (other.isPresent()) {
                received = direction(other.get(), inode, socket).received();
                unsent = direction(inode, other.get(), socket).unsent();
            } else {
                received = TcpStreams.received(fd);
            }
        } else if (socket.type() == Sockets.SOCK_DGRAM) {
            received = Datagrams.received(fd);
        }
        long bytes = unsent.length
                + received.stream().mapToLong(message -> message.data().length).sum();
        connections.add(
                new Connection(descriptor.link(), tcp ? "tcp" : "datagram", bytes, List.copyOf(tree.holders(inode))));
        return new InetSocket(
                descriptor.statusFlags(),
                inode,
                socket.family(),
                socket.type(),
                socket.protocol(),
                socket.local().bytes(),
                remote == null ? new byte[0] : remote.bytes(),
                state,
                state == LISTEN
                        ? java.nio.ByteBuffer.wrap(info)
                                .order(java.nio.ByteOrder.nativeOrder())
                                .getInt(TCPI_SACKED)
                        : -1,
                peer,
                pending,
                false,
                SocketOptions.capture(fd, socket.family(), socket.protocol()),
                received,
                unsent);
    }

    /** One direction of a connection with both ends in the tree, looked at once for both of them. */
    private TcpStreams.Direction direction(long sender, long receiver, TreeSocket socket) {
        TcpStreams.Direction known = directions.get(receiver);
        if (known == null) {
            known = withCopy(
                    sender,
                    socket,
                    from -> withCopy(receiver, socket, to -> TcpStreams.between(from, to, what(socket))));
            directions.put(receiver, known);
        }
        return known;
    }

    private <T> T withCopy(long inode, TreeSocket socket, Function<Fd, T> look) {
        int[] end = tree.descriptor(inode);
        return TreeSockets.withCopy(end[0], end[1], look)
                .orElseThrow(() -> new EngineException(
                        EngineException.Kind.FAILED, "cannot look into both ends of " + what(socket)));
    }

    /** The other end of a connection, which is made again to be closed again. */
    private static InetSocket gone(long inode, TreeSocket socket) {
        return new InetSocket(
                2,
                GONE | inode,
                socket.remote().family(),
                socket.type(),
                socket.protocol(),
                socket.remote().bytes(),
                socket.local().bytes(),
                ESTABLISHED,
                -1,
                inode,
                false,
                true,
                List.of(),
                List.of(),
                new byte[0]);
    }

    /**
     * A connection that is closed leaves its addresses taken for a minute (TIME_WAIT, see tcp(7)), and the restart needs
     * them. One that is reset does not.
     */
    @Override
    public void beforeEnd() {
        for (Descriptor descriptor : joined) {
            TreeSockets.withCopy(
                    descriptor.pid(),
                    descriptor.fd(),
                    fd -> Sockets.setOption(fd, Sockets.SOL_SOCKET, SO_LINGER, RESET));
        }
    }

    @Override
    public List<InetSocket> captureHidden() {
        List<InetSocket> taken = List.copyOf(hidden);
        hidden.clear();
        return taken;
    }

    @Override
    public List<Connection> takeConnections() {
        List<Connection> taken = List.copyOf(connections);
        connections.clear();
        return taken;
    }

    @Override
    public void openAll(SortedMap<Integer, InetSocket> byTarget, StubCalls stub) {
        new InetPlan(byTarget, stub).open();
    }

    @Override
    public void open(InetSocket description, int target, StubCalls stub) {
        throw new IllegalStateException("internet sockets are made all at once, see openAll");
    }

    @Override
    public List<Connection> complete(SortedMap<Integer, InetSocket> byTarget, StubDescriptors stub) {
        Map<Long, InetSocket> byId = new HashMap<>();
        Map<Long, Integer> targets = new HashMap<>();
        byTarget.forEach((target, socket) -> {
            byId.put(socket.id(), socket);
            targets.put(socket.id(), target);
        });
        byTarget.forEach((target, socket) -> {
            try (Fd fd = stub.copy(target)) {
                SocketOptions.restore(fd, socket.options(), "socket " + new Address(socket.local()));
            }
        });
        List<Connection> done = new ArrayList<>();
        byTarget.forEach((target, socket) -> {
            boolean tcp = isTcp(socket.type(), socket.protocol());
            long bytes = tcp
                    ? TcpStreams.refill(socket, byId.get(socket.peer()), targets.get(socket.peer()), stub)
                    : Datagrams.refill(target, socket, byTarget, stub);
            if (bytes > 0) {
                done.add(new Connection("socket:[" + socket.id() + "]", tcp ? "tcp" : "datagram", bytes, List.of()));
            }
        });
        byTarget.forEach((target, socket) -> {
            if (TcpStreams.isShutForWriting(socket.state())) {
                try (Fd fd = stub.copy(target)) {
                    Sockets.shutdown(fd, Sockets.SHUT_WR);
                }
            }
        });
        return done;
    }
}
