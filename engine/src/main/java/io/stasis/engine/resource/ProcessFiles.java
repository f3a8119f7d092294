package io.stasis.engine.resource;

import io.stasis.image.model.OpenDescription.OpenFile;
import java.util.regex.Pattern;

/** Files of /proc that belong to a process of the tree, such as /proc/self/maps: they exist when the process does. */
final class ProcessFiles {
    private static final Pattern OF_PROCESS = Pattern.compile("/proc/[0-9]+(/.*)?");
    private static final Pattern OF_THREAD = Pattern.compile("/proc/([0-9]+)/task/([0-9]+)(/.*)?");

    private ProcessFiles() {}

    static boolean isOfProcess(OpenFile file) {
        return OF_PROCESS.matcher(file.file().path()).matches();
    }

    /** Whether the file belongs to the process itself, and so can be opened again by it at restart. */
    static boolean isOwn(int pid, String path) {
        if (!path.startsWith("/proc/" + pid + "/") && !path.equals("/proc/" + pid)) {
            return false;
        }
        // Threads are made later than descriptors; the main thread is the process.
        var thread = OF_THREAD.matcher(path);
        return !thread.matches() || thread.group(2).equals(Integer.toString(pid));
    }

    /** Whether a path leads to some process's files. */
    static boolean isOfProcess(String path) {
        return OF_PROCESS.matcher(path).matches();
    }
}
