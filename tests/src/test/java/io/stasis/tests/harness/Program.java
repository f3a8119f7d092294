package io.stasis.tests.harness;

import java.util.ArrayList;
import java.util.List;

/**
 * A self-checking program, ready to run.
 *
 * @param name for messages and names of files
 * @param command what comes before the name of the progress file
 * @param arguments what comes after it
 */
public record Program(String name, List<String> command, List<String> arguments) {
    public Program(String name, List<String> command) {
        this(name, command, List.of());
    }

    public Program with(String... more) {
        return new Program(name, command, List.of(more));
    }

    List<String> commandLine(Progress progress) {
        var line = new ArrayList<>(command);
        line.add(progress.file().toString());
        line.addAll(arguments);
        return line;
    }

    @Override
    public String toString() {
        return name + (arguments.isEmpty() ? "" : " " + String.join(" ", arguments));
    }
}
