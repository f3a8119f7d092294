package io.stasis.linux.ipc;

import io.stasis.linux.Errno;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * A System V shared memory segment of our ipc namespace, see shmctl(2) and sysvipc(7).
 *
 * @param key 0 (IPC_PRIVATE) also for one that was removed
 * @param mode permissions, {@link #SHM_DEST} and {@link #SHM_LOCKED}
 * @param creator effective user id of who made it
 * @param size in bytes
 * @param attached how many mappings there are of it
 */
public record SharedSegment(int id, int key, int user, int group, int creator, int mode, long size, long attached) {
    /** Removed: it ends with its last mapping. */
    public static final int SHM_DEST = 01000;

    public static final int SHM_LOCKED = 02000;

    public static final int ANY_ID = -1;

    // <linux/ipc.h>, <linux/shm.h>
    public static final int IPC_CREAT = 01000;
    public static final int IPC_EXCL = 02000;
    public static final int SHM_RDONLY = 010000;
    private static final int IPC_RMID = 0;
    private static final int IPC_SET = 1;
    private static final int IPC_STAT = 2;
    private static final int SHM_LOCK = 11;
    private static final int PERMISSIONS = 0777;

    /** {@code struct shmid64_ds} of x86-64. */
    private static final int BYTES = 112;

    /** Empty when there is none of this id, or none that we may look at. */
    public static Optional<SharedSegment> find(int id) {
        ByteBuffer b = Libc.buffer(BYTES);
        long result = Libc.call(SystemCall.SHMCTL, id, IPC_STAT, Libc.address(b));
        if (result == -Errno.EINVAL || result == -Errno.EIDRM || result == -Errno.EACCES) {
            return Optional.empty();
        }
        Libc.check(result, "shmctl IPC_STAT of segment " + id);
        return Optional.of(new SharedSegment(
                id, b.getInt(0), b.getInt(4), b.getInt(8), b.getInt(12), b.getInt(20), b.getLong(48), b.getLong(88)));
    }

    /** The id of the segment that has the key; empty when none has. */
    public static Optional<Integer> idOf(int key) {
        long id = Libc.call(SystemCall.SHMGET, key, 0, 0);
        return id == -Errno.ENOENT ? Optional.empty() : Optional.of((int) id);
    }

    /**
     * Asks the kernel to give the next segment that anybody makes this id, see shm_next_id in
     * Documentation/admin-guide/sysctl/kernel.rst. Needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN.
     *
     * @param id {@link #ANY_ID} leaves the choice to the kernel again
     */
    public static void chooseNextId(int id) throws IOException {
        Files.writeString(Path.of("/proc/sys/kernel/shm_next_id"), Integer.toString(id));
    }

    /** Sets owner and permissions, and keeps the segment in memory when {@code mode} has {@link #SHM_LOCKED}. */
    public static void set(int id, int user, int group, int mode) {
        ByteBuffer b = Libc.buffer(BYTES);
        b.putInt(4, user).putInt(8, group).putInt(20, mode & PERMISSIONS);
        Libc.check(
                Libc.call(SystemCall.SHMCTL, id, IPC_SET, Libc.address(b)), "shmctl IPC_SET of shared segment " + id);
        if ((mode & SHM_LOCKED) != 0) {
            Libc.check(Libc.call(SystemCall.SHMCTL, id, SHM_LOCK, 0), "shmctl SHM_LOCK of shared segment " + id);
        }
    }

    /** Removes it: at once, or when its last mapping goes. */
    public static void remove(int id) {
        Libc.check(Libc.call(SystemCall.SHMCTL, id, IPC_RMID, 0), "shmctl IPC_RMID of shared segment " + id);
    }
}
