package io.stasis.tools.demo;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;

/** The file that the demonstration's program writes its numbers to, one a line. */
final class CountFile {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final Path path;

    CountFile(Path path) {
        this.path = path;
    }

    /** The numbers in complete lines. */
    List<Integer> numbers() throws IOException {
        if (Files.notExists(path)) {
            return List.of();
        }
        String text = Files.readString(path);
        return text.substring(0, text.lastIndexOf('\n') + 1)
                .lines()
                .map(Integer::valueOf)
                .toList();
    }

    /** The last number, 0 when there is none yet. */
    int last() throws IOException {
        List<Integer> numbers = numbers();
        return numbers.isEmpty() ? 0 : numbers.getLast();
    }

    /**
     * Waits until the count has come to {@code number}.
     *
     * @return where it is then
     * @throws IllegalStateException when the program ends or stands still
     */
    int await(int number, Process program) throws IOException, InterruptedException {
        Instant deadline = Instant.now().plus(LIMIT);
        int last = last();
        while (last < number) {
            if (!program.isAlive()) {
                throw new IllegalStateException(
                        "the program ended with status " + program.exitValue() + " at number " + last);
            }
            if (Instant.now().isAfter(deadline)) {
                throw new IllegalStateException("the count stands still at " + last);
            }
            Thread.sleep(20);
            last = last();
        }
        return last;
    }

    /** The first number that is missing or out of place, 0 when there is no such. */
    int firstGap() throws IOException {
        List<Integer> numbers = numbers();
        for (int i = 0; i < numbers.size(); i++) {
            if (numbers.get(i) != i + 1) {
                return i + 1;
            }
        }
        return 0;
    }
}
