package io.stasis.engine.resource.socket;

import io.stasis.engine.EngineException;
import io.stasis.engine.resource.StubDescriptors;
import io.stasis.image.model.OpenDescription.InetSocket;
import io.stasis.image.model.OpenDescription.SocketMessage;
import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.KernelException;
import io.stasis.linux.libc.Capability;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.net.Sockets;
import io.stasis.linux.proc.SystemInfo;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/** The bytes in flight of TCP connections: in the receive queue of one end, and in the send queue of the other. */
final class TcpStreams {
    private static final int FIN_WAIT1 = 4;
    private static final int FIN_WAIT2 = 5;
    private static final int LAST_ACK = 9;
    private static final int CLOSING = 11;
    private static final int IPPROTO_TCP = 6;
    private static final int TCP_REPAIR = 19;
    private static final int TCP_REPAIR_QUEUE = 20;
    private static final int TCP_QUEUE_SEQ = 21;
    private static final int TCP_RECV_QUEUE = 1;
    private static final int TCP_SEND_QUEUE = 2;
    /** Leaves repair mode without sending a window probe. */
    private static final int TCP_REPAIR_OFF_NO_WP = -1;

    private static final int SO_BUF_LOCK = 72;
    private static final int SO_SNDBUF = 7;
    private static final int SO_SNDBUFFORCE = 32;
    /** The kernel makes twice of what it is asked for; each time the buffer grows by more than the data. */
    private static final int WIDENINGS = 4;

    /** A delayed acknowledgement comes after 200 ms at the latest (TCP_DELACK_MAX). */
    private static final long ACKNOWLEDGEMENT_NANOS = 300_000_000L;

    private static final int LOOKS = 100;
    private static final long PATIENCE_NANOS = 5_000_000_000L;

    private TcpStreams() {}

    static boolean isShutForWriting(int state) {
        return state == FIN_WAIT1 || state == FIN_WAIT2 || state == LAST_ACK || state == CLOSING;
    }

    /** What has arrived and was not read. It stays there. */
    static List<SocketMessage> received(Fd fd) {
        int bytes = Sockets.unread(fd);
        if (bytes == 0) {
            return List.of();
        }
        byte[] data = Sockets.peekStream(fd, bytes).map(Sockets.Message::data).orElse(new byte[0]);
        if (data.length != bytes) {
            throw new EngineException(
                    EngineException.Kind.BUSY,
                    "only " + data.length + " of the " + bytes
                            + " bytes that wait in a TCP socket could be read (an urgent"
                            + " byte stands among them?); try again");
        }
        return List.of(new SocketMessage(new byte[0], data, new int[0], new byte[0]));
    }

    /**
     * One direction of a connection.
     *
     * @param received what has arrived and was not read
     * @param unsent what comes after it, which the receiver's buffer has no room for yet
     */
    record Direction(List<SocketMessage> received, byte[] unsent) {}

    /**
     * What is under way in one direction. It stays there.
     *
     * <p>Bytes go on from the sender's queue to the receiver's also while both processes stand still. So the sender's is
     * looked at first, and then the receiver's: what has arrived may stand in both, and the sequence numbers tell where the
     * one ends and the other begins. Only with CAP_NET_ADMIN can they be read; others wait until all is acknowledged.
     */
    static Direction between(Fd sender, Fd receiver, String what) {
        if (Sockets.unsent(sender) == 0) {
            return new Direction(received(receiver), new byte[0]);
        }
        if (!SystemInfo.hasCapability(Capability.CAP_NET_ADMIN)) {
            awaitAcknowledgement(sender, what);
            return new Direction(received(receiver), new byte[0]);
        }
        int[] unacknowledged = new int[1];
        byte[] queue = inRepair(sender, TCP_SEND_QUEUE, what, () -> {
            int bytes = Sockets.unsent(sender);
            unacknowledged[0] = Sockets.intOption(sender, IPPROTO_TCP, TCP_QUEUE_SEQ, 0) - bytes;
            return bytes == 0
                    ? new byte[0]
                    : Sockets.peekStream(sender, bytes)
                            .map(Sockets.Message::data)
                            .orElse(new byte[0]);
        });
        for (int look = 0; look < LOOKS; look++) {
            int before = sequence(receiver, TCP_RECV_QUEUE, what);
            List<SocketMessage> received = received(receiver);
            if (sequence(receiver, TCP_RECV_QUEUE, what) == before) {
                int arrived = Math.clamp((long) (before - unacknowledged[0]), 0, queue.length);
                return new Direction(received, Arrays.copyOfRange(queue, arrived, queue.length));
            }
        }
        throw new EngineException(
                EngineException.Kind.BUSY,
                "bytes of " + what + " went on arriving while they were looked at; try again");
    }

    private static void awaitAcknowledgement(Fd fd, String what) {
        long deadline = System.nanoTime() + ACKNOWLEDGEMENT_NANOS;
        int bytes;
        while ((bytes = Sockets.unsent(fd)) > 0) {
            if (System.nanoTime() > deadline) {
                throw new EngineException(
                        EngineException.Kind.BUSY,
                        bytes + " bytes of " + what
                                + " wait for room at the other end, and only a user with CAP_NET_ADMIN"
                                + " may look at them; run the command as root, or try again");
            }
            LockSupport.parkNanos(1_000_000);
        }
    }

    /** The sequence number that follows the last byte of a queue. */
    private static int sequence(Fd fd, int queue, String what) {
        return inRepair(fd, queue, what, () -> Sockets.intOption(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, 0));
    }

    /** Looks at a queue in repair mode, in which nothing is sent. */
    private static <T> T inRepair(Fd fd, int queue, String what, Supplier<T> look) {
        // Leaving repair mode makes addresses unshared again.
        int reuse = Sockets.intOption(fd, Sockets.SOL_SOCKET, SocketOptions.SO_REUSEADDR, 0);
        Libc.check(Sockets.setOption(fd, IPPROTO_TCP, TCP_REPAIR, 1), "look into the queues of " + what);
        try {
            Libc.check(Sockets.setOption(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, queue), "look into the queues of " + what);
            return look.get();
        } finally {
            Sockets.setOption(fd, IPPROTO_TCP, TCP_REPAIR, TCP_REPAIR_OFF_NO_WP);
            Sockets.setOption(fd, Sockets.SOL_SOCKET, SocketOptions.SO_REUSEADDR, reuse);
        }
    }

    /**
     * Sends again what was in flight towards a socket.
     *
     * @param peer the other end; null when it is not in the image
     * @return bytes
     */
    static long refill(InetSocket socket, InetSocket peer, Integer peerTarget, StubDescriptors stub) {
        if (peer == null) {
            return 0;
        }
        long bytes = 0;
        try (Fd sender = stub.copy(peerTarget)) {
            for (SocketMessage message : socket.received()) {
                send(sender, message.data(), peer);
                bytes += message.data().length;
            }
            if (peer.unsent().length > 0) {
                send(sender, peer.unsent(), peer);
                bytes += peer.unsent().length;
            }
        }
        return bytes;
    }

    private static void send(Fd sender, byte[] data, InetSocket from) {
        long deadline = System.nanoTime() + PATIENCE_NANOS;
        int widened = 0;
        int sent = 0;
        int lock = Sockets.intOption(sender, Sockets.SOL_SOCKET, SO_BUF_LOCK, 0);
        while (sent < data.length) {
            long put = Sockets.send(sender, new byte[0], data, sent, List.of(), new byte[0]);
            if (put > 0) {
                sent += (int) put;
            } else if (put == -Errno.EAGAIN && widened < WIDENINGS) {
                // The buffers had grown with the traffic; those of a new connection are small.
                widened++;
                int room = Math.max(data.length, Sockets.intOption(sender, Sockets.SOL_SOCKET, SO_SNDBUF, 0)) + 65536;
                if (Libc.isError(Sockets.setOption(sender, Sockets.SOL_SOCKET, SO_SNDBUFFORCE, room))) {
                    Sockets.setOption(sender, Sockets.SOL_SOCKET, SO_SNDBUF, room);
                }
            } else if (put == -Errno.EAGAIN && System.nanoTime() < deadline) {
                LockSupport.parkNanos(1_000_000);
            } else {
                throw new KernelException(
                        "put " + data.length + " bytes back into the TCP connection from "
                                + new Address(from.local()) + " to " + new Address(from.remote()) + ", of which " + sent
                                + " went",
                        (int) -put);
            }
        }
        if (widened > 0) {
            // It may go on growing and shrinking by itself, as it did before.
            Sockets.setOption(sender, Sockets.SOL_SOCKET, SO_BUF_LOCK, lock);
        }
    }
}
