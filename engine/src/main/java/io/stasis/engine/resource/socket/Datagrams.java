package io.stasis.engine.resource.socket;

import io.stasis.engine.resource.StubDescriptors;
import io.stasis.image.model.OpenDescription.InetSocket;
import io.stasis.image.model.OpenDescription.SocketMessage;
import io.stasis.linux.Fd;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.net.Sockets;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;

/**
 * Datagrams that wait in UDP sockets. Those from sockets of the tree are sent again by these; the network may lose any
 * other, and a checkpoint does. Of datagrams without a byte the kernel shows each only once to those who peek: the second
 * checkpoint does not see them.
 */
final class Datagrams {
    /** No datagram of IP is longer. */
    private static final int MOST = 65536;

    private Datagrams() {}

    /** What has arrived and was not read. It stays there. */
    static List<SocketMessage> received(Fd fd) {
        if (Sockets.peek(fd, 0).isEmpty()) {
            return List.of();
        }
        List<SocketMessage> messages = new ArrayList<>();
        int before = Sockets.intOption(fd, Sockets.SOL_SOCKET, Sockets.SO_PEEK_OFF, -1);
        if (Libc.isError(Sockets.setOption(fd, Sockets.SOL_SOCKET, Sockets.SO_PEEK_OFF, 0))) {
            return List.of(); // a raw socket: what it hears is anybody's
        }
        try {
            for (Optional<Sockets.Message> next = Sockets.peek(fd, MOST);
                    next.isPresent();
                    next = Sockets.peek(fd, MOST)) {
                messages.add(new SocketMessage(next.get().from(), next.get().data(), new int[0], new byte[0]));
            }
        } finally {
            Sockets.setOption(fd, Sockets.SOL_SOCKET, Sockets.SO_PEEK_OFF, before);
        }
        return messages;
    }

    /** Sends again what waited in a socket, as far as its senders are there. Returns the bytes. */
    static long refill(int target, InetSocket socket, SortedMap<Integer, InetSocket> byTarget, StubDescriptors stub) {
        long bytes = 0;
        for (SocketMessage message : socket.received()) {
            Address from = new Address(message.from());
            for (var entry : byTarget.entrySet()) {
                InetSocket sender = entry.getValue();
                if (sender.type() == Sockets.SOCK_DGRAM
                        && sender.family() == socket.family()
                        && sender.protocol() == socket.protocol()
                        && new Address(sender.local()).covers(from)) {
                    try (Fd fd = stub.copy(entry.getKey())) {
                        byte[] to = destination(socket, from);
                        long put = Sockets.send(fd, to, message.data(), 0, List.of(), new byte[0]);
                        bytes += Libc.isError(put) ? 0 : put;
                    }
                    break;
                }
            }
        }
        return bytes;
    }

    /** The receiver's address; one that is bound to all was reached at the sender's, as both are on this host. */
    private static byte[] destination(InetSocket socket, Address from) {
        Address local = new Address(socket.local());
        if (!local.isWildcard()) {
            return socket.local();
        }
        byte[] to = from.bytes().clone();
        ByteBuffer.wrap(to).putShort(2, (short) local.port());
        return to;
    }
}
