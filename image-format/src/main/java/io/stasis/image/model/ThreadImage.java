package io.stasis.image.model;

import java.util.Arrays;
import java.util.List;

/**
 * One thread as it was while frozen.
 *
 * @param tid thread id as the program sees it
 * @param name comm, up to 15 bytes
 * @param generalRegisters {@code struct user_regs_struct} (27 little-endian longs on x86-64), the true ones: with
 *     {@code orig_rax} and an ERESTART code in {@code rax} when the thread was inside a system call, so that the
 *     kernel itself restarts the call
 * @param extendedState XSAVE area of regset NT_X86_XSTATE, standard format
 * @param blockedCall the system call that needs more than its registers to be restarted, or null
 * @param signalMask blocked signals, bit n-1 for signal n
 * @param pending siginfo_t structures (128 bytes) of this thread's own queue, oldest first
 * @param rseq restartable sequences registration, or null
 * @param robustList head address given to set_robust_list(2); 0 for none
 * @param robustListLength length given with it
 * @param clearTidAddress address given to set_tid_address(2); 0 for none
 * @param alternateStack sigaltstack(2)
 * @param credentials user and group ids, capabilities
 * @param scheduling policy, priorities, affinity
 * @param parentDeathSignal PR_GET_PDEATHSIG, 0 for none
 * @param timerSlackNanos PR_GET_TIMERSLACK
 * @param modes what prctl(2) and its like keep for each thread
 * @param seccompFilters filters of seccomp(2), oldest first
 */
public record ThreadImage(
        int tid,
        String name,
        byte[] generalRegisters,
        byte[] extendedState,
        BlockedCall blockedCall,
        long signalMask,
        List<byte[]> pending,
        RseqRegistration rseq,
        long robustList,
        long robustListLength,
        long clearTidAddress,
        AlternateStack alternateStack,
        Credentials credentials,
        Scheduling scheduling,
        int parentDeathSignal,
        long timerSlackNanos,
        Modes modes,
        List<SeccompFilter> seccompFilters) {

    /**
     * A system call that the kernel would go on with through restart_syscall(2), whose deadline lives in the kernel
     * only.
     *
     * @param number the original system call number
     * @param arguments its six arguments
     * @param remainingNanos time left until its deadline when the thread was frozen; -1 when it has none
     */
    public record BlockedCall(long number, long[] arguments, long remainingNanos) {}

    /** What rseq(2) was called with; the signature guards abort handlers. */
    public record RseqRegistration(long address, int size, int signature, int flags) {}

    /** sigaltstack(2): base, size, flags (SS_DISABLE is 2, SS_ONSTACK 1 is never stored). */
    public record AlternateStack(long base, long size, int flags) {}

    /**
     * credentials(7) and capabilities(7) of one thread. Capability sets have bit n for capability n.
     *
     * @param userIds real, effective, saved, file system
     * @param groupIds real, effective, saved, file system
     */
    public record Credentials(
            int[] userIds,
            int[] groupIds,
            int[] supplementaryGroups,
            long inheritable,
            long permitted,
            long effective,
            long bounding,
            long ambient,
            int secureBits) {}

    /**
     * @param attributes {@code struct sched_attr} as sched_getattr(2) returned it
     * @param affinity CPU mask as sched_getaffinity(2) returned it
     * @param ioPriority ioprio_get(2)
     * @param nice getpriority(2), which a thread keeps under a real-time policy too
     */
    public record Scheduling(byte[] attributes, byte[] affinity, int ioPriority, int nice) {}

    /**
     * Modes of one thread. Answers of prctl(2) are negated errnos where the kernel had none.
     *
     * @param noNewPrivileges PR_GET_NO_NEW_PRIVS
     * @param personality personality(2)
     * @param timeStampCounter PR_GET_TSC
     * @param machineChecks PR_MCE_KILL_GET
     * @param ioFlusher PR_GET_IO_FLUSHER
     * @param speculation PR_GET_SPECULATION_CTRL by the number of the misfeature
     * @param memoryPolicy mode of get_mempolicy(2) with its flags
     * @param memoryNodes its nodes, a bit mask
     * @param directories the thread's own working directory, root and umask; null when it shares those of the process
     */
    public record Modes(
            boolean noNewPrivileges,
            long personality,
            int timeStampCounter,
            int machineChecks,
            boolean ioFlusher,
            int[] speculation,
            int memoryPolicy,
            byte[] memoryNodes,
            ProcessImage.FilesystemState directories) {}

    /**
     * One filter of seccomp(2).
     *
     * @param instructions {@code struct sock_filter} of eight bytes each
     * @param logged SECCOMP_FILTER_FLAG_LOG
     */
    public record SeccompFilter(byte[] instructions, boolean logged) {
        /** Whether both are the same program with the same flag; a record compares arrays by identity. */
        public boolean isSame(SeccompFilter other) {
            return logged == other.logged && Arrays.equals(instructions, other.instructions);
        }
    }
}
