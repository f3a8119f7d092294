package io.stasis.tests.e2e;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Program;
import io.stasis.tests.harness.Programs;
import io.stasis.tests.harness.Stasis;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** A user without any privilege checkpoints own programs, and only those. */
class OrdinaryUserIT {
    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ORDINARY);

    /** In a pid namespace of its own, as this user may not choose the host's pids. */
    @ParameterizedTest
    @MethodSource("io.stasis.tests.e2e.Catalog#ordinary")
    void aProgramLivesThroughTwoRestarts(Program program) {
        stasis.launch(program).liveThroughTwoRestarts();
    }

    @ParameterizedTest
    @MethodSource("io.stasis.tests.e2e.Catalog#withChosenIds")
    void aProgramRunsOnAfterTwoCheckpoints(Program program) {
        var target = stasis.launch(program);
        target.checkpoint();
        target.checkpoint();
        stasis.run("verify", target.image().toString()).expectSuccess();
        target.finish();
    }

    /** What waits at the sender can be read in repair mode only, and sending it on would change the connection. */
    @Test
    void bytesThatHaveNoRoomAtTheReceiverAreLeftInPeace() {
        var target = stasis.launch(Catalog.fullConnection());
        stasis.run("checkpoint", target.name()).expectRefusal(1, "CAP_NET_ADMIN");
        target.finish();
    }

    /** Keeping the pids needs a privilege that this user has not. */
    @Test
    void aRestartThatShallKeepItsPidsTellsThatItNeedsPrivilege() {
        var target = stasis.launch(Programs.c("counter"));
        target.checkpointAndKill();
        var result = target.restartDetached("--pids", "keep");
        assertThat(result.exit()).isNotZero();
        result.expectRefusal(result.exit(), "CAP_CHECKPOINT_RESTORE");
    }

    @Test
    void anotherUsersProcessIsRefused() {
        String init = "1";
        stasis.run(
                        "checkpoint",
                        "--pid",
                        init,
                        "--dir",
                        stasis.work().resolve("init").toString())
                .expectRefusal(6, "process 1");
    }
}
