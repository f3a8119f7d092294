package io.stasis.engine.resource.file;

import io.stasis.linux.Pid;
import io.stasis.linux.proc.ProcStat;
import io.stasis.linux.proc.ProcStatus;
import java.util.OptionalInt;
import java.util.Set;
import java.util.regex.Pattern;

/** Files of /proc that belong to a process of the tree, such as /proc/self/maps: they exist when the process does. */
final class ProcessFiles {
    private static final Pattern OF_PROCESS = Pattern.compile("/proc/[0-9]+(/.*)?");
    private static final Pattern OF_THREAD = Pattern.compile("/proc/([0-9]+)/task/([0-9]+)(/.*)?");

    private static final Pattern OF_DESCRIPTOR = Pattern.compile("/proc/[0-9]+(?:/task/[0-9]+)?/fdinfo/([0-9]+)");

    private ProcessFiles() {}

    /** The descriptor that a file of /proc/PID/fdinfo tells of. */
    static OptionalInt descriptor(String path) {
        var matcher = OF_DESCRIPTOR.matcher(path);
        return matcher.matches() ? OptionalInt.of(Integer.parseInt(matcher.group(1))) : OptionalInt.empty();
    }

    /**
     * Whether the file belongs to a process of the tree (a zombie too) and so can be opened again when that exists. Files
     * of threads cannot, as threads are made later than descriptors; the main thread is the process.
     */
    static boolean isOfTree(Set<Integer> treePids, String path) {
        String[] parts = path.split("/");
        int pid = Integer.parseInt(parts[2]);
        var thread = OF_THREAD.matcher(path);
        if (thread.matches() && !thread.group(2).equals(thread.group(1))) {
            return false;
        }
        return treePids.contains(pid)
                || treePids.stream().anyMatch(each -> isKnownAs(pid, new Pid(each)))
                || ProcStat.find(new Pid(pid))
                        .filter(stat -> stat.isZombie() && treePids.contains(stat.ppid()))
                        .isPresent();
    }

    /** Whether a process in a pid namespace has this id there: a path in its own /proc has that. */
    private static boolean isKnownAs(int id, Pid host) {
        return ProcStatus.find(host)
                .filter(status -> status.nspid().length > 1 && status.nspid()[status.nspid().length - 1] == id)
                .isPresent();
    }

    /** Whether a path leads to some process's files. */
    static boolean isOfProcess(String path) {
        return OF_PROCESS.matcher(path).matches();
    }
}
