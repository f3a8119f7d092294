package io.stasis.tests.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Await;
import io.stasis.tests.harness.DirectoryTree;
import io.stasis.tests.harness.ProcessTable;
import io.stasis.tests.harness.Program;
import io.stasis.tests.harness.Programs;
import io.stasis.tests.harness.Stasis;
import io.stasis.tests.harness.Target;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Measures pauses, checkpoints and restarts with a warm agent, as the agent and as the user's clock tell them. Medians
 * with the least and the most value: the machine is never quiet, and figures are to be compared within one run.
 */
public final class Bench {
    private final int repetitions;
    private final int mebibytes;
    private final Map<String, List<Figures>> report = new LinkedHashMap<>();

    /**
     * @param repetitions how often each thing is measured
     * @param mebibytes size of the large heaps
     */
    public Bench(int repetitions, int mebibytes) {
        this.repetitions = repetitions;
        this.mebibytes = mebibytes;
    }

    /** Measures all and writes the report to this file. Returns the table for people. */
    public String run(Path file) {
        var stasis = new Stasis(new Account(Account.current()));
        try {
            stasis.open();
            workload(stasis, "one small process", Programs.staticGlibc("counter"));
            workload(stasis, "64 threads", Programs.c("threads").with("64"));
            workload(stasis, "tree of 50", Programs.c("ring").with("50"));
            String size = Integer.toString(mebibytes);
            workload(
                    stasis,
                    size + " MiB random heap",
                    Programs.staticGlibc("heap").with(size, "random"));
            workload(
                    stasis,
                    size + " MiB written zeros",
                    Programs.staticGlibc("heap").with(size, "zero"));
        } catch (AssertionError e) {
            System.err.println(stasis.story("bench"));
            throw e;
        } finally {
            stasis.close();
        }
        write(file);
        return table();
    }

    private void workload(Stasis stasis, String name, Program program) {
        var target = stasis.launch(program);
        var figures = new ArrayList<Figures>();
        figures.addAll(checkpoints(stasis, target));
        if (name.contains("random")) {
            figures.addAll(copies(target));
        }
        figures.addAll(restarts(stasis, target));
        report.put(name, figures);
        stasis.endPrograms();
    }

    private List<Figures> checkpoints(Stasis stasis, Target target) {
        var pause = new ArrayList<Double>();
        var total = new ArrayList<Double>();
        var wall = new ArrayList<Double>();
        var size = new ArrayList<Double>();
        for (int i = -2; i < repetitions; i++) { // the first two warm the agent up
            target.awaitTicks(target.progress().ticks() + 1);
            var result = stasis.run("checkpoint", target.name(), "--json").expectSuccess();
            JsonNode generation = result.json().path("generations").path(0);
            if (i >= 0) {
                pause.add(generation.path("pauseNanos").asLong() / 1e6);
                total.add(generation.path("totalNanos").asLong() / 1e6);
                wall.add(result.wall().toNanos() / 1e6);
                size.add(DirectoryTree.bytes(target.image().resolve("latest").resolve(".")) / 1048576.0);
            }
            DirectoryTree.delete(target.image());
        }
        return List.of(
                Figures.of("pause", "ms", pause),
                Figures.of("request to commit, in the agent", "ms", total),
                Figures.of("checkpoint command", "ms", wall),
                Figures.of("image", "MiB", size));
    }

    private List<Figures> restarts(Stasis stasis, Target target) {
        var total = new ArrayList<Double>();
        var wall = new ArrayList<Double>();
        stasis.run("checkpoint", target.name(), "--kill").expectSuccess();
        target.awaitEnd();
        for (int i = -1; i < repetitions; i++) {
            var result = target.restartDetached().expectSuccess();
            if (i >= 0) {
                total.add(result.json().path("totalNanos").asLong() / 1e6);
                wall.add(result.wall().toNanos() / 1e6);
            }
            target.awaitMoreTicks();
            var tree = ProcessTable.tree(target.pid());
            stasis.run("kill", target.name(), "--now").expectSuccess();
            Await.until("the program is gone", () -> tree.stream().noneMatch(ProcessTable::exists));
        }
        target.progress().checkUnharmed();
        return List.of(Figures.of("restart, in the agent", "ms", total), Figures.of("restart command", "ms", wall));
    }

    /** What dd needs for the same number of random bytes, from memory to the file system of the images. */
    private List<Figures> copies(Target target) {
        var cached = new ArrayList<Double>();
        var synced = new ArrayList<Double>();
        Path memory = Path.of("/dev/shm/st-bench-" + ProcessHandle.current().pid());
        Path file = target.progress().file().resolveSibling("dd");
        try {
            dd("if=/dev/urandom", "of=" + memory);
            for (int i = 0; i < repetitions; i++) {
                cached.add(dd("if=" + memory, "of=" + file));
                Files.delete(file);
                synced.add(dd("if=" + memory, "of=" + file, "conv=fsync"));
                Files.delete(file);
            }
            Files.delete(memory);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return List.of(
                Figures.of("dd of the same bytes", "ms", cached),
                Figures.of("dd of the same bytes, fsync", "ms", synced));
    }

    private double dd(String... operands) {
        var command = new ArrayList<>(List.of("dd", "bs=1M", "count=" + mebibytes, "iflag=fullblock", "status=none"));
        command.addAll(List.of(operands));
        try {
            long started = System.nanoTime();
            var process = new ProcessBuilder(command).inheritIO().start();
            if (!process.waitFor(5, TimeUnit.MINUTES) || process.exitValue() != 0) {
                throw new AssertionError(String.join(" ", command) + " failed");
            }
            return (System.nanoTime() - started) / 1e6;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }

    private String table() {
        var text = new StringBuilder(String.format(
                "%-28s %-34s %10s %10s %10s %-4s %s%n", "workload", "figure", "median", "least", "most", "unit", "n"));
        report.forEach((workload, figures) ->
                figures.forEach(each -> text.append(each.row(workload)).append('\n')));
        return text.toString();
    }

    private void write(Path file) {
        try {
            Files.createDirectories(file.getParent());
            var all = new LinkedHashMap<String, Object>();
            all.put("kernel", System.getProperty("os.version"));
            all.put("processors", Runtime.getRuntime().availableProcessors());
            all.put("workloads", report);
            new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT).writeValue(file.toFile(), all);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
