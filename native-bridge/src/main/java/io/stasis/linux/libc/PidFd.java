package io.stasis.linux.libc;

import io.stasis.linux.Fd;
import io.stasis.linux.Pid;

/** Process descriptors: pidfd_open(2), pidfd_getfd(2), pidfd_send_signal(2). All set close-on-exec. */
public final class PidFd {
    private PidFd() {}

    /** A descriptor that stands for {@code pid} until it is closed, even when the number is used again. */
    public static Fd open(Pid pid) {
        return new Fd(
                (int) Libc.check(Libc.call(SystemCall.PIDFD_OPEN, pid.value(), 0), "pidfd_open of process " + pid));
    }

    /** A duplicate here of descriptor {@code fd} of the process: the same open file description. Needs ptrace access. */
    public static Fd getFd(Fd pidfd, int fd) {
        long result = Libc.call(SystemCall.PIDFD_GETFD, pidfd.value(), fd, 0);
        return new Fd((int) Libc.check(result, "pidfd_getfd of descriptor " + fd + " through pidfd " + pidfd.value()));
    }

    /** Sends {@code signal}; it can't reach another process that took the number. */
    public static void signal(Fd pidfd, int signal) {
        long result = Libc.call(SystemCall.PIDFD_SEND_SIGNAL, pidfd.value(), signal, 0, 0);
        Libc.check(result, "pidfd_send_signal of signal " + signal + " through pidfd " + pidfd.value());
    }
}
