package io.stasis.tests.harness;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** What /proc tells of processes, see proc(5). A process that is gone has no threads, no children and no state. */
public final class ProcessTable {
    private ProcessTable() {}

    /** Fields of /proc/PID/stat from the state on; empty when the process is gone. */
    private static List<String> stat(Path task) {
        try {
            String text = new String(Files.readAllBytes(task.resolve("stat")), StandardCharsets.ISO_8859_1);
            return Arrays.asList(text.substring(text.lastIndexOf(')') + 2).split(" "));
        } catch (IOException e) {
            return List.of();
        }
    }

    /** Process state as one letter; empty when the process is gone. */
    public static Optional<Character> state(long pid) {
        var fields = stat(Path.of("/proc/" + pid));
        return fields.isEmpty()
                ? Optional.empty()
                : Optional.of(fields.getFirst().charAt(0));
    }

    public static boolean exists(long pid) {
        return state(pid).isPresent();
    }

    /** Field 22 of stat: with it a pid names one process for ever. */
    public static long startTime(long pid) {
        var fields = stat(Path.of("/proc/" + pid));
        return fields.isEmpty() ? 0 : Long.parseLong(fields.get(19));
    }

    /** Threads and their states. */
    public static Map<Long, Character> threads(long pid) {
        var states = new TreeMap<Long, Character>();
        for (Path task : entries(Path.of("/proc/" + pid + "/task"))) {
            var fields = stat(task);
            if (!fields.isEmpty()) {
                states.put(
                        Long.parseLong(task.getFileName().toString()),
                        fields.getFirst().charAt(0));
            }
        }
        return states;
    }

    /** The process and all its descendants, parents first. */
    public static List<Long> tree(long root) {
        var pids = new ArrayList<Long>();
        if (exists(root)) {
            pids.add(root);
        }
        for (int i = 0; i < pids.size(); i++) {
            for (Path task : entries(Path.of("/proc/" + pids.get(i) + "/task"))) {
                try {
                    for (String child :
                            Files.readString(task.resolve("children")).split(" ")) {
                        if (!child.isBlank()) {
                            pids.add(Long.parseLong(child.strip()));
                        }
                    }
                } catch (IOException e) {
                    // gone meanwhile
                }
            }
        }
        return pids;
    }

    /** Processes whose environment has this variable with this value; zombies have no environment. */
    public static List<Long> withEnvironment(String name, String value) {
        var pids = new ArrayList<Long>();
        String wanted = "\0" + name + "=" + value + "\0";
        for (Path process : entries(Path.of("/proc"))) {
            if (!Character.isDigit(process.getFileName().toString().charAt(0))) {
                continue;
            }
            try {
                String environment =
                        "\0" + new String(Files.readAllBytes(process.resolve("environ")), StandardCharsets.ISO_8859_1)
                                + "\0";
                if (environment.contains(wanted)) {
                    pids.add(Long.parseLong(process.getFileName().toString()));
                }
            } catch (IOException e) {
                // gone meanwhile, or somebody else's
            }
        }
        return pids;
    }

    /** Kills exactly this process: its handle holds the start time, so a reused pid is left alone. */
    public static void kill(long pid) {
        if (pid != ProcessHandle.current().pid()) {
            ProcessHandle.of(pid).ifPresent(ProcessHandle::destroyForcibly);
        }
    }

    /** For people: each process and thread of a tree, what it is, its state and where it waits. */
    public static String describe(long root) {
        var text = new StringBuilder();
        for (long pid : tree(root)) {
            for (var thread : threads(pid).entrySet()) {
                Path task = Path.of("/proc/" + pid + "/task/" + thread.getKey());
                text.append("  ")
                        .append(pid)
                        .append('/')
                        .append(thread.getKey())
                        .append(' ')
                        .append(thread.getValue());
                for (String file : List.of("comm", "wchan", "syscall")) {
                    try {
                        text.append(' ')
                                .append(Files.readString(task.resolve(file)).strip());
                    } catch (IOException e) {
                        text.append(" -");
                    }
                }
                text.append('\n');
            }
        }
        return text.toString();
    }

    /** Gives every thread of a process the lowest priority; threads made later inherit it. */
    public static void yieldToOthers(long pid) {
        for (Path task : entries(Path.of("/proc/" + pid + "/task"))) {
            try {
                new ProcessBuilder(
                                "renice", "-n", "19", "-p", task.getFileName().toString())
                        .redirectErrorStream(true)
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .start()
                        .waitFor();
            } catch (IOException e) {
                throw new java.io.UncheckedIOException(e);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static List<Path> entries(Path directory) {
        var list = new ArrayList<Path>();
        try (DirectoryStream<Path> stream = Files.newDirectoryStream(directory)) {
            stream.forEach(list::add);
        } catch (IOException | java.nio.file.DirectoryIteratorException e) {
            // gone meanwhile
        }
        return list;
    }
}
