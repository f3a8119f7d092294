package io.stasis.tests.e2e;

import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Program;
import io.stasis.tests.harness.Stasis;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The programs find no fault in themselves when nobody touches them: what they find later is the product's. */
class ProgramsIT {
    @RegisterExtension
    static final Stasis stasis = new Stasis(new Account(Account.current()));

    @ParameterizedTest
    @MethodSource("io.stasis.tests.e2e.Catalog#all")
    void aProgramIsRightByItself(Program program) {
        var target = stasis.startAlone(program);
        target.awaitMoreTicks();
        target.finish();
    }
}
