package io.stasis.tests.e2e;

import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Program;
import io.stasis.tests.harness.Stasis;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Whatever the kernel keeps for a process stays what it was, through two restarts. */
class ResourcesIT {
    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ROOT);

    @ParameterizedTest
    @MethodSource("io.stasis.tests.e2e.Catalog#resources")
    void aProgramThatWatchesItsResourcesSeesNoDifference(Program program) {
        stasis.launch(program).liveThroughTwoRestarts();
    }
}
