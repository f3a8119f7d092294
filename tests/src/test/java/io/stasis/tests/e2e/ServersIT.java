package io.stasis.tests.e2e;

import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Program;
import io.stasis.tests.harness.Stasis;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Servers and their clients, with connections open and requests under way, live through two restarts. */
class ServersIT {
    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ROOT);

    @ParameterizedTest
    @MethodSource("io.stasis.tests.e2e.Catalog#servers")
    void aServerAndItsClientsLoseNothing(Program program) {
        stasis.launch(program).liveThroughTwoRestarts();
    }
}
