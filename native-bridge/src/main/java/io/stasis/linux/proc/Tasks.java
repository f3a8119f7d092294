package io.stasis.linux.proc;

import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import java.util.Arrays;

/**
 * Threads of a process and its children, {@code /proc/P/task}. The kernel lists children reliably only while the parent
 * is frozen: read them after that.
 */
public final class Tasks {
    private Tasks() {}

    /** Thread ids, ascending. @throws NoSuchProcessException when the process is gone */
    public static int[] threads(Pid pid) {
        return Procfs.numbers(pid, Procfs.file(pid, "task"));
    }

    /** Processes that thread {@code tid} started and has not reaped, zombies included; empty when the thread is gone. */
    public static int[] children(Pid pid, Tid tid) {
        return Procfs.tryRead(Procfs.file(pid, tid, "children")) < 0
                ? new int[0]
                : Procfs.lastText().integers();
    }

    /** Children of all threads, ascending; empty when the process is gone. */
    public static int[] childrenOf(Pid pid) {
        int[] all = new int[0];
        int[] tids;
        try {
            tids = threads(pid);
        } catch (NoSuchProcessException e) {
            return all;
        }
        for (int tid : tids) {
            int[] some = children(pid, new Tid(tid));
            if (some.length > 0) {
                int before = all.length;
                all = Arrays.copyOf(all, before + some.length);
                System.arraycopy(some, 0, all, before, some.length);
            }
        }
        Arrays.sort(all);
        return all;
    }
}
