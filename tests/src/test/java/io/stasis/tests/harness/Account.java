package io.stasis.tests.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * The user that commands run as.
 *
 * @param uid user and group id; the test's own means that nothing is changed
 */
public record Account(int uid) {
    /** Root, which the tests themselves need to be for most of what they do. */
    public static final Account ROOT = new Account(0);

    /** Somebody without any privilege and without supplementary groups. */
    public static final Account ORDINARY = new Account(65534);

    /** The user the tests run as. */
    public static int current() {
        try {
            return (Integer) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The command as this user runs it, see setpriv(1). */
    public List<String> run(List<String> command) {
        if (uid == current()) {
            return List.copyOf(command);
        }
        var whole = new ArrayList<>(List.of("setpriv", "--reuid=" + uid, "--regid=" + uid, "--clear-groups", "--"));
        whole.addAll(command);
        return List.copyOf(whole);
    }

    /** Gives a directory and all below it to this user. */
    public void own(Path tree) {
        if (uid == current()) {
            return;
        }
        try (Stream<Path> paths = Files.walk(tree)) {
            for (Path path : (Iterable<Path>) paths::iterator) {
                Files.setAttribute(path, "unix:uid", uid, java.nio.file.LinkOption.NOFOLLOW_LINKS);
                Files.setAttribute(path, "unix:gid", uid, java.nio.file.LinkOption.NOFOLLOW_LINKS);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Whether this user can execute a file, which may lie below somebody's private directory. */
    boolean reaches(Path file) {
        try {
            var process = new ProcessBuilder(run(List.of("test", "-x", file.toString())))
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start();
            return process.waitFor() == 0;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
