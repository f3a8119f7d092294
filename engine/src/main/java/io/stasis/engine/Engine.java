package io.stasis.engine;

import java.util.List;
import java.util.Optional;

/**
 * Checkpoint and restart of process trees on this host, for whoever drives it step by step.
 *
 * <p>Every method blocks. All calls of one session must come from one platform thread, because the kernel ties a tracee
 * to the thread that seized it (ptrace(2)); when that thread ends, its tracees are released.
 */
public interface Engine {
    CheckpointSession checkpoint(CheckpointRequest request);

    RestoreSession restore(RestoreRequest request);

    /**
     * Everything in the tree below {@code root} that cannot be captured, without freezing anything. Empty when a
     * checkpoint would be accepted.
     */
    List<Problem> survey(CheckpointRequest request);

    /**
     * The tree as it runs now.
     *
     * @param startTime start time that the root must have, 0 for any
     * @return empty when the root, or another process with its pid, is not the one meant
     */
    Optional<TreeStatus> status(CheckpointRequest request, long startTime);

    /**
     * Ends every process of the tree: SIGTERM, a time of grace, SIGKILL. Blocks until they are gone.
     *
     * @param graceMillis 0 for SIGKILL at once
     * @return pids of the processes that were there
     */
    List<Integer> kill(CheckpointRequest request, long graceMillis);

    /** Waits until a child of this process ends, so that it does not stay a zombie. Blocks. */
    void reap(int pid);

    /** What this host and user can do. */
    List<HostCapability> capabilities();

    /** Loads and runs once what a checkpoint needs, so that no class is loaded while a program is frozen. */
    void warmUp();

    /**
     * A running tree.
     *
     * @param startTime start time of its root, clock ticks after boot
     */
    record TreeStatus(int processes, int threads, long startTime, String name, List<String> commandLine) {}

    /** One line of {@code stasis check}. */
    record HostCapability(String what, boolean available, String detail) {}

    /**
     * A resource that stands in the way.
     *
     * @param pid process that holds it
     * @param fd descriptor, -1 when it is none
     * @param resource kind and name, such as "socket TCP 127.0.0.1:80"
     * @param reason why it cannot be captured
     * @param advice what the user can do
     */
    record Problem(int pid, int fd, String resource, String reason, String advice) {
        public String sentence() {
            return "process " + pid + (fd >= 0 ? ", descriptor " + fd : "") + ": " + resource + ": " + reason + "; "
                    + advice;
        }
    }
}
