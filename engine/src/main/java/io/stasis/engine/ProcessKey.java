package io.stasis.engine;

/**
 * Names one process for ever: pids are reused, (host, pid, start time) is not.
 *
 * @param host name of the host the process runs on
 * @param pid process id in the agent's own pid namespace
 * @param startTime field 22 of proc_pid_stat(5), clock ticks after boot
 */
public record ProcessKey(String host, int pid, long startTime) {
    @Override
    public String toString() {
        return host + "/" + pid + "@" + startTime;
    }
}
