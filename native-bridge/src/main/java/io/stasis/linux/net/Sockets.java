package io.stasis.linux.net;

import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Calls on sockets of this process: socket(7), getsockopt(2), recvmsg(2), sendmsg(2). Addresses are raw sockaddr bytes. */
public final class Sockets {
    public static final int AF_UNIX = 1;
    public static final int AF_INET = 2;
    public static final int AF_INET6 = 10;
    public static final int SOCK_STREAM = 1;
    public static final int SOCK_DGRAM = 2;
    public static final int SOCK_SEQPACKET = 5;
    public static final int SOL_SOCKET = 1;
    public static final int SO_ERROR = 4;
    public static final int SO_TYPE = 3;
    public static final int SO_ACCEPTCONN = 30;
    public static final int SO_PROTOCOL = 38;
    public static final int SO_DOMAIN = 39;
    public static final int SO_PEEK_OFF = 42;
    public static final int SHUT_RD = 0;
    public static final int SHUT_WR = 1;

    private static final int SIOCINQ = 0x541b;
    private static final int SIOCOUTQ = 0x5411;
    private static final int MSG_PEEK = 0x2;
    private static final int MSG_DONTWAIT = 0x40;
    private static final int MSG_TRUNC = 0x20;
    private static final int MSG_NOSIGNAL = 0x4000;
    private static final int MSG_CMSG_CLOEXEC = 0x40000000;
    private static final int SCM_RIGHTS = 1;
    private static final int SCM_CREDENTIALS = 2;
    /** 253 descriptors (SCM_MAX_FD) and credentials, each with its header, and room for what else comes. */
    private static final int CONTROL_BYTES = 2048;

    private static final int ADDRESS_BYTES = 128;
    private static final int MSGHDR_BYTES = 56;

    /**
     * One message, or as many bytes of a stream as came in one piece.
     *
     * @param from sockaddr of the sender; empty for an unnamed one
     * @param data the bytes
     * @param length bytes of the message, more than {@code data} has when it was cut
     * @param descriptors duplicates here of the descriptors in it; the caller closes them
     * @param credentials {@code struct ucred} of the sender, empty when the socket has no SO_PASSCRED
     */
    public record Message(byte[] from, byte[] data, int length, List<Fd> descriptors, byte[] credentials) {}

    private Sockets() {}

    /** The value of an option, empty when this socket has none such. */
    public static Optional<byte[]> option(Fd socket, int level, int name) {
        ByteBuffer buffer = Libc.buffer(264);
        buffer.putInt(256, 256);
        long address = Libc.address(buffer);
        long result = Libc.call(SystemCall.GETSOCKOPT, socket.value(), level, name, address, address + 256, 0);
        if (Libc.isError(result)) {
            return Optional.empty();
        }
        byte[] value = new byte[buffer.getInt(256)];
        buffer.get(0, value);
        return Optional.of(value);
    }

    /** An option that is an int; {@code missing} when this socket has none such. */
    public static int intOption(Fd socket, int level, int name, int missing) {
        return option(socket, level, name)
                .filter(value -> value.length >= 4)
                .map(value -> ByteBuffer.wrap(value)
                        .order(java.nio.ByteOrder.nativeOrder())
                        .getInt())
                .orElse(missing);
    }

    /** setsockopt(2); the result, a negated errno included. */
    public static long setOption(Fd socket, int level, int name, byte[] value) {
        ByteBuffer buffer = Libc.buffer(Math.max(1, value.length));
        buffer.put(0, value);
        return Libc.call(SystemCall.SETSOCKOPT, socket.value(), level, name, Libc.address(buffer), value.length, 0);
    }

    public static long setOption(Fd socket, int level, int name, int value) {
        return setOption(socket, level, name, bytes(value));
    }

    /** An int as an option's value. */
    public static byte[] bytes(int value) {
        return ByteBuffer.allocate(4)
                .order(java.nio.ByteOrder.nativeOrder())
                .putInt(value)
                .array();
    }

    /** getsockname(2). */
    public static byte[] name(Fd socket) {
        return address(SystemCall.GETSOCKNAME, socket).orElse(new byte[0]);
    }

    /** getpeername(2); empty when the socket is not connected. */
    public static Optional<byte[]> peerName(Fd socket) {
        return address(SystemCall.GETPEERNAME, socket);
    }

    private static Optional<byte[]> address(long call, Fd socket) {
        ByteBuffer buffer = Libc.buffer(ADDRESS_BYTES + 8);
        buffer.putInt(ADDRESS_BYTES, ADDRESS_BYTES);
        long address = Libc.address(buffer);
        if (Libc.isError(Libc.call(call, socket.value(), address, address + ADDRESS_BYTES))) {
            return Optional.empty();
        }
        byte[] value = new byte[Math.min(ADDRESS_BYTES, buffer.getInt(ADDRESS_BYTES))];
        buffer.get(0, value);
        return Optional.of(value);
    }

    /** Bytes that can be read; for datagrams those of the first one. */
    public static int unread(Fd socket) {
        return ioctl(socket, SIOCINQ);
    }

    /** Bytes that were written and have not arrived: tcp(7), unix(7), SIOCOUTQ. */
    public static int unsent(Fd socket) {
        return ioctl(socket, SIOCOUTQ);
    }

    private static int ioctl(Fd socket, int request) {
        ByteBuffer buffer = Libc.buffer(8);
        long result = Libc.call(SystemCall.IOCTL, socket.value(), request, Libc.address(buffer));
        return Libc.isError(result) ? 0 : buffer.getInt(0);
    }

    /**
     * Reads without taking. Where the socket has a peek offset (SO_PEEK_OFF) each call tells the next message.
     *
     * @param most bytes to read
     * @return empty when there is nothing, or nothing more
     */
    public static Optional<Message> peek(Fd socket, int most) {
        return peek(socket, most, MSG_TRUNC);
    }

    /** As {@link #peek(Fd, int)} for TCP, to which MSG_TRUNC means that the bytes are not wanted: tcp(7). */
    public static Optional<Message> peekStream(Fd socket, int most) {
        return peek(socket, most, 0);
    }

    private static Optional<Message> peek(Fd socket, int most, int flag) {
        ByteBuffer memory = Libc.buffer(MSGHDR_BYTES + 24 + ADDRESS_BYTES + CONTROL_BYTES + most);
        long base = Libc.address(memory);
        int vector = MSGHDR_BYTES;
        int name = vector + 24;
        int control = name + ADDRESS_BYTES;
        int data = control + CONTROL_BYTES;
        memory.putLong(0, base + name).putInt(8, ADDRESS_BYTES);
        memory.putLong(16, base + vector).putLong(24, 1);
        memory.putLong(32, base + control).putLong(40, CONTROL_BYTES);
        memory.putLong(vector, base + data).putLong(vector + 8, most);
        int flags = MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC | flag;
        long got;
        do {
            got = Libc.call(SystemCall.RECVMSG, socket.value(), base, flags);
        } while (got == -Errno.EINTR);
        if (got == -Errno.EAGAIN || got == -Errno.ENOTCONN || got == -Errno.EINVAL) {
            return Optional.empty();
        }
        Libc.check(got, "peek into a socket");
        byte[] from = new byte[Math.min(ADDRESS_BYTES, memory.getInt(8))];
        memory.get(name, from);
        byte[] bytes = new byte[(int) Math.min(got, most)];
        memory.get(data, bytes);
        List<Fd> descriptors = new ArrayList<>();
        byte[] credentials = {};
        int end = control + (int) memory.getLong(40);
        for (int at = control; at + 16 <= end; ) {
            int length = (int) memory.getLong(at);
            if (length < 16) {
                break;
            }
            if (memory.getInt(at + 8) == SOL_SOCKET && memory.getInt(at + 12) == SCM_RIGHTS) {
                for (int fd = at + 16; fd + 4 <= at + length; fd += 4) {
                    descriptors.add(new Fd(memory.getInt(fd)));
                }
            } else if (memory.getInt(at + 8) == SOL_SOCKET && memory.getInt(at + 12) == SCM_CREDENTIALS) {
                credentials = new byte[length - 16];
                memory.get(at + 16, credentials);
            }
            at += (length + 7) & ~7;
        }
        return Optional.of(new Message(from, bytes, (int) got, descriptors, credentials));
    }

    /**
     * sendmsg(2) without waiting.
     *
     * @param to sockaddr, empty for the socket's peer
     * @param offset of the first byte of {@code data} to send
     * @param descriptors to go with it
     * @param credentials {@code struct ucred} to go with it, empty for none
     * @return bytes sent, or a negated errno
     */
    public static long send(Fd socket, byte[] to, byte[] data, int offset, List<Fd> descriptors, byte[] credentials) {
        int length = data.length - offset;
        ByteBuffer memory = Libc.buffer(MSGHDR_BYTES + 24 + ADDRESS_BYTES + CONTROL_BYTES + length);
        long base = Libc.address(memory);
        int vector = MSGHDR_BYTES;
        int name = vector + 24;
        int control = name + ADDRESS_BYTES;
        int start = control + CONTROL_BYTES;
        memory.put(name, to).put(start, data, offset, length);
        memory.putLong(0, to.length == 0 ? 0 : base + name).putInt(8, to.length);
        memory.putLong(16, base + vector).putLong(24, 1);
        memory.putLong(vector, base + start).putLong(vector + 8, length);
        int at = control;
        if (!descriptors.isEmpty()) {
            int bytes = 16 + 4 * descriptors.size();
            memory.putLong(at, bytes).putInt(at + 8, SOL_SOCKET).putInt(at + 12, SCM_RIGHTS);
            for (int i = 0; i < descriptors.size(); i++) {
                memory.putInt(at + 16 + 4 * i, descriptors.get(i).value());
            }
            at += (bytes + 7) & ~7;
        }
        if (credentials.length > 0) {
            memory.putLong(at, 16 + credentials.length)
                    .putInt(at + 8, SOL_SOCKET)
                    .putInt(at + 12, SCM_CREDENTIALS)
                    .put(at + 16, credentials);
            at += 16 + (credentials.length + 7 & ~7);
        }
        memory.putLong(32, at == control ? 0 : base + control).putLong(40, at - control);
        long put;
        do {
            put = Libc.call(SystemCall.SENDMSG, socket.value(), base, MSG_DONTWAIT | MSG_NOSIGNAL);
        } while (put == -Errno.EINTR);
        return put;
    }

    /** shutdown(2); a socket that cannot be shut down that way any more is no error. */
    public static void shutdown(Fd socket, int how) {
        long result = Libc.call(SystemCall.SHUTDOWN, socket.value(), how);
        if (result != -Errno.ENOTCONN) {
            Libc.check(result, "shut down a socket");
        }
    }
}
