package io.stasis.linux.ipc;

import io.stasis.linux.Errno;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.nio.ByteBuffer;
import java.util.Optional;

/**
 * A System V message queue of our ipc namespace, see msgctl(2) and msgop(2).
 *
 * @param bytes of all its messages
 * @param count how many messages it holds
 * @param capacity msg_qbytes
 * @param sender pid of who sent last, 0 for nobody
 * @param receiver pid of who received last, 0 for nobody
 */
public record Messages(
        int id,
        int key,
        int user,
        int group,
        int mode,
        long bytes,
        long count,
        long capacity,
        int sender,
        int receiver) {
    private static final int MSG_NOERROR = 010000;
    /** Looks at the message of a number and leaves it and all else as they are; with CONFIG_CHECKPOINT_RESTORE. */
    private static final int MSG_COPY = 040000;
    /** {@code struct msqid64_ds} of x86-64. */
    private static final int BYTES = 120;

    /** Empty when there is none of this id, or none that we may look at. */
    public static Optional<Messages> find(int id) {
        ByteBuffer b = Libc.buffer(BYTES);
        long result = Libc.call(SystemCall.MSGCTL, id, IpcTable.IPC_STAT, Libc.address(b));
        if (IpcTable.isUnknown(result)) {
            return Optional.empty();
        }
        Libc.check(result, "msgctl IPC_STAT of message queue " + id);
        return Optional.of(new Messages(
                id,
                b.getInt(0),
                b.getInt(4),
                b.getInt(8),
                b.getInt(20),
                b.getLong(72),
                b.getLong(80),
                b.getLong(88),
                b.getInt(96),
                b.getInt(100)));
    }

    /**
     * The message at a place of the queue, which stays there: {@code struct msgbuf}, the type in front of the text.
     *
     * @param place 0 for the oldest
     */
    public byte[] peek(int place) {
        int room = (int) Math.min(bytes, Integer.MAX_VALUE - Long.BYTES);
        ByteBuffer b = Libc.buffer(Long.BYTES + room);
        long length = Libc.call(SystemCall.MSGRCV, id, Libc.address(b), room, place, MSG_COPY | IpcTable.IPC_NOWAIT, 0);
        byte[] message = new byte[Long.BYTES + (int) Libc.check(length, "look into message queue " + id)];
        b.get(0, message);
        return message;
    }

    /**
     * Makes an empty queue.
     *
     * @return its id
     */
    public static int make(int key) {
        int flags = IpcTable.IPC_CREAT | IpcTable.IPC_EXCL | 0600;
        return (int) Libc.check(Libc.call(SystemCall.MSGGET, key, flags), "make a message queue");
    }

    /** Sets owner, permissions and msg_qbytes; more than kernel.msgmnb takes CAP_SYS_RESOURCE. */
    public static void set(int id, int user, int group, int mode, long capacity) {
        ByteBuffer b = Libc.buffer(BYTES);
        b.putInt(4, user).putInt(8, group).putInt(20, mode).putLong(88, capacity);
        Libc.check(
                Libc.call(SystemCall.MSGCTL, id, IpcTable.IPC_SET, Libc.address(b)),
                "msgctl IPC_SET of message queue " + id);
    }

    /** Adds a message, a {@code struct msgbuf}. */
    public static void send(int id, byte[] message) {
        ByteBuffer b = Libc.buffer(message.length).put(0, message);
        Libc.check(
                Libc.call(SystemCall.MSGSND, id, Libc.address(b), message.length - Long.BYTES, IpcTable.IPC_NOWAIT),
                "send to message queue " + id);
    }

    /** Takes all messages out. */
    public static void empty(int id) {
        ByteBuffer b = Libc.buffer(Long.BYTES);
        long result = 0;
        while (result != -Errno.ENOMSG) {
            result = Libc.call(SystemCall.MSGRCV, id, Libc.address(b), 0, 0, IpcTable.IPC_NOWAIT | MSG_NOERROR, 0);
            if (result != -Errno.ENOMSG) {
                Libc.check(result, "empty message queue " + id);
            }
        }
    }
}
