package io.stasis.tools.launch;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The environment the user's program gets: the one the command was started with, byte for byte and in its order, plus
 * the cookie by which the agent finds processes of the computation that were re-parented.
 *
 * <p>Entries are bytes, because neither a shell nor Java's strings keep an arbitrary environment as it is. The launcher
 * script has saved it in the file that STASIS_ENVIRONMENT names; without it this process's own is taken.
 */
public final class ProgramEnvironment {
    /** The variable that marks every process of a computation. */
    public static final String COOKIE = "STASIS_COOKIE";

    private static final String SAVED = "STASIS_ENVIRONMENT";

    private final List<byte[]> entries;

    private ProgramEnvironment(List<byte[]> entries) {
        this.entries = entries;
    }

    /** Reads the saved environment and removes its file. */
    public static ProgramEnvironment take() {
        String saved = System.getenv(SAVED);
        try {
            if (saved != null) {
                Path file = Path.of(saved);
                byte[] bytes = Files.readAllBytes(file);
                Files.deleteIfExists(file);
                return of(bytes);
            }
            return of(Files.readAllBytes(Path.of("/proc/self/environ")));
        } catch (IOException e) {
            throw new IllegalStateException("cannot read the environment: " + e.getMessage(), e);
        }
    }

    /** @param block entries, each followed by a zero byte, as in /proc/PID/environ */
    static ProgramEnvironment of(byte[] block) {
        List<byte[]> entries = new ArrayList<>();
        for (byte[] entry : Bytes.split(block)) {
            if (!Bytes.startsWith(entry, SAVED + "=")) {
                entries.add(entry);
            }
        }
        return new ProgramEnvironment(entries);
    }

    /** The same with another cookie. */
    public ProgramEnvironment withCookie(String value) {
        List<byte[]> changed = new ArrayList<>();
        for (byte[] entry : entries) {
            if (!Bytes.startsWith(entry, COOKIE + "=")) {
                changed.add(entry);
            }
        }
        changed.add((COOKIE + "=" + value).getBytes(StandardCharsets.US_ASCII));
        return new ProgramEnvironment(changed);
    }

    /** The directories of PATH, as execvp(3) takes them: an empty one is the current directory. */
    List<byte[]> path() {
        for (byte[] entry : entries) {
            if (Bytes.startsWith(entry, "PATH=")) {
                return Bytes.split(java.util.Arrays.copyOfRange(entry, 5, entry.length), ':');
            }
        }
        return List.of("/bin".getBytes(StandardCharsets.US_ASCII), "/usr/bin".getBytes(StandardCharsets.US_ASCII));
    }

    List<byte[]> entries() {
        return entries;
    }
}
