package io.stasis.tests.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The file to which a self-checking program writes; see check.h for its lines. Ticks are numbered from 1 without a gap
 * or a repetition, however often the program was checkpointed and restarted from its newest generation.
 */
public record Progress(Path file) {
    public List<String> lines() {
        try {
            return Files.exists(file) ? Files.readAllLines(file) : List.of();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The last tick, 0 when there is none. */
    public long ticks() {
        var lines = lines();
        for (int i = lines.size() - 1; i >= 0; i--) {
            if (lines.get(i).startsWith("tick ")) {
                return Long.parseLong(lines.get(i).substring(5));
            }
        }
        return 0;
    }

    /** Fails when the program found a fault in itself. */
    public void checkUnharmed() {
        for (String line : lines()) {
            if (line.startsWith("FAIL")) {
                throw new AssertionError("the program says: " + line);
            }
        }
    }

    /** Fails unless the ticks are 1, 2, 3, ... */
    public void checkGapless() {
        long expected = 1;
        for (String line : lines()) {
            if (line.startsWith("tick ")) {
                long tick = Long.parseLong(line.substring(5));
                if (tick != expected) {
                    throw new AssertionError("tick " + tick + " where " + expected + " was expected in " + file);
                }
                expected++;
            }
        }
    }

    /** Lets the program come to its end. */
    public void stop() {
        try {
            Files.createFile(stopFile());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public Path stopFile() {
        return Path.of(file + ".stop");
    }

    String tail(int count) {
        var lines = lines();
        return String.join("\n", lines.subList(Math.max(0, lines.size() - count), lines.size()));
    }
}
