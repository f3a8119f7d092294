package io.stasis.image.model;

import java.util.List;

/**
 * A System V semaphore set or message queue that processes of the tree use, see sysvipc(7).
 *
 * <p>{@code key} is IPC_PRIVATE (0) for one without; {@code mode} has the permissions.
 */
public sealed interface SystemVObject {
    int id();

    int key();

    int user();

    int group();

    int mode();

    /**
     * @param used whether semop(2) ever succeeded
     * @param values of its semaphores
     * @param pids who changed each last, 0 for nobody
     */
    record SemaphoreSet(int id, int key, int user, int group, int mode, boolean used, int[] values, int[] pids)
            implements SystemVObject {}

    /**
     * @param capacity msg_qbytes
     * @param messages oldest first: {@code struct msgbuf} each, the type in front of the text
     * @param sender pid of who sent last, 0 for nobody
     * @param receiver pid of who received last, 0 for nobody
     */
    record MessageQueue(
            int id,
            int key,
            int user,
            int group,
            int mode,
            long capacity,
            List<byte[]> messages,
            int sender,
            int receiver)
            implements SystemVObject {}
}
