package io.stasis.engine.resource.ipc;

import io.stasis.image.model.SystemVObject.MessageQueue;
import io.stasis.image.model.SystemVObject.SemaphoreSet;
import io.stasis.linux.ipc.IpcTable;
import io.stasis.linux.ipc.Messages;
import io.stasis.linux.ipc.Semaphores;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.ptrace.CallTable;
import java.util.List;

/**
 * Gives semaphore sets and message queues that exist their content. The kernel notes who changed them last, and that is
 * how the next checkpoint knows them: what leaves its mark is done in the process whose mark it was, or else in the root
 * process.
 */
final class SystemVContent {
    /** Longer messages are not put into the work area of a process. */
    private static final int LIMIT = 64 * 1024;

    private static final long ONE_UP = 1L << 16;
    private static final long ONE_DOWN = 0xffffL << 16;
    /** A message without text, of type 1. */
    private static final byte[] EMPTY = {1, 0, 0, 0, 0, 0, 0, 0};

    private SystemVContent() {}

    static void restore(SemaphoreSet set, boolean found, IpcProcesses processes) {
        Semaphores.set(set.id(), set.user(), set.group(), set.mode());
        if (set.used() && !found) {
            touch(set, processes);
        }
        int[] there = Semaphores.find(set.id()).orElseThrow().values();
        for (int i = 0; i < there.length; i++) {
            if (set.pids()[i] != 0 || there[i] != set.values()[i]) {
                CallTable calls = new CallTable();
                calls.must(
                        "set semaphore " + i + " of set " + set.id(),
                        SystemCall.SEMCTL,
                        set.id(),
                        i,
                        Semaphores.SETVAL,
                        set.values()[i]);
                processes.run(set.pids()[i], calls);
            }
        }
    }

    /** An operation that changes nothing but sem_otime, which programs wait for to become other than 0. */
    private static void touch(SemaphoreSet set, IpcProcesses processes) {
        int number = 0;
        while (number < set.pids().length - 1 && set.pids()[number] == 0) {
            number++;
        }
        CallTable calls = new CallTable();
        // Two struct sembuf of 6 bytes {number, change, flags}: up and down again, at once.
        long up = number | ONE_UP;
        long down = number | ONE_DOWN;
        long operations = calls.longs(up | down << 48, down >>> 16);
        calls.must("use semaphore set " + set.id(), SystemCall.SEMOP, set.id(), operations, 2);
        processes.run(set.pids()[number], calls);
    }

    static void restore(MessageQueue queue, IpcProcesses processes) {
        List<byte[]> messages = queue.messages();
        Messages.empty(queue.id());
        long needed = messages.stream().mapToLong(m -> m.length - Long.BYTES).sum();
        Messages.set(queue.id(), queue.user(), queue.group(), queue.mode(), Math.max(needed, queue.capacity()));
        if (queue.receiver() != 0) {
            send(queue, EMPTY, processes);
            CallTable calls = new CallTable();
            calls.must(
                    "receive from message queue " + queue.id(),
                    SystemCall.MSGRCV,
                    queue.id(),
                    calls.reserve(Long.BYTES),
                    0,
                    0,
                    IpcTable.IPC_NOWAIT);
            processes.run(queue.receiver(), calls);
        }
        for (int i = 0; i < messages.size(); i++) {
            if (i < messages.size() - 1 || messages.get(i).length > LIMIT) {
                Messages.send(queue.id(), messages.get(i));
            } else {
                send(queue, messages.get(i), processes);
            }
        }
        if (needed > queue.capacity()) {
            Messages.set(queue.id(), queue.user(), queue.group(), queue.mode(), queue.capacity());
        }
    }

    private static void send(MessageQueue queue, byte[] message, IpcProcesses processes) {
        CallTable calls = new CallTable();
        calls.must(
                "send to message queue " + queue.id(),
                SystemCall.MSGSND,
                queue.id(),
                calls.data(message),
                message.length - Long.BYTES,
                IpcTable.IPC_NOWAIT);
        processes.run(queue.sender(), calls);
    }
}
