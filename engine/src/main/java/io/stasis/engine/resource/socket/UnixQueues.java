package io.stasis.engine.resource.socket;

import io.stasis.engine.EngineException;
import io.stasis.engine.resource.StubDescriptors;
import io.stasis.image.model.OpenDescription.SocketMessage;
import io.stasis.image.model.OpenDescription.UnixSocket;
import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.net.Sockets;
import io.stasis.linux.net.Sockets.Message;
import io.stasis.linux.net.UnixDiag.UnixEntry;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;

/** What waits in Unix sockets to be read. */
final class UnixQueues {
    static final int OWN_PID = (int) ProcessHandle.current().pid();

    private static final int PIECE = 65536;

    private UnixQueues() {}

    /** All that is queued, which stays there. The caller closes the descriptors in it. */
    static List<Message> read(Fd fd, UnixEntry entry) {
        int bytes = Sockets.unread(fd);
        boolean stream = entry.type() == Sockets.SOCK_STREAM;
        if (stream && bytes == 0) {
            return List.of();
        }
        if (stream) {
            Optional<Message> all = Sockets.peek(fd, bytes);
            if (all.isPresent() && all.get().data().length == bytes) {
                return List.of(all.get());
            }
            // Descriptors cut the stream into pieces; the rest is read from an offset.
            all.ifPresent(message -> message.descriptors().forEach(Fd::close));
        } else if (Sockets.peek(fd, 0).map(UnixQueues::closed).isEmpty()) {
            return List.of();
        }
        int before = Sockets.intOption(fd, Sockets.SOL_SOCKET, Sockets.SO_PEEK_OFF, -1);
        Libc.check(Sockets.setOption(fd, Sockets.SOL_SOCKET, Sockets.SO_PEEK_OFF, 0), "read from an offset");
        try {
            return stream ? stream(fd, bytes) : datagrams(fd, (entry.shutdown() & 1) != 0);
        } finally {
            Sockets.setOption(fd, Sockets.SOL_SOCKET, Sockets.SO_PEEK_OFF, before);
        }
    }

    private static Message closed(Message message) {
        message.descriptors().forEach(Fd::close);
        return message;
    }

    /**
     * A stream's bytes, each piece with the descriptors that a read of it gives. The kernel does not tell which byte of a
     * piece they were sent with: a reader that is not ready for them at the first one will miss them after a restart.
     */
    private static List<Message> stream(Fd fd, int bytes) {
        List<Message> messages = new ArrayList<>();
        for (int offset = 0; offset < bytes; ) {
            Message message = Sockets.peek(fd, bytes - offset).orElseThrow();
            messages.add(message);
            if (message.length() == 0) {
                break;
            }
            offset += message.data().length;
        }
        return messages;
    }

    private static List<Message> datagrams(Fd fd, boolean ends) {
        List<Message> messages = new ArrayList<>();
        while (true) {
            Optional<Message> next = Sockets.peek(fd, PIECE);
            if (next.isEmpty() || next.get().length() == 0 && ends) {
                return messages;
            }
            Message message = next.get();
            while (message.length() > message.data().length) {
                // Longer than the piece: the offset stands within it.
                Message rest = closed(Sockets.peek(fd, message.length() - message.data().length)
                        .orElseThrow());
                byte[] joined = Arrays.copyOf(message.data(), message.data().length + rest.data().length);
                System.arraycopy(rest.data(), 0, joined, message.data().length, rest.data().length);
                message = new Message(
                        message.from(), joined, message.length(), message.descriptors(), message.credentials());
            }
            messages.add(message);
        }
    }

    /** Sends again what had been queued in a socket. */
    static void refill(
            int target,
            UnixSocket socket,
            SortedMap<Integer, UnixSocket> byTarget,
            Map<Long, Integer> targets,
            StubDescriptors stub) {
        Integer peer = targets.get(socket.peer());
        boolean onlyPeer = socket.type() != Sockets.SOCK_DGRAM || peer != null;
        for (SocketMessage message : socket.queue()) {
            try (Fd sender = onlyPeer ? stub.copy(peer) : sender(message, byTarget, stub)) {
                byte[] to = onlyPeer ? new byte[0] : UnixNames.address(socket.name());
                send(sender, to, socket, message, stub);
            }
        }
    }

    /** The socket of the tree that a datagram came from, or a nameless one for one that came from elsewhere. */
    private static Fd sender(SocketMessage message, SortedMap<Integer, UnixSocket> byTarget, StubDescriptors stub) {
        byte[] name = UnixNames.nameIn(message.from());
        if (name.length > 0) {
            for (var entry : byTarget.entrySet()) {
                if (Arrays.equals(entry.getValue().name(), name)) {
                    return stub.copy(entry.getKey());
                }
            }
        }
        long socket = Libc.call(SystemCall.SOCKET, Sockets.AF_UNIX, Sockets.SOCK_DGRAM | Fcntl.O_CLOEXEC, 0);
        return new Fd((int) Libc.check(socket, "open a Unix socket"));
    }

    private static void send(Fd sender, byte[] to, UnixSocket socket, SocketMessage message, StubDescriptors stub) {
        List<Fd> descriptors = new ArrayList<>();
        try {
            for (int description : message.descriptions()) {
                descriptors.add(stub.description(description));
            }
            int sent = 0;
            do {
                byte[] credentials = message.credentials();
                long put = Sockets.send(sender, to, message.data(), sent, descriptors, credentials);
                if (put == -Errno.EPERM && credentials.length > 0) {
                    // Only the privileged may speak for others.
                    put = Sockets.send(sender, to, message.data(), sent, descriptors, new byte[0]);
                }
                if (Libc.isError(put)) {
                    throw new EngineException(
                            EngineException.Kind.FAILED,
                            "cannot put " + message.data().length + " bytes back into the Unix socket "
                                    + UnixNames.path(socket.name()).replace('\0', '@') + ": "
                                    + Errno.describe((int) -put));
                }
                sent += (int) put;
                descriptors.forEach(Fd::close);
                descriptors.clear();
            } while (sent < message.data().length);
        } finally {
            descriptors.forEach(Fd::close);
        }
    }
}
