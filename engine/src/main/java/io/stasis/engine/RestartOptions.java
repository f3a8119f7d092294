package io.stasis.engine;

/**
 * How a tree is to be restarted.
 *
 * @param detached whether it gets no terminal and /dev/null for the outside world's descriptors
 * @param terminal whether the restart command has a terminal
 * @param pty whether it gets a pseudo-terminal of its own from the restart command in any case
 * @param pids with which pids
 */
public record RestartOptions(boolean detached, boolean terminal, boolean pty, PidChoice pids) {
    /** Without a restart command that stays. */
    public static RestartOptions detached(PidChoice pids) {
        return new RestartOptions(true, false, false, pids);
    }

    /** As a child of a restart command that has no terminal. */
    public static RestartOptions foreground(PidChoice pids) {
        return new RestartOptions(false, false, false, pids);
    }
}
