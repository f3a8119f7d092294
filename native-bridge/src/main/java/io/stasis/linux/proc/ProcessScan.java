package io.stasis.linux.proc;

import io.stasis.linux.Pid;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Looks through all processes that {@code /proc} shows. */
public final class ProcessScan {
    private ProcessScan() {}

    /** Process ids, ascending. */
    public static int[] all() {
        return Procfs.numbers(new Pid(1), "/proc");
    }

    /**
     * The processes whose environment, as it was given to execve(2), holds exactly the entry {@code NAME=value}. Those
     * that end meanwhile or whose environment we may not read are left out.
     */
    public static int[] withEnvironment(String assignment) {
        byte[] wanted = assignment.getBytes(StandardCharsets.UTF_8);
        int[] pids = all();
        int count = 0;
        for (int pid : pids) {
            if (Procfs.tryRead("/proc/" + pid + "/environ") > 0 && holds(Procfs.lastText(), wanted)) {
                pids[count++] = pid;
            }
        }
        return Arrays.copyOf(pids, count);
    }

    /** Whether one process's environment holds exactly the entry; false when it may not be read. */
    public static boolean hasEnvironment(Pid pid, String assignment) {
        return Procfs.tryRead(Procfs.file(pid, "environ")) > 0
                && holds(Procfs.lastText(), assignment.getBytes(StandardCharsets.UTF_8));
    }

    static boolean holds(ProcText environment, byte[] wanted) {
        byte[] bytes = environment.bytes;
        int entry = 0;
        while (entry < environment.length) {
            int end = entry;
            while (end < environment.length && bytes[end] != 0) {
                end++;
            }
            if (end - entry == wanted.length && Arrays.equals(bytes, entry, end, wanted, 0, wanted.length)) {
                return true;
            }
            entry = end + 1;
        }
        return false;
    }
}
