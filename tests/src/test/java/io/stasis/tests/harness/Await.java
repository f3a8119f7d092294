package io.stasis.tests.harness;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** Waits for conditions, never for time: every wait has a deadline, and a story for when it is missed. */
public final class Await {
    /** Long enough for anything on a loaded machine; reached only when a test fails. */
    public static final Duration PATIENCE = Duration.ofSeconds(60);

    private Await() {}

    public static void until(String what, BooleanSupplier condition) {
        until(what, PATIENCE, condition, () -> "");
    }

    /** @param story what to tell beside {@code what} when the deadline passes */
    public static void until(String what, Duration patience, BooleanSupplier condition, Supplier<String> story) {
        long deadline = System.nanoTime() + patience.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - deadline > 0) {
                throw new AssertionError(
                        "waited " + patience.toSeconds() + " s in vain until " + what + "\n" + story.get());
            }
            LockSupport.parkNanos(2_000_000);
        }
    }
}
