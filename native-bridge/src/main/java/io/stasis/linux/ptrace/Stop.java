package io.stasis.linux.ptrace;

/** What waitid(2) reported of a traced thread. */
public sealed interface Stop {
    /**
     * A ptrace event: {@code event} is one of PTRACE_EVENT_*, {@code signal} SIGTRAP, or for PTRACE_EVENT_STOP the
     * stopping signal when the process is in a group stop.
     */
    record Event(int event, int signal) implements Stop {
        public boolean isEventStop() {
            return event == PtraceRequest.PTRACE_EVENT_STOP;
        }
    }

    /** A signal is about to be delivered. */
    record Signal(int signal) implements Stop {}

    /** The thread is gone; {@code status} is its exit code or the signal that killed it. */
    record Gone(boolean killed, int status) implements Stop {}
}
