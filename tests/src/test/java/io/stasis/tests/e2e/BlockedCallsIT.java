package io.stasis.tests.e2e;

import io.stasis.tests.harness.Account;
import io.stasis.tests.harness.Programs;
import io.stasis.tests.harness.Stasis;
import io.stasis.tests.harness.Target;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** A call that blocks when the program is frozen goes on with the time that was left, and is not interrupted. */
class BlockedCallsIT {
    @RegisterExtension
    static final Stasis stasis = new Stasis(Account.ROOT);

    static Stream<String> calls() {
        return Stream.of(
                "nanosleep",
                "nanosleep-without-rest",
                "clock_nanosleep",
                "clock_nanosleep-absolute",
                "poll",
                "ppoll",
                "select",
                "poll-for-an-event",
                "futex",
                "futex-private-absolute",
                "futex-woken",
                "read",
                "write",
                "wait4",
                "epoll_wait",
                "sigtimedwait",
                "pause",
                "sigsuspend");
    }

    @ParameterizedTest
    @MethodSource("calls")
    void aBlockedCallGoesOnAfterACheckpoint(String call) {
        var target = stasis.launch(Programs.c("blocked").with(call, "1.2"));
        target.checkpointOnly();
        inTheCall(target);
        target.finish();
    }

    @ParameterizedTest
    @MethodSource("calls")
    void aBlockedCallGoesOnAfterARestart(String call) {
        var target = stasis.launch(Programs.c("blocked").with(call, "2.5"));
        target.checkpointAndKill();
        inTheCall(target);
        target.restartOnly();
        target.finish();
    }

    private static void inTheCall(Target target) {
        if (target.progress().lines().size() != 1) {
            throw new AssertionError(
                    "the call ended before the checkpoint: " + target.progress().lines());
        }
    }
}
