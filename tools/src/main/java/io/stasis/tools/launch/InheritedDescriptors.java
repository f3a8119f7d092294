package io.stasis.tools.launch;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;

/**
 * The descriptors that this process got from its parent, as opposed to those the JVM opened for itself.
 *
 * <p>What came through execve(2) has no close-on-exec flag; the JVM sets it on all but the files of its own modules and
 * class path, which are known by their names. A descriptor that is not inherited must not reach the user's program.
 */
public final class InheritedDescriptors {
    private static final int O_CLOEXEC = 02000000;

    /** Files that the JVM opens by itself, some of them without the flag. */
    private static final Set<String> OWN_FILES = ownFiles();

    private final Set<Integer> numbers = new TreeSet<>();

    private InheritedDescriptors() {}

    private static Set<String> ownFiles() {
        Set<String> files = new TreeSet<>();
        files.add(System.getProperty("java.home") + "/lib/modules");
        for (String jar : System.getProperty("java.class.path").split(File.pathSeparator)) {
            files.add(new File(jar).getAbsolutePath());
        }
        return files;
    }

    /** Looks at this process's descriptors. Comes first in the program, before anything of its own is opened. */
    public static InheritedDescriptors now() {
        InheritedDescriptors inherited = new InheritedDescriptors();
        for (int fd : open()) {
            if (comesFromOutside(fd)) {
                inherited.numbers.add(fd);
            }
        }
        return inherited;
    }

    public boolean contains(int fd) {
        return numbers.contains(fd);
    }

    /** Numbers of all descriptors this process has open, the one used for looking included. */
    static Set<Integer> open() {
        Set<Integer> open = new TreeSet<>();
        String[] names = new File("/proc/self/fd").list();
        for (String name : names == null ? new String[0] : names) {
            open.add(Integer.parseInt(name));
        }
        return open;
    }

    private static boolean comesFromOutside(int fd) {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/fdinfo/" + fd))) {
                if (line.startsWith("flags:")) {
                    boolean closesOnExec = (Integer.parseInt(line.substring(6).strip(), 8) & O_CLOEXEC) != 0;
                    String target = Files.readSymbolicLink(Path.of("/proc/self/fd/" + fd))
                            .toString();
                    return !closesOnExec && !OWN_FILES.contains(target);
                }
            }
            return false;
        } catch (IOException gone) {
            // The descriptor that listed the directory: it is closed by now.
            return false;
        }
    }
}
