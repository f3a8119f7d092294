package io.stasis.linux.ipc;

import io.stasis.linux.Errno;
import io.stasis.linux.libc.Libc;
import io.stasis.linux.libc.SystemCall;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** What System V semaphore sets and message queues of our ipc namespace have in common, see sysvipc(7). */
public enum IpcTable {
    SEMAPHORE_SETS("sem", "semaphore set"),
    MESSAGE_QUEUES("msg", "message queue");

    // <linux/ipc.h>
    public static final int IPC_CREAT = 01000;
    public static final int IPC_EXCL = 02000;
    public static final int IPC_NOWAIT = 04000;
    static final int IPC_RMID = 0;
    static final int IPC_SET = 1;
    static final int IPC_STAT = 2;

    /** Leaves the choice of an id to the kernel. */
    public static final int ANY_ID = -1;

    private final String file;
    private final String noun;

    IpcTable(String file, String noun) {
        this.file = file;
        this.noun = noun;
    }

    /** What one is called. */
    public String noun() {
        return noun;
    }

    /** The ids of all that exist, also of those that we may not look at. */
    public List<Integer> ids() {
        try {
            return Files.readAllLines(Path.of("/proc/sysvipc/" + file)).stream()
                    .skip(1)
                    .map(line -> Integer.parseInt(line.strip().split("\\s+")[1]))
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read /proc/sysvipc/" + file, e);
        }
    }

    /** The id of the one that has the key; empty when none has. */
    public Optional<Integer> idOf(int key) {
        long id =
                this == SEMAPHORE_SETS ? Libc.call(SystemCall.SEMGET, key, 0, 0) : Libc.call(SystemCall.MSGGET, key, 0);
        return id == -Errno.ENOENT ? Optional.empty() : Optional.of((int) id);
    }

    /**
     * Asks the kernel to give the next one that anybody makes this id, see msg_next_id in
     * Documentation/admin-guide/sysctl/kernel.rst. Needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN.
     */
    public void chooseNextId(int id) throws IOException {
        Files.writeString(Path.of("/proc/sys/kernel/" + file + "_next_id"), Integer.toString(id));
    }

    /** Removes it with all that it holds. */
    public void remove(int id) {
        long result = this == SEMAPHORE_SETS
                ? Libc.call(SystemCall.SEMCTL, id, 0, IPC_RMID, 0)
                : Libc.call(SystemCall.MSGCTL, id, IPC_RMID, 0);
        Libc.check(result, "remove " + noun + " " + id);
    }

    /** Whether the id leads nowhere that we could look at. */
    static boolean isUnknown(long result) {
        return result == -Errno.EINVAL || result == -Errno.EIDRM || result == -Errno.EACCES;
    }
}
