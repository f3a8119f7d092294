package io.stasis.linux.net;

import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.Map;

/** All Unix sockets of this network namespace and how they are joined: sock_diag(7), "UNIX domain sockets". */
public final class UnixDiag {
    private static final int AF_NETLINK = 16;
    private static final int NETLINK_SOCK_DIAG = 4;
    private static final int SOCK_DIAG_BY_FAMILY = 20;
    private static final int NLM_F_REQUEST_DUMP = 0x301;
    private static final int NLMSG_DONE = 3;
    private static final int NLMSG_ERROR = 2;
    private static final int HEADER = 16;
    private static final int UDIAG_SHOW_VFS = 2;
    private static final int UDIAG_SHOW_PEER = 4;
    private static final int UDIAG_SHOW_ICONS = 8;
    private static final int UDIAG_SHOW_RQLEN = 16;
    private static final int UNIX_DIAG_VFS = 1;
    private static final int UNIX_DIAG_PEER = 2;
    private static final int UNIX_DIAG_ICONS = 3;
    private static final int UNIX_DIAG_RQLEN = 4;
    private static final int UNIX_DIAG_SHUTDOWN = 6;
    private static final int BUFFER_BYTES = 1 << 18;

    /**
     * One socket.
     *
     * @param state TCP_ESTABLISHED (1), TCP_CLOSE (7) or TCP_LISTEN (10)
     * @param peer inode of the socket it is connected to, 0 for none
     * @param pending for a listening socket the inodes of those whose connection waits to be accepted
     * @param queued for a listening socket the number of waiting connections, else bytes that can be read
     * @param room for a listening socket the backlog that listen(2) was given, else bytes written and not read
     * @param fileInode low 32 bits of the inode of the file that bind(2) made, 0 for none
     * @param shutdown 1 when it is shut down for reading, 2 for writing, 3 for both
     */
    public record UnixEntry(
            int inode,
            int type,
            int state,
            int peer,
            int[] pending,
            int queued,
            int room,
            int fileInode,
            int shutdown) {}

    private UnixDiag() {}

    /** Every Unix socket that has an inode, by inode. Connections that were never accepted have none. */
    public static Map<Integer, UnixEntry> dump() {
        Map<Integer, UnixEntry> found = new HashMap<>();
        long result = Libc.call(SystemCall.SOCKET, AF_NETLINK, 3 | Fcntl.O_CLOEXEC, NETLINK_SOCK_DIAG);
        try (Fd socket = new Fd((int) Libc.check(result, "open a sock_diag socket"))) {
            ByteBuffer request = Libc.buffer(HEADER + 24);
            request.putInt(HEADER + 24).putShort((short) SOCK_DIAG_BY_FAMILY).putShort((short) NLM_F_REQUEST_DUMP);
            request.putInt(1).putInt(0);
            request.put((byte) Sockets.AF_UNIX).put((byte) 0).putShort((short) 0);
            request.putInt(-1).putInt(0).putInt(UDIAG_SHOW_VFS | UDIAG_SHOW_PEER | UDIAG_SHOW_ICONS | UDIAG_SHOW_RQLEN);
            Libc.check(
                    Libc.call(SystemCall.SENDTO, socket.value(), Libc.address(request), request.capacity(), 0, 0, 0),
                    "ask for the Unix sockets");
            ByteBuffer answer = Libc.buffer(BUFFER_BYTES);
            boolean more = true;
            while (more) {
                long got = Libc.call(SystemCall.RECVFROM, socket.value(), Libc.address(answer), BUFFER_BYTES, 0, 0, 0);
                if (got == -Errno.EINTR) {
                    continue;
                }
                more = messages(answer, (int) Libc.check(got, "read the list of Unix sockets"), found);
            }
        }
        return found;
    }

    private static boolean messages(ByteBuffer answer, int length, Map<Integer, UnixEntry> found) {
        for (int at = 0; at + HEADER <= length; ) {
            int size = answer.getInt(at);
            int type = answer.getShort(at + 4);
            if (type == NLMSG_DONE || size < HEADER) {
                return false;
            }
            if (type == NLMSG_ERROR) {
                Libc.check(answer.getInt(at + HEADER), "list the Unix sockets");
                return false;
            }
            UnixEntry entry = entry(answer, at + HEADER, at + size);
            found.put(entry.inode(), entry);
            at += (size + 3) & ~3;
        }
        return true;
    }

    /** struct unix_diag_msg, then attributes. */
    private static UnixEntry entry(ByteBuffer answer, int start, int end) {
        int peer = 0;
        int[] pending = {};
        int queued = 0;
        int room = 0;
        int fileInode = 0;
        int shutdown = 0;
        for (int at = start + 16; at + 4 <= end; ) {
            int size = Short.toUnsignedInt(answer.getShort(at));
            int value = at + 4;
            switch (answer.getShort(at + 2)) {
                case UNIX_DIAG_VFS -> fileInode = answer.getInt(value);
                case UNIX_DIAG_PEER -> peer = answer.getInt(value);
                case UNIX_DIAG_ICONS -> {
                    pending = new int[(size - 4) / 4];
                    answer.slice(value, size - 4)
                            .order(ByteOrder.nativeOrder())
                            .asIntBuffer()
                            .get(pending);
                }
                case UNIX_DIAG_RQLEN -> {
                    queued = answer.getInt(value);
                    room = answer.getInt(value + 4);
                }
                case UNIX_DIAG_SHUTDOWN -> shutdown = answer.get(value);
                default -> {} // names and the like, which the socket itself tells better
            }
            at += Math.max(4, (size + 3) & ~3);
        }
        return new UnixEntry(
                answer.getInt(start + 4),
                answer.get(start + 1),
                answer.get(start + 2),
                peer,
                pending,
                queued,
                room,
                fileInode,
                shutdown);
    }
}
