package io.stasis.linux.ipc;

import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.nio.ByteBuffer;
import java.util.Optional;

/**
 * A System V semaphore set of our ipc namespace, see semctl(2).
 *
 * @param used whether semop(2) ever succeeded (sem_otime)
 * @param values of its semaphores
 * @param pids who changed each last, 0 for nobody
 * @param waiters threads that wait for any of them
 */
public record Semaphores(
        int id, int key, int user, int group, int mode, boolean used, int[] values, int[] pids, int waiters) {
    /** Command of semctl(2) that sets one value. */
    public static final int SETVAL = 16;

    private static final int GETPID = 11;
    private static final int GETVAL = 12;
    private static final int GETNCNT = 14;
    private static final int GETZCNT = 15;
    /** {@code struct semid64_ds} of x86-64. */
    private static final int BYTES = 104;

    /** Empty when there is none of this id, or none that we may look at. */
    public static Optional<Semaphores> find(int id) {
        ByteBuffer b = Libc.buffer(BYTES);
        long result = Libc.call(SystemCall.SEMCTL, id, 0, IpcTable.IPC_STAT, Libc.address(b));
        if (IpcTable.isUnknown(result)) {
            return Optional.empty();
        }
        Libc.check(result, "semctl IPC_STAT of semaphore set " + id);
        int count = (int) b.getLong(80);
        int[] values = new int[count];
        int[] pids = new int[count];
        int waiters = 0;
        for (int i = 0; i < count; i++) {
            values[i] = get(id, i, GETVAL);
            pids[i] = get(id, i, GETPID);
            waiters += get(id, i, GETNCNT) + get(id, i, GETZCNT);
        }
        boolean used = b.getLong(48) != 0;
        return Optional.of(
                new Semaphores(id, b.getInt(0), b.getInt(4), b.getInt(8), b.getInt(20), used, values, pids, waiters));
    }

    private static int get(int id, int number, int command) {
        long result = Libc.call(SystemCall.SEMCTL, id, number, command, 0);
        return (int) Libc.check(result, "read semaphore " + number + " of set " + id);
    }

    /**
     * Makes a set of semaphores that are all 0.
     *
     * @return its id
     */
    public static int make(int key, int count) {
        int flags = IpcTable.IPC_CREAT | IpcTable.IPC_EXCL | 0600;
        return (int)
                Libc.check(Libc.call(SystemCall.SEMGET, key, count, flags), "make a set of " + count + " semaphores");
    }

    /** Sets owner and permissions. */
    public static void set(int id, int user, int group, int mode) {
        ByteBuffer b = Libc.buffer(BYTES);
        b.putInt(4, user).putInt(8, group).putInt(20, mode);
        Libc.check(
                Libc.call(SystemCall.SEMCTL, id, 0, IpcTable.IPC_SET, Libc.address(b)),
                "semctl IPC_SET of semaphore set " + id);
    }
}
