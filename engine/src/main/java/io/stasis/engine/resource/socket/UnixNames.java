package io.stasis.engine.resource.socket;

import io.stasis.engine.Engine.Problem;
import io.stasis.image.model.OpenDescription.UnixSocket;
import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.net.Sockets;
import io.stasis.linux.proc.FileStatus;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Optional;

/** Names of Unix sockets: none, abstract, or a path. See unix(7), "Address format". */
final class UnixNames {
    private static final int SOCK_NONBLOCK_CLOEXEC = Fcntl.O_NONBLOCK | Fcntl.O_CLOEXEC;

    private UnixNames() {}

    /** The bytes of {@code sun_path} in an address: a path without its terminating zero. */
    static byte[] nameIn(byte[] address) {
        if (address.length <= 2) {
            return new byte[0];
        }
        int end = address.length;
        if (address[2] != 0) {
            end = 2;
            while (end < address.length && address[end] != 0) {
                end++;
            }
        }
        return Arrays.copyOfRange(address, 2, end);
    }

    /** struct sockaddr_un, as long as its name. */
    static byte[] address(byte[] name) {
        boolean path = name.length > 0 && name[0] != 0;
        byte[] address = new byte[2 + name.length + (path ? 1 : 0)];
        ByteBuffer.wrap(address).order(ByteOrder.nativeOrder()).putShort((short) Sockets.AF_UNIX);
        System.arraycopy(name, 0, address, 2, name.length);
        return address;
    }

    static boolean isPath(byte[] name) {
        return name.length > 0 && name[0] != 0;
    }

    static String path(byte[] name) {
        return new String(name, StandardCharsets.UTF_8);
    }

    /** The absolute path of a socket's name. */
    static String file(UnixSocket socket) {
        String path = path(socket.name());
        return socket.file().directory().isEmpty() ? path : socket.file().directory() + "/" + path;
    }

    /** Why its name cannot be had, or its peer not be found, on this host. */
    static Optional<Problem> problem(UnixSocket socket) {
        if (socket.peerName().length > 0 && !answers(socket.type(), socket.peerName())) {
            return Optional.of(new Problem(
                    0,
                    -1,
                    "Unix socket " + path(socket.peerName()).replace('\0', '@'),
                    "the program sends to it, and nobody listens there",
                    "start the service that it belongs to"));
        }
        if (!isPath(socket.name()) || !socket.file().exists()) {
            return Optional.empty();
        }
        FileStatus status = FileStatus.of(file(socket));
        if (!status.exists()) {
            String parent = file(socket).replaceFirst("/[^/]*$", "");
            return FileStatus.of(parent.isEmpty() ? "/" : parent).isDirectory()
                    ? Optional.empty()
                    : Optional.of(new Problem(
                            0,
                            -1,
                            "Unix socket " + file(socket),
                            "the directory " + parent + " does not exist",
                            "make it again"));
        }
        if (!status.isSocket()) {
            return Optional.of(new Problem(
                    0, -1, "Unix socket " + file(socket), "another file has its name", "move that file away"));
        }
        // What a killed program leaves behind answers nobody, and makes room.
        return answers(socket.type(), file(socket).getBytes(StandardCharsets.UTF_8))
                ? Optional.of(new Problem(
                        0, -1, "Unix socket " + file(socket), "another program serves it", "end that program"))
                : Optional.empty();
    }

    private static boolean answers(int type, byte[] name) {
        byte[] address = address(name);
        if (address.length > 110) {
            return false;
        }
        ByteBuffer buffer = Libc.buffer(address.length);
        buffer.put(0, address);
        long socket = Libc.call(SystemCall.SOCKET, Sockets.AF_UNIX, type | SOCK_NONBLOCK_CLOEXEC, 0);
        try (Fd fd = new Fd((int) Libc.check(socket, "open a Unix socket"))) {
            long result = Libc.call(SystemCall.CONNECT, fd.value(), Libc.address(buffer), address.length);
            return result == 0 || result == -Errno.EAGAIN;
        }
    }
}
