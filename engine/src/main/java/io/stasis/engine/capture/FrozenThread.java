package io.stasis.engine.capture;

import io.stasis.engine.Outcome.StopPoint;
import io.stasis.image.model.ThreadImage.BlockedCall;
import io.stasis.linux.ptrace.ThreadContext;
import io.stasis.linux.ptrace.Tracee;

/**
 * One thread while it is frozen.
 *
 * @param context the stopped thread with the registers and mask it goes on with
 * @param at where it stood, for the log
 * @param blockedCall the call whose deadline only the kernel knows, or null
 * @param waitNanos from the request to the stop
 */
record FrozenThread(ThreadContext context, StopPoint at, BlockedCall blockedCall, long waitNanos) {
    Tracee tracee() {
        return context.tracee();
    }

    int tid() {
        return context.tracee().tid().value();
    }

    /** Lets the thread run on with its true registers. */
    void resume() {
        try {
            tracee().setSignalMask(context.signalMask());
            tracee().setRegisters(context.registers());
        } catch (io.stasis.linux.KernelException gone) {
            // Killed while frozen (SIGKILL reaches everybody): there is nothing left to let go.
            return;
        }
        tracee().detach(0);
    }
}
