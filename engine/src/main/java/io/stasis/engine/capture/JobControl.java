package io.stasis.engine.capture;

import io.stasis.linux.Pid;
import io.stasis.linux.proc.ProcStat;
import java.util.concurrent.locks.LockSupport;

/** Processes that job control has stopped (SIGSTOP, SIGTSTP, ...), see signal(7). */
public final class JobControl {
    private static final long PATIENCE_NANOS = 100_000_000L;

    private JobControl() {}

    /**
     * Waits until a process that was just detached is stopped again. The kernel puts it back into its stop by itself, but
     * only when it is scheduled; whoever looks at it meanwhile would see it run.
     */
    public static void awaitStopped(Pid pid) {
        long deadline = System.nanoTime() + PATIENCE_NANOS;
        while (ProcStat.find(pid).filter(stat -> stat.state() != 'T').isPresent() && System.nanoTime() < deadline) {
            LockSupport.parkNanos(20_000);
        }
    }
}
