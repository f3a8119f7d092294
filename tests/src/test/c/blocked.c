/*
 * A system call that blocks: it goes on with the time that was left, without EINTR, whatever happened from outside.
 * Writes "tick 1" before the call and the seconds it took after it.
 *
 * usage: blocked PROGRESS KIND SECONDS
 */
#include "check.h"
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static double seconds;
static double started;
static struct timespec duration;

/* Calls that wait for an event wait for this: a byte or a death after the given time, by a child. */
static pid_t later(int fd) {
    pid_t child = fork();
    must(child >= 0);
    if (child) return child;
    rest(seconds * 1000);
    if (fd >= 0) must(write(fd, "x", 1) == 1);
    _exit(9);
}

static void on_signal(int number) { (void)number; }

static int word = 1;
static void *wake(void *argument) {
    (void)argument;
    rest(seconds * 1000);
    __atomic_store_n(&word, 2, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
    return NULL;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    must(argc == 4);
    const char *kind = argv[2];
    seconds = atof(argv[3]);
    duration = (struct timespec){(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    int fds[2];
    must(!pipe(fds));
    signal(SIGUSR1, on_signal);
    pthread_t thread;
    pid_t child = -1;
    tick();
    started = now();
    char byte = 0;
    if (!strcmp(kind, "nanosleep")) {
        must(syscall(SYS_nanosleep, &duration, &duration) == 0);
    } else if (!strcmp(kind, "nanosleep-without-rest")) {
        must(syscall(SYS_nanosleep, &duration, NULL) == 0);
    } else if (!strcmp(kind, "clock_nanosleep")) {
        must(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &duration, &duration) == 0);
    } else if (!strcmp(kind, "clock_nanosleep-absolute")) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += duration.tv_sec + (until.tv_nsec + duration.tv_nsec) / 1000000000;
        until.tv_nsec = (until.tv_nsec + duration.tv_nsec) % 1000000000;
        must(syscall(SYS_clock_nanosleep, CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) == 0);
    } else if (!strcmp(kind, "poll")) {
        struct pollfd polled = {fds[0], POLLIN, 0};
        must(syscall(SYS_poll, &polled, 1, (int)(seconds * 1000)) == 0);
    } else if (!strcmp(kind, "ppoll")) {
        struct pollfd polled = {fds[0], POLLIN, 0};
        must(syscall(SYS_ppoll, &polled, 1, &duration, NULL, 8) == 0);
    } else if (!strcmp(kind, "select")) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(fds[0], &set);
        struct timeval time = {duration.tv_sec, duration.tv_nsec / 1000};
        must(syscall(SYS_select, fds[0] + 1, &set, NULL, NULL, &time) == 0);
    } else if (!strcmp(kind, "poll-for-an-event")) {
        struct pollfd polled = {fds[0], POLLIN, 0};
        child = later(fds[1]);
        must(syscall(SYS_poll, &polled, 1, -1) == 1 && polled.revents == POLLIN);
    } else if (!strcmp(kind, "futex")) {
        must(syscall(SYS_futex, &word, FUTEX_WAIT, 1, &duration, NULL, 0) == -1 && errno == ETIMEDOUT);
    } else if (!strcmp(kind, "futex-private-absolute")) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += (time_t)seconds + 1;
        seconds = 0;
        must(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME, 1, &until, NULL, ~0) == -1 && errno == ETIMEDOUT);
        struct timespec then;
        clock_gettime(CLOCK_REALTIME, &then);
        if (then.tv_sec < until.tv_sec) fail("the futex timed out too early");
    } else if (!strcmp(kind, "futex-woken")) {
        must(!pthread_create(&thread, NULL, wake, NULL));
        while (__atomic_load_n(&word, __ATOMIC_SEQ_CST) == 1) {
            long r = syscall(SYS_futex, &word, FUTEX_WAIT, 1, NULL, NULL, 0);
            must(r == 0 || errno == EAGAIN);
        }
        pthread_join(thread, NULL);
    } else if (!strcmp(kind, "read")) {
        child = later(fds[1]);
        must(syscall(SYS_read, fds[0], &byte, 1) == 1 && byte == 'x');
    } else if (!strcmp(kind, "write")) {
        static char block[65536 + 4096];
        must(write(fds[1], block, 65536) == 65536); /* full; the child makes room */
        child = fork();
        if (!child) {
            rest(seconds * 1000);
            for (long n = 0; n < 65536 + 4096;) {
                ssize_t k = read(fds[0], block, 4096);
                must(k > 0);
                n += k;
            }
            _exit(9);
        }
        must(syscall(SYS_write, fds[1], block, 4096) == 4096);
    } else if (!strcmp(kind, "wait4")) {
        child = later(-1);
        int status;
        must(syscall(SYS_wait4, child, &status, 0, NULL) == child && WIFEXITED(status) && WEXITSTATUS(status) == 9);
        child = -1;
    } else if (!strcmp(kind, "epoll_wait")) {
        int epoll = epoll_create1(0);
        struct epoll_event event = {EPOLLIN, {.u64 = 0x1234567890}};
        must(!epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event));
        must(syscall(SYS_epoll_wait, epoll, &event, 1, (int)(seconds * 1000)) == 0);
    } else if (!strcmp(kind, "sigtimedwait")) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        sigprocmask(SIG_BLOCK, &set, NULL);
        must(syscall(SYS_rt_sigtimedwait, &set, NULL, &duration, 8) == -1 && errno == EAGAIN);
    } else if (!strcmp(kind, "pause")) {
        child = fork();
        if (!child) {
            rest(seconds * 1000);
            kill(getppid(), SIGUSR1);
            _exit(9);
        }
        must(syscall(SYS_pause) == -1 && errno == EINTR);
    } else if (!strcmp(kind, "sigsuspend")) {
        unsigned long none = 0;
        child = fork();
        if (!child) {
            rest(seconds * 1000);
            kill(getppid(), SIGUSR1);
            _exit(9);
        }
        must(syscall(SYS_rt_sigsuspend, &none, 8) == -1 && errno == EINTR);
    } else if (!strcmp(kind, "vfork")) {
        /* the parent stands uninterruptibly in the kernel until the child ends or calls execve */
        pid_t vchild = vfork();
        if (!vchild) {
            syscall(SYS_nanosleep, &duration, NULL);
            _exit(9);
        }
        int status;
        must(waitpid(vchild, &status, 0) == vchild && WIFEXITED(status) && WEXITSTATUS(status) == 9);
    } else {
        fail("unknown kind %s", kind);
    }
    double took = now() - started;
    report("took %.3f of %.3f", took, seconds);
    if (took < seconds - 0.002) fail("%s came back after %.4f s of %.4f", kind, took, seconds);
    if (child > 0) {
        int status;
        must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 9);
    }
    return done();
}
