package io.stasis.tests.e2e;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.client.StasisClient;
import io.stasis.client.StasisException;
import io.stasis.client.StateDirectory;
import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Await;
import io.stasis.tests.harness.ProcessTable;
import io.stasis.tests.harness.Programs;
import io.stasis.tests.harness.Stasis;
import io.stasis.tests.harness.Target;
import java.util.List;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The agent dies by SIGKILL at any moment of a checkpoint: the programs go on as if nothing had happened. */
class CrashSafetyIT {
    private static final int KILLS = Integer.getInteger("stasis.kills", 12);

    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ROOT);

    @Tag("crash")
    @Test
    void programsSurviveTheDeathOfTheAgentAtRandomMoments() {
        long seed = System.nanoTime();
        System.out.println("CrashSafetyIT: seed " + seed);
        var random = new Random(seed);
        var targets = List.of(
                stasis.launch(Programs.c("threads").with("16")),
                stasis.launch(Programs.staticGlibc("counter")),
                stasis.launch(Programs.staticMusl("counter")),
                stasis.launch(Programs.c("ring").with("8")));
        // They take all the processors they get: the agent that starts twenty times needs one too.
        targets.forEach(target -> ProcessTable.tree(target.pid()).forEach(ProcessTable::yieldToOthers));
        for (int kill = 0; kill < KILLS; kill++) {
            Target target = targets.get(kill % targets.size());
            // A warm agent, and how long a checkpoint takes it: the moments are spread over that time.
            stasis.run("checkpoint", target.name()).expectSuccess();
            long whole = stasis.run("checkpoint", target.name(), "--json")
                    .expectSuccess()
                    .json()
                    .path("generations")
                    .path(0)
                    .path("totalNanos")
                    .asLong();
            long agent = stasis.agent();
            assertThat(agent).isPositive();
            var request = Thread.ofPlatform().start(() -> request(target));
            LockSupport.parkNanos((long) (random.nextDouble() * whole * 1.3));
            ProcessTable.kill(agent);
            Await.until("the agent is dead", () -> !ProcessTable.exists(agent));
            join(request);
            for (Target each : targets) {
                goesOn(each);
            }
        }
        for (Target target : targets) {
            target.checkpointAndKill();
            target.restart();
            target.finish();
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join(30_000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void aCheckpointCommandThatIsKilledHarmsNothing() throws Exception {
        long seed = System.nanoTime();
        System.out.println("CrashSafetyIT: seed " + seed);
        var random = new Random(seed);
        var target = stasis.launch(Programs.c("threads"));
        for (int kill = 0; kill < 5; kill++) {
            Process command = stasis.start("checkpoint", target.name());
            LockSupport.parkNanos((long) (random.nextDouble() * 400e6));
            command.destroyForcibly().waitFor();
            goesOn(target);
        }
        target.checkpointAndKill();
        target.restart();
        target.finish();
    }

    /** The answer does not come, unless the agent was quick. */
    private static void request(Target target) {
        try {
            StasisClient.of(new StateDirectory(stasis.state()))
                    .checkpoint(StasisClient.Target.name(target.name()), null, false, progress -> {});
        } catch (StasisException e) {
            // killed in the middle, as it should be
        }
    }

    private static void goesOn(Target target) {
        for (long pid : ProcessTable.tree(target.pid())) {
            Await.until(
                    "no thread of " + pid + " is stopped",
                    Await.PATIENCE,
                    () -> ProcessTable.threads(pid).values().stream().noneMatch(state -> state == 't' || state == 'T'),
                    () -> ProcessTable.describe(pid));
        }
        target.awaitMoreTicks();
    }
}
