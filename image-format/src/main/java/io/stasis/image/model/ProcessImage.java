package io.stasis.image.model;

import java.util.List;

/**
 * One live process as it was while frozen: all that is needed to make it again, except the bytes of its memory, which
 * lie in a page file of their own.
 *
 * <p>Ids are those the process itself sees (the innermost pid namespace). Lists are in the kernel's order: mappings by
 * address, threads by tid with the leader first, descriptors by number.
 *
 * @param identity who the process is and where it stands in the tree
 * @param memory address space without its bytes
 * @param threads every thread; the first one is the leader, whose tid is the pid
 * @param descriptors the file descriptor table, see {@link DescriptorEntry}
 * @param filesystem working directory, root, umask
 * @param signals actions of the whole process and the signals pending for it
 * @param timers the three interval timers of getitimer(2), in the order REAL, VIRTUAL, PROF
 * @param posixTimers those of timer_create(2), by id
 * @param limits soft and hard limits by resource number of getrlimit(2)
 * @param attributes what prctl(2) and /proc keep for each process
 */
public record ProcessImage(
        Identity identity,
        MemoryImage memory,
        List<ThreadImage> threads,
        List<DescriptorEntry> descriptors,
        FilesystemState filesystem,
        SignalState signals,
        List<IntervalTimer> timers,
        List<PosixTimer> posixTimers,
        List<Limit> limits,
        ProcessAttributes attributes) {

    /**
     * A process's place in the tree, see proc_pid_stat(5) and credentials(7).
     *
     * @param pid process id
     * @param parent parent's process id at the time of the checkpoint
     * @param group process group id
     * @param session session id
     * @param exitSignal signal sent to the parent at exit; 0 for none
     * @param startTime clock ticks after boot at which the process started: with the pid it names the process uniquely
     * @param name the name of the leader thread (comm)
     */
    public record Identity(int pid, int parent, int group, int session, int exitSignal, long startTime, String name) {}

    /**
     * Working directory, root directory and file mode creation mask.
     *
     * @param removed whether the working directory was removed
     */
    public record FilesystemState(FileReference workingDirectory, boolean removed, FileReference root, int umask) {}

    /**
     * One interval timer in microseconds; {@code value} is the time left, 0 when disarmed. A timer that expired while
     * the process was frozen has value 0 and an interval: it must be armed again at once.
     */
    public record IntervalTimer(long valueMicros, long intervalMicros) {}

    /**
     * One timer of timer_create(2).
     *
     * @param id its timer_t for the kernel
     * @param clock clock of clock_gettime(2); a negative one is a processor time clock of the process or a thread of it
     * @param notification {@code sigev_notify}: SIGEV_SIGNAL (0), SIGEV_NONE (1), SIGEV_THREAD (2), SIGEV_THREAD_ID (4)
     * @param signal {@code sigev_signo}
     * @param sigval {@code sigev_value}
     * @param target the thread that gets the signal with SIGEV_THREAD_ID, else the process
     * @param valueNanos time left until the next expiration, 0 when it is disarmed
     * @param intervalNanos time between expirations, 0 for a single one
     */
    public record PosixTimer(
            int id,
            int clock,
            int notification,
            int signal,
            long sigval,
            int target,
            long valueNanos,
            long intervalNanos) {}

    /** One resource limit; -1 stands for RLIM_INFINITY. */
    public record Limit(int resource, long soft, long hard) {}

    /**
     * @param actions one entry for each signal whose action is not the default
     * @param pending siginfo_t structures (128 bytes each) in the queue shared by all threads, oldest first
     */
    public record SignalState(List<SignalAction> actions, List<byte[]> pending) {}

    /** The kernel's {@code struct sigaction} of rt_sigaction(2), field by field. */
    public record SignalAction(int signal, long handler, long flags, long restorer, long mask) {}

    /**
     * @param dumpable PR_GET_DUMPABLE
     * @param subreaper PR_GET_CHILD_SUBREAPER
     * @param thpDisable PR_GET_THP_DISABLE
     * @param oomScoreAdj /proc/PID/oom_score_adj
     * @param coredumpFilter /proc/PID/coredump_filter
     * @param memoryBarriers what it is registered for with membarrier(2), a mask of the registering commands
     * @param lockFuture flags of mlockall(2) for memory that is mapped later: MCL_FUTURE, MCL_ONFAULT
     * @param stopped whether the process was stopped by a job control signal (state T)
     * @param stopSignal the signal that stopped it, else 0
     */
    public record ProcessAttributes(
            int dumpable,
            boolean subreaper,
            int thpDisable,
            int oomScoreAdj,
            int coredumpFilter,
            int memoryBarriers,
            int lockFuture,
            boolean stopped,
            int stopSignal) {}
}
