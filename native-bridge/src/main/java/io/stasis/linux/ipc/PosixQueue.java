package io.stasis.linux.ipc;

import io.stasis.linux.Errno;
import io.stasis.linux.Fd;
import io.stasis.linux.libc.Fcntl;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/** POSIX message queues of our ipc namespace, see mq_overview(7), through descriptors of ours. */
public final class PosixQueue {
    /** f_type of the file system that they live in, {@code <linux/magic.h>}. */
    public static final long MQUEUE_MAGIC = 0x19800202L;

    /** {@code struct mq_attr}. */
    public static final int ATTRIBUTE_BYTES = 64;

    private static final int STATUS_ROOM = 256;

    /**
     * @param maxMessages mq_maxmsg
     * @param messageSize mq_msgsize
     * @param messages mq_curmsgs
     */
    public record Attributes(long maxMessages, long messageSize, long messages) {}

    private PosixQueue() {}

    /**
     * Opens the queue of a name for receiving.
     *
     * @param name with its slash
     * @return empty when there is none
     */
    public static Optional<Fd> open(String name) {
        ByteBuffer text = Libc.string(name.substring(1));
        long result = Libc.call(
                SystemCall.MQ_OPEN, Libc.address(text), Fcntl.O_RDONLY | Fcntl.O_NONBLOCK | Fcntl.O_CLOEXEC, 0, 0);
        java.lang.ref.Reference.reachabilityFence(text);
        if (result == -Errno.ENOENT) {
            return Optional.empty();
        }
        return Optional.of(new Fd((int) Libc.check(result, "open message queue " + name)));
    }

    public static Attributes attributes(Fd queue) {
        ByteBuffer b = Libc.buffer(ATTRIBUTE_BYTES);
        Libc.check(
                Libc.call(SystemCall.MQ_GETSETATTR, queue.value(), 0, Libc.address(b)),
                "mq_getattr of descriptor " + queue.value());
        return new Attributes(b.getLong(8), b.getLong(16), b.getLong(24));
    }

    /** The process that asked to be told of the next message by mq_notify(3); 0 when none did. */
    public static int notified(Fd queue) {
        ByteBuffer b = Libc.buffer(STATUS_ROOM);
        // "QSIZE:2          NOTIFY:0     SIGNO:0     NOTIFY_PID:0": a pread leaves the offset as it was.
        long length = Libc.check(
                Libc.call(SystemCall.PREAD64, queue.value(), Libc.address(b), STATUS_ROOM, 0),
                "read the status of message queue descriptor " + queue.value());
        byte[] text = new byte[(int) length];
        b.get(0, text);
        String status = new String(text, StandardCharsets.US_ASCII);
        return Integer.parseInt(
                status.substring(status.lastIndexOf(':') + 1).replace("\0", "").strip());
    }

    /** Takes all messages out. */
    public static void empty(Fd queue) {
        int room = (int) attributes(queue).messageSize();
        ByteBuffer b = Libc.buffer(room);
        long result = 0;
        while (result != -Errno.EAGAIN) {
            result = Libc.call(SystemCall.MQ_TIMEDRECEIVE, queue.value(), Libc.address(b), room, 0, 0, 0);
            if (result != -Errno.EAGAIN) {
                Libc.check(result, "empty message queue descriptor " + queue.value());
            }
        }
    }
}
