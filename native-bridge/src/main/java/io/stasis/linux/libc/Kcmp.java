package io.stasis.linux.libc;

import io.stasis.linux.Pid;
import io.stasis.linux.Tid;

/**
 * Asks the kernel whether two tasks share an object, kcmp(2). The answer is an order, so a sort needs few calls. It
 * needs the same access as reading both with ptrace(2); {@code EPERM} otherwise, {@code ESRCH} for a task that is gone.
 */
public final class Kcmp {
    /** Types of {@code <linux/kcmp.h>}. */
    public static final int KCMP_FILE = 0;

    public static final int KCMP_VM = 1;
    public static final int KCMP_FILES = 2;
    public static final int KCMP_FS = 3;
    public static final int KCMP_SIGHAND = 4;
    public static final int KCMP_IO = 5;
    public static final int KCMP_SYSVSEM = 6;
    public static final int KCMP_EPOLL_TFD = 7;

    /** Answers of {@link #compare}. */
    public static final int SAME = 0;

    public static final int LESS = 1;
    public static final int GREATER = 2;
    public static final int DIFFERENT = 3;

    private Kcmp() {}

    /**
     * Compares an object of two tasks.
     *
     * @param index1 for {@link #KCMP_FILE} a descriptor of the first task, otherwise 0
     * @return {@link #SAME}, {@link #LESS}, {@link #GREATER}, or {@link #DIFFERENT} without an order
     */
    public static int compare(int task1, int task2, int type, long index1, long index2) {
        long result = Libc.call(SystemCall.KCMP, task1, task2, type, index1, index2, 0);
        if (Libc.isError(result)) {
            Libc.check(
                    result, "kcmp type " + type + " of " + task1 + " and " + task2 + ", " + index1 + " and " + index2);
        }
        return (int) result;
    }

    public static int compare(Pid pid1, Pid pid2, int type, long index1, long index2) {
        return compare(pid1.value(), pid2.value(), type, index1, index2);
    }

    public static int compare(Tid tid1, Tid tid2, int type, long index1, long index2) {
        return compare(tid1.value(), tid2.value(), type, index1, index2);
    }
}
