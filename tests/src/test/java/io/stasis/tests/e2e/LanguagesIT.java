package io.stasis.tests.e2e;

import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Program;
import io.stasis.tests.harness.Programs;
import io.stasis.tests.harness.Stasis;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Programs of all languages and libraries go on, are killed and restarted twice, and end with the right status. */
class LanguagesIT {
    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ROOT);

    @ParameterizedTest
    @MethodSource("io.stasis.tests.e2e.Catalog#languages")
    void aProgramLivesThroughTwoRestarts(Program program) {
        stasis.launch(program).liveThroughTwoRestarts();
    }

    @Test
    void aProgramInterruptedByCtrlCBeforeTheCheckpointCanBeInterruptedAfterIt() {
        var target = stasis.launch(Programs.python("interrupted"));
        target.signal("INT");
        target.awaitLine("interrupted 1");
        target.checkpointAndKill();
        target.restart();
        target.signal("INT");
        target.awaitLine("interrupted 2");
        target.checkpointAndKill();
        target.restart();
        target.signal("INT");
        target.awaitLine("interrupted 3");
        target.finish();
    }

    @Test
    void aProgramIsCheckpointedManyTimesWhileItRuns() {
        var target = stasis.launch(Programs.c("threads"));
        for (int i = 0; i < 10; i++) {
            target.checkpoint();
        }
        target.finish();
    }

    @Test
    void anOlderGenerationRestartsToo() {
        var target = stasis.launch(Programs.c("counter"));
        target.checkpoint();
        long then = target.progress().ticks();
        target.checkpointAndKill();
        target.restart("--generation", "1");
        target.awaitTickAgain(then);
        target.checkpointAndKill();
        target.restart();
        target.end();
    }

    @Test
    void aProgramThatWasNotLaunchedIsCheckpointedByItsPid() {
        var target = stasis.startAlone(Programs.staticGlibc("counter"));
        stasis.run(
                        "checkpoint",
                        "--pid",
                        Long.toString(target.pid()),
                        "--dir",
                        target.image().toString())
                .expectSuccess();
        target.awaitMoreTicks();
        stasis.run(
                        "checkpoint",
                        "--pid",
                        Long.toString(target.pid()),
                        "--dir",
                        target.image().toString(),
                        "--kill")
                .expectSuccess();
        target.awaitEnd();
        target.restart();
        target.finish();
    }

    @Test
    void aDetachedRestartReturnsWhileTheProgramRuns() {
        var target = stasis.launch(Programs.c("counter"));
        target.checkpointAndKill();
        var result = target.restartDetached().expectSuccess();
        org.assertj.core.api.Assertions.assertThat(result.json().path("pid").asLong())
                .isEqualTo(target.pid());
        target.awaitMoreTicks();
        stasis.run("checkpoint", target.name(), "--kill").expectSuccess();
        target.restart();
        target.finish();
    }
}
