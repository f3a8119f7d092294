package io.stasis.tests.harness;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.List;

/** How a command ended, and what it said. */
public record CommandResult(List<String> command, int exit, String out, String err, Duration wall) {
    /** Standard output as JSON. */
    public JsonNode json() {
        try {
            return new ObjectMapper().readTree(out);
        } catch (JsonProcessingException e) {
            throw new AssertionError("not JSON: " + this, e);
        }
    }

    /** Fails unless the command succeeded. */
    public CommandResult expectSuccess() {
        return expectExit(0);
    }

    public CommandResult expectExit(int expected) {
        if (exit != expected) {
            throw new AssertionError("exit status " + exit + " instead of " + expected + " of " + this);
        }
        return this;
    }

    /**
     * Fails unless the command refused with this exit status, in one clear sentence on standard error that contains
     * these words, and without a stack trace.
     */
    public CommandResult expectRefusal(int expected, String... words) {
        expectExit(expected);
        var lines = err.lines().filter(line -> !line.isBlank()).toList();
        if (lines.size() != 1 || !lines.getFirst().startsWith("stasis: ")) {
            throw new AssertionError("not one sentence on standard error: " + this);
        }
        for (String word : words) {
            if (!lines.getFirst().contains(word)) {
                throw new AssertionError("the sentence does not say \"" + word + "\": " + this);
            }
        }
        return this;
    }

    @Override
    public String toString() {
        return String.join(" ", command) + "\nexit status " + exit + " after " + wall.toMillis() + " ms\nstdout:\n"
                + out + "\nstderr:\n" + err;
    }
}
