package io.stasis.tests.e2e;

import static org.assertj.core.api.Assertions.assertThat;

import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Stasis;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Programs with a controlling terminal: a driver makes pseudo-terminals, types into them and reads what comes, see
 * terminal.py. Each of its scenarios is a test.
 */
class TerminalIT {
    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ROOT);

    @ParameterizedTest
    @ValueSource(strings = {"lines", "leader", "interrupt", "raw", "shell", "stop", "size"})
    void aProgramOnATerminalFindsItselfOnAnother(String scenario) {
        var result = stasis.drive("terminal", scenario);
        assertThat(result.exit()).as(result.toString()).isZero();
    }
}
