package io.stasis.tests.e2e;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Await;
import io.stasis.tests.harness.CommandResult;
import io.stasis.tests.harness.ProcessTable;
import io.stasis.tests.harness.Programs;
import io.stasis.tests.harness.Stasis;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Programs that are stopped, that end, that are checkpointed by several people at once. */
class LifeIT {
    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ROOT);

    @Test
    void aStoppedProgramStaysStopped() {
        var target = stasis.launch(Programs.c("threads"));
        target.signal("STOP");
        isStopped(target.pid());
        stasis.run("checkpoint", target.name()).expectSuccess();
        isStopped(target.pid());
        target.checkpointAndKill();
        target.restartDetached().expectSuccess();
        isStopped(target.pid());
        target.signal("CONT");
        target.awaitMoreTicks();
        target.checkpointAndKill();
        target.restart();
        target.finish();
    }

    private static void isStopped(long pid) {
        Await.until(
                "all threads are stopped",
                Await.PATIENCE,
                () -> ProcessTable.threads(pid).values().stream().allMatch(state -> state == 'T'),
                () -> ProcessTable.describe(pid));
    }

    @Test
    void severalCheckpointsAtOnceDoNotMeet() throws Exception {
        var targets = List.of(
                stasis.launch(Programs.c("threads")),
                stasis.launch(Programs.c("counter")),
                stasis.launch(Programs.c("ring").with("6")));
        try (var threads = Executors.newFixedThreadPool(6)) {
            var results = new ArrayList<Future<CommandResult>>();
            for (int i = 0; i < 2; i++) {
                for (var target : targets) {
                    results.add(threads.submit(() -> stasis.run("checkpoint", target.name())));
                }
            }
            for (var result : results) {
                // two for the same program come one after the other, or the second is refused
                assertThat(result.get().exit()).as(result.get().toString()).isIn(0, 1);
            }
        }
        for (var target : targets) {
            target.awaitMoreTicks();
        }
        assertThat(stasis.run("checkpoint", "--all", "--json")
                        .expectSuccess()
                        .json()
                        .path("generations"))
                .hasSize(targets.size());
        for (var target : targets) {
            target.checkpointAndKill();
            target.restart();
            target.finish();
        }
    }

    @Test
    void aProgramThatEndsMeanwhileEndsWithItsStatus() {
        for (int i = 0; i < 5; i++) {
            var target = stasis.launch(Programs.c("threads").with("32"));
            target.progress().stop();
            var result = stasis.run("checkpoint", target.name());
            assertThat(result.exit()).as(result.toString()).isIn(0, 1, 6);
            assertThat(target.awaitEnd()).isEqualTo(42);
            target.progress().checkUnharmed();
        }
    }

    @Test
    void anIntervalMakesGenerationsByItself() throws IOException {
        var target = stasis.launchWith(List.of("--interval", "1"), Programs.c("counter"));
        Await.until(
                "there are two generations", () -> Files.exists(target.image().resolve("0002/manifest.json")));
        target.awaitMoreTicks();
        target.finish();
        Await.until(
                "the agent sees by itself that the program has ended",
                () -> stasis.run("log")
                        .out()
                        .lines()
                        .anyMatch(line -> line.contains("computation|" + target.name() + " ")
                                && line.contains("processes ended")));
        int last = generations(target.image());
        stasis.run("verify", target.image().toString()).expectSuccess();
        assertThat(last).isGreaterThanOrEqualTo(2);
    }

    private static int generations(java.nio.file.Path image) throws IOException {
        try (var entries = Files.list(image)) {
            return (int) entries.filter(entry -> entry.getFileName().toString().matches("\\d{4}"))
                    .count();
        }
    }

    @Test
    void aKilledProgramEndsAndIsForgotten() {
        var target = stasis.launch(Programs.c("ring").with("5"));
        var tree = ProcessTable.tree(target.pid());
        assertThat(tree).hasSize(5);
        stasis.run("kill", target.name()).expectSuccess();
        target.awaitEnd();
        Await.until("the whole tree is gone", () -> tree.stream().noneMatch(ProcessTable::exists));
        Await.until("it is forgotten", () -> !stasis.run("ps").out().contains(target.name() + " "));
    }
}
