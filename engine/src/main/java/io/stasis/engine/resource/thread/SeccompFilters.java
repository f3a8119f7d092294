package io.stasis.engine.resource.thread;

import io.stasis.engine.Engine.Problem;
import io.stasis.engine.UnsupportedResourceException;
import io.stasis.image.model.ThreadImage;
import io.stasis.linux.Errno;
import io.stasis.linux.KernelException;
import io.stasis.linux.Pid;
import io.stasis.linux.Tid;
import io.stasis.linux.libc.Capability;
import io.stasis.linux.libc.SystemCall;
import io.stasis.linux.proc.ProcStatus;
import io.stasis.linux.proc.Tasks;
import io.stasis.linux.ptrace.CallTable;
import io.stasis.linux.ptrace.PtraceRequest;
import io.stasis.linux.ptrace.Tracee;
import io.stasis.linux.seccomp.SeccompFilter;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Filters of seccomp(2), which belong to threads.
 *
 * <p>At a checkpoint they are read and suspended, so that the injected calls get their true answers; but the calls are
 * made only where the filters would let a thread live through them, as they are in force again when the agent dies
 * ({@link io.stasis.linux.ptrace.FilteredCallException}). At a restart they are installed before the credentials that
 * may take away the right to, and stay suspended until the thread is let go.
 *
 * <p>Filters that all threads of a process begin with are installed by the main thread for all (TSYNC): the kernel then
 * knows them as the same, and the program can synchronise its threads again. What only some have is installed by each.
 */
public final class SeccompFilters {
    /** Options of a tracee that wakes up no filter. */
    public static final int SUSPENDED = PtraceRequest.PTRACE_O_SUSPEND_SECCOMP;

    private static final int SECCOMP_MODE_STRICT = 1;
    private static final int SECCOMP_SET_MODE_FILTER = 1;
    private static final int SECCOMP_FILTER_FLAG_TSYNC = 1;
    private static final int SECCOMP_FILTER_FLAG_LOG = 2;

    private SeccompFilters() {}

    /** What of the process cannot be captured, as far as it shows from outside. */
    public static Optional<Problem> problem(Pid pid) {
        for (int tid : Tasks.threads(pid)) {
            int mode =
                    ProcStatus.find(pid, new Tid(tid)).map(ProcStatus::seccomp).orElse(0);
            if (mode == SECCOMP_MODE_STRICT) {
                return Optional.of(forbidden(pid, "strict mode allows none of the calls that a checkpoint injects"));
            }
            if (mode != 0 && !mayRead()) {
                return Optional.of(new Problem(
                        pid.value(),
                        -1,
                        "seccomp filter",
                        "only an agent with CAP_SYS_ADMIN that is under no filter itself can read it",
                        "run Stasis as root, outside the sandbox"));
            }
        }
        return Optional.empty();
    }

    /** A process whose filters would punish the calls of a checkpoint. */
    public static Problem forbidden(Pid pid, String reason) {
        return new Problem(
                pid.value(),
                -1,
                "seccomp filter",
                reason + ": the process would be killed if the agent died in the middle of them",
                "start it without its sandbox, or let the filter allow the call");
    }

    private static boolean mayRead() {
        ProcStatus own =
                ProcStatus.find(new Pid((int) ProcessHandle.current().pid())).orElseThrow();
        return own.hasCapability(Capability.CAP_SYS_ADMIN) && own.seccomp() == 0;
    }

    /**
     * Reads the filters of a frozen thread, oldest first, and suspends them.
     *
     * @throws UnsupportedResourceException when they cannot be read or made again
     */
    public static List<SeccompFilter> suspend(Pid pid, Tracee tracee) {
        List<SeccompFilter> filters;
        try {
            filters = tracee.seccompFilters();
        } catch (KernelException e) {
            if (e.errno() != Errno.EACCES) {
                throw e;
            }
            problem(pid).ifPresent(problem -> {
                throw new UnsupportedResourceException(List.of(problem));
            });
            return List.of();
        }
        if (filters.stream().anyMatch(SeccompFilter::notifiesSupervisor)) {
            throw new UnsupportedResourceException(List.of(new Problem(
                    pid.value(),
                    -1,
                    "seccomp filter",
                    "it hands calls over to a supervisor (SECCOMP_RET_USER_NOTIF), who would not be there after a restart",
                    "start it without its sandbox")));
        }
        if (!filters.isEmpty()) {
            tracee.setOptions(SUSPENDED);
        }
        return filters;
    }

    /** As the image keeps them. */
    public static List<ThreadImage.SeccompFilter> image(List<SeccompFilter> filters) {
        return filters.stream()
                .map(filter -> new ThreadImage.SeccompFilter(filter.instructions(), filter.logged()))
                .toList();
    }

    /** How many filters, from the oldest on, all threads have. */
    public static int common(List<ThreadImage> threads) {
        List<ThreadImage.SeccompFilter> first = threads.getFirst().seccompFilters();
        for (int i = 0; i < first.size(); i++) {
            for (ThreadImage thread : threads) {
                if (i >= thread.seccompFilters().size()
                        || !first.get(i).isSame(thread.seccompFilters().get(i))) {
                    return i;
                }
            }
        }
        return first.size();
    }

    /** Calls of the main thread that give all threads the filters they have in common; all are suspended. */
    public static void installCommon(List<ThreadImage> threads, Supplier<CallTable> calls) {
        List<ThreadImage.SeccompFilter> filters = threads.getFirst().seccompFilters();
        filters.subList(0, common(threads)).forEach(filter -> install(filter, SECCOMP_FILTER_FLAG_TSYNC, calls.get()));
    }

    /** Calls of one thread that give it those that the others have not. */
    public static void installOwn(ThreadImage thread, int common, Supplier<CallTable> calls) {
        List<ThreadImage.SeccompFilter> filters = thread.seccompFilters();
        filters.subList(common, filters.size()).forEach(filter -> install(filter, 0, calls.get()));
    }

    private static void install(ThreadImage.SeccompFilter filter, int flags, CallTable calls) {
        int length = filter.instructions().length / SeccompFilter.INSTRUCTION;
        calls.must(
                "install a seccomp filter",
                SystemCall.SECCOMP,
                SECCOMP_SET_MODE_FILTER,
                flags | (filter.logged() ? SECCOMP_FILTER_FLAG_LOG : 0),
                calls.longs(length, calls.data(filter.instructions())));
    }

    /** What stands in the way of making the filters of an image again. */
    public static Optional<Problem> verify(int pid, List<ThreadImage> threads) {
        boolean filtered =
                threads.stream().anyMatch(thread -> !thread.seccompFilters().isEmpty());
        return filtered && !mayRead()
                ? Optional.of(new Problem(
                        pid,
                        -1,
                        "seccomp filter",
                        "only an agent with CAP_SYS_ADMIN that is under no filter itself can suspend it while the process"
                                + " is made",
                        "restart as root, outside the sandbox"))
                : Optional.empty();
    }
}
