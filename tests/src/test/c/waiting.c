/*
 * What a program waits for: signalfds with signals that are pending, timerfds that tick, that are far
 * away and that have expired unread, pidfds of processes that run and that have ended;
 * and POSIX timers of several clocks whose signals go to the process, to a thread, to a function and to nobody.
 */
#include "check.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

enum { FAR = 1000 }; /* seconds that are never over in a test */

static void check_info(const char *name, int fd, const char *key) {
    char path[64], label[64];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    snprintf(label, sizeof label, "%s %s", name, key);
    const char *line = strstr(content(path), key);
    same(label, "%.*s flags %x %x", line ? (int)strcspn(line, "\n") : 0, line ? line : "", fcntl(fd, F_GETFL), fcntl(fd, F_GETFD));
}

static int readable(int fd) {
    struct pollfd p = {fd, POLLIN, 0};
    int n = poll(&p, 1, 0);
    must(n >= 0);
    return n;
}

/* Signals */

static int mixed, narrow;

static void begin_signals(void) {
    sigset_t set, one;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGRTMAX);
    must(!sigprocmask(SIG_BLOCK, &set, NULL));
    mixed = signalfd(-1, &set, SFD_NONBLOCK);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    narrow = signalfd(-1, &one, SFD_CLOEXEC);
    must(mixed >= 0 && narrow >= 0);
    must(!kill(getpid(), SIGUSR1)); /* pending to the end */
    must(!sigqueue(getpid(), SIGRTMAX, (union sigval){.sival_int = 77}));
}

static void check_signals(void) {
    struct signalfd_siginfo info;
    check_info("mixed", mixed, "sigmask");
    check_info("narrow", narrow, "sigmask");
    must(readable(mixed) && !readable(narrow));
    must(!kill(getpid(), SIGUSR2) && readable(narrow));
    must(read(narrow, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR2 && info.ssi_pid == (uint32_t)getpid());
}

static void end_signals(void) {
    struct signalfd_siginfo info;
    must(read(mixed, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR1 && info.ssi_code == SI_USER);
    must(read(mixed, &info, sizeof info) == sizeof info && info.ssi_signo == (uint32_t)SIGRTMAX && info.ssi_int == 77);
    must(read(mixed, &info, sizeof info) == -1 && errno == EAGAIN);
}

/* Timers of descriptors */

static int ticking, distant, absolute, boot, today, spent, missed, idle, set;
static double missed_since, distant_until;
static struct timespec deadline;

static int timerfd(int clock, int create, int flags, struct itimerspec setting) {
    int fd = timerfd_create(clock, create);
    must(fd >= 0 && !timerfd_settime(fd, flags, &setting, NULL));
    return fd;
}

static void begin_timers(void) {
    struct timespec soon;
    uint64_t none;
    ticking = timerfd(CLOCK_MONOTONIC, 0, 0, (struct itimerspec){{0, 10000000}, {0, 1}});
    distant = timerfd(CLOCK_MONOTONIC, TFD_CLOEXEC, 0, (struct itimerspec){{0, 0}, {FAR, 0}});
    must(!clock_gettime(CLOCK_MONOTONIC, &soon));
    soon.tv_sec += FAR;
    absolute = timerfd(CLOCK_MONOTONIC, 0, TFD_TIMER_ABSTIME, (struct itimerspec){{7, 5}, soon});
    boot = timerfd(CLOCK_BOOTTIME, TFD_NONBLOCK, 0, (struct itimerspec){{0, 0}, {FAR, 0}});
    must(!clock_gettime(CLOCK_REALTIME, &deadline));
    deadline.tv_sec += FAR;
    today = timerfd(CLOCK_REALTIME, 0, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, (struct itimerspec){{0, 0}, deadline});
    spent = timerfd(CLOCK_REALTIME, TFD_NONBLOCK, 0, (struct itimerspec){{0, 0}, {0, 1}});
    missed_since = now();
    missed = timerfd(CLOCK_MONOTONIC, TFD_NONBLOCK, 0, (struct itimerspec){{0, 5000000}, {0, 5000000}});
    idle = timerfd(CLOCK_MONOTONIC, TFD_NONBLOCK, 0, (struct itimerspec){{0, 0}, {0, 0}});
    must(read(idle, &none, 8) == -1 && errno == EAGAIN);
    set = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {.u64 = 12}};
    must(set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, ticking, &event));
    distant_until = now() + FAR;
}

static double left(int fd) {
    struct itimerspec setting;
    must(!timerfd_gettime(fd, &setting));
    return setting.it_value.tv_sec + setting.it_value.tv_nsec * 1e-9;
}

/* Time left goes down as time goes by here, and no faster: what passes while the program is away does not count. */
static void check_left(const char *name, double left) {
    double sooner = distant_until - now() - left;
    if (sooner > 0.1 || sooner < -FAR / 2) fail("%s: %f s left, %f s less than expected", name, left, sooner);
}

static void check_timers(void) {
    uint64_t count;
    struct epoll_event event;
    static const char *settings[] = {"clockid", "settime flags", "it_interval"};
    for (int i = 0; i < 3; i++) {
        check_info("ticking", ticking, settings[i]);
        check_info("distant", distant, settings[i]);
        check_info("absolute", absolute, settings[i]);
        check_info("boot", boot, settings[i]);
        check_info("today", today, settings[i]);
        check_info("spent", spent, settings[i]);
        check_info("missed", missed, settings[i]);
    }
    check_info("spent", spent, "ticks");
    check_info("spent", spent, "it_value");
    check_info("idle", idle, "it_value");
    must(epoll_wait(set, &event, 1, -1) == 1 && event.data.u64 == 12);
    must(read(ticking, &count, 8) == 8 && count >= 1 && count < 10000);
    check_left("distant", left(distant));
    check_left("absolute", left(absolute));
    check_left("boot", left(boot));
    struct timespec t;
    double before = left(today);
    must(!clock_gettime(CLOCK_REALTIME, &t));
    double wanted = (double)(deadline.tv_sec - t.tv_sec) + (double)(deadline.tv_nsec - t.tv_nsec) * 1e-9;
    if (before - wanted > 0.5 || before - wanted < -0.05) fail("the deadline moved: %f s left, not %f", before, wanted);
    must(readable(spent) && !readable(distant) && !readable(absolute) && !readable(boot) && !readable(today) && !readable(idle));
}

static void end_timers(void) {
    uint64_t count;
    must(read(spent, &count, 8) == 8 && count == 1 && read(spent, &count, 8) == -1 && errno == EAGAIN);
    must(read(missed, &count, 8) == 8);
    double intervals = (now() - missed_since) / 0.005;
    if (count > intervals + 2 || count < 5) fail("%llu ticks in %f intervals", (unsigned long long)count, intervals);
}

/* Processes */

#ifndef P_PIDFD
#define P_PIDFD 3
#endif
enum { NONBLOCKING = O_NONBLOCK, THREAD = O_EXCL }; /* PIDFD_NONBLOCK, PIDFD_THREAD */

static pid_t child, zombie;
static int of_child, of_child_too, of_zombie, of_self, of_parent, ended;

static int open_pid(pid_t pid, unsigned flags) {
    int fd = (int)syscall(SYS_pidfd_open, pid, flags);
    must(fd >= 0);
    return fd;
}

static void begin_processes(void) {
    pid_t self = getpid();
    child = fork();
    must(child >= 0);
    if (!child) {
        must(!prctl(PR_SET_PDEATHSIG, SIGKILL));
        of_parent = open_pid(self, 0);
        for (;;) {
            check_info("parent", of_parent, "Pid:");
            must(!readable(of_parent));
            rest(5);
        }
    }
    zombie = fork();
    must(zombie >= 0);
    if (!zombie) _exit(9);
    of_child = open_pid(child, 0);
    of_child_too = open_pid(child, THREAD);
    of_zombie = open_pid(zombie, NONBLOCKING);
    of_self = open_pid(self, 0);
    must(!fcntl(of_self, F_SETFD, 0));
    struct pollfd p = {of_zombie, POLLIN, 0};
    must(poll(&p, 1, -1) == 1);
    ended = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {.u64 = 1}}, other = {EPOLLIN, {.u64 = 2}};
    must(!epoll_ctl(ended, EPOLL_CTL_ADD, of_child, &event) && !epoll_ctl(ended, EPOLL_CTL_ADD, of_zombie, &other));
}

static void check_processes(void) {
    siginfo_t info;
    struct epoll_event event[2];
    check_info("child", of_child, "Pid:");
    check_info("child too", of_child_too, "Pid:");
    check_info("zombie", of_zombie, "Pid:");
    check_info("self", of_self, "Pid:");
    must(!readable(of_child) && !readable(of_child_too) && readable(of_zombie) && !readable(of_self));
    must(epoll_wait(ended, event, 2, 0) == 1 && event[0].data.u64 == 2);
    info.si_pid = 0;
    must(!waitid((idtype_t)P_PIDFD, (id_t)of_child, &info, WEXITED | WNOHANG) && info.si_pid == 0);
    must(!waitid((idtype_t)P_PIDFD, (id_t)of_zombie, &info, WEXITED | WNOWAIT) && info.si_pid == zombie && info.si_status == 9);
    must(!syscall(SYS_pidfd_send_signal, of_child, 0, NULL, 0));
}

static void end_processes(void) {
    siginfo_t info;
    must(!waitid((idtype_t)P_PIDFD, (id_t)of_zombie, &info, WEXITED) && info.si_pid == zombie && info.si_status == 9);
    must(!syscall(SYS_pidfd_send_signal, of_child, SIGTERM, NULL, 0));
    must(!waitid((idtype_t)P_PIDFD, (id_t)of_child, &info, WEXITED) && info.si_pid == child && info.si_status == SIGTERM);
}

/* POSIX timers */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static timer_t to_process, to_thread, to_function, of_cpu, of_thread_cpu, to_nobody, since_boot, once;
static volatile long process_count, thread_count, function_count, cpu_count;
static volatile pid_t receiver;
static double cpu_until;

static timer_t timer(clockid_t clock, struct sigevent event, struct itimerspec setting) {
    timer_t id;
    must(!timer_create(clock, &event, &id) && !timer_settime(id, 0, &setting, NULL));
    return id;
}

static void handle(int signal, siginfo_t *info, void *context) {
    (void)context;
    if (info->si_code != SI_TIMER) fail("signal %d has code %d", signal, info->si_code);
    int is_cpu = signal == SIGRTMIN + 2;
    if (info->si_int != (is_cpu ? 22 : 11)) fail("signal %d brings %d", signal, info->si_int);
    if (info->si_timerid != (int)(intptr_t)(is_cpu ? of_cpu : to_process)) fail("signal %d of timer %d", signal, info->si_timerid);
    if (is_cpu) cpu_count++;
    else process_count++;
}

/* The only thread that has the signals of timers unblocked, so that no other is interrupted. */
static void *handler_thread(void *set) {
    must(!pthread_sigmask(SIG_UNBLOCK, set, NULL));
    for (;;) rest(1000);
}

static void *receiver_thread(void *unused) {
    (void)unused;
    sigset_t set;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 3);
    receiver = (pid_t)syscall(SYS_gettid);
    for (;;) {
        int signal = sigwaitinfo(&set, &info);
        if (signal < 0 && errno == EINTR) continue;
        must(signal == SIGRTMIN + 3 && info.si_code == SI_TIMER && info.si_ptr == (void *)&to_thread);
        thread_count++;
    }
    return NULL;
}

static void function(union sigval value) {
    must(value.sival_int == 33);
    function_count++;
}

static void begin_posix_timers(void) {
    static sigset_t handled;
    sigset_t blocked;
    pthread_t thread;
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART};
    must(!sigaction(SIGRTMIN + 1, &action, NULL) && !sigaction(SIGRTMIN + 2, &action, NULL));
    sigemptyset(&handled);
    sigaddset(&handled, SIGRTMIN + 1);
    sigaddset(&handled, SIGRTMIN + 2);
    blocked = handled;
    sigaddset(&blocked, SIGRTMIN + 3);
    sigaddset(&blocked, SIGRTMIN + 4);
    must(!pthread_sigmask(SIG_BLOCK, &blocked, NULL));
    must(!pthread_create(&thread, NULL, receiver_thread, NULL));
    while (!receiver) rest(1);

    struct itimerspec often = {{0, 10000000}, {0, 10000000}}, distant = {{3, 4}, {FAR, 0}}, soon = {{0, 0}, {0, 1}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1, .sigev_value.sival_int = 11};
    for (int i = 0; i < 5; i++) must(!timer_delete(timer(CLOCK_MONOTONIC, event, (struct itimerspec){{0, 0}, {0, 0}})));
    to_process = timer(CLOCK_MONOTONIC, event, often);
    event.sigev_signo = SIGRTMIN + 2;
    event.sigev_value.sival_int = 22;
    of_cpu = timer(CLOCK_PROCESS_CPUTIME_ID, event, often);
    event.sigev_signo = SIGRTMIN + 4;
    event.sigev_value.sival_int = 44;
    once = timer(CLOCK_MONOTONIC, event, soon); /* pending to the end */
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGRTMIN + 3;
    event.sigev_value.sival_ptr = &to_thread;
    event.sigev_notify_thread_id = receiver;
    to_thread = timer(CLOCK_REALTIME, event, often);
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_NONE;
    to_nobody = timer(CLOCK_REALTIME, event, distant);
    since_boot = timer(CLOCK_BOOTTIME, event, distant);
    clockid_t own;
    must(!pthread_getcpuclockid(pthread_self(), &own));
    of_thread_cpu = timer(own, event, distant);
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_value.sival_int = 33;
    event.sigev_notify_function = function;
    to_function = timer(CLOCK_MONOTONIC, event, (struct itimerspec){{0, 50000000}, {0, 1}});
    cpu_until = FAR;
    /* last: until here nothing handles what comes from timers that do not have their variable yet */
    must(!pthread_create(&thread, NULL, handler_thread, &handled));
}

static double timer_left(timer_t id) {
    struct itimerspec setting;
    must(!timer_gettime(id, &setting) && setting.it_interval.tv_sec == 3 && setting.it_interval.tv_nsec == 4);
    return (double)setting.it_value.tv_sec + (double)setting.it_value.tv_nsec * 1e-9;
}

static void check_posix_timers(void) {
    same("timers", "%s", content("/proc/self/timers")); /* newest first, with ids, targets and values */
    long process = process_count, thread = thread_count, of_function = function_count, cpu = cpu_count;
    for (int i = 0; process == process_count || thread == thread_count || of_function == function_count; i++) {
        if (i == 10000) fail("signals no longer come: %ld %ld %ld", process, thread, of_function);
        rest(1);
    }
    for (long i = 0; cpu == cpu_count; i++)
        if (i == 10000000000) fail("the timer of processor time no longer ticks");
    check_left("to nobody", timer_left(to_nobody));
    check_left("since boot", timer_left(since_boot));
    double left = timer_left(of_thread_cpu);
    if (left > cpu_until || left < FAR - 100) fail("%f s of processor time left, %f s before", left, cpu_until);
    cpu_until = left;
    struct itimerspec setting;
    must(!timer_gettime(once, &setting) && !setting.it_value.tv_sec && !setting.it_value.tv_nsec);
}

static void end_posix_timers(void) {
    sigset_t set;
    siginfo_t info;
    struct timespec none = {0, 0};
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 4);
    must(sigtimedwait(&set, &info, &none) == SIGRTMIN + 4 && info.si_code == SI_TIMER && info.si_int == 44);
    must(sigtimedwait(&set, &info, &none) == -1 && errno == EAGAIN);
    must(!timer_delete(to_process) && !timer_delete(to_thread) && !timer_delete(to_function) && !timer_delete(of_cpu));
    must(!timer_delete(of_thread_cpu) && !timer_delete(to_nobody) && !timer_delete(since_boot) && !timer_delete(once));
    must(!*content("/proc/self/timers"));
}

int main(int argc, char **argv) {
    begin(argc, argv);
    begin_signals();
    begin_timers();
    begin_processes();
    begin_posix_timers();
    while (!stopped()) {
        check_signals();
        check_timers();
        check_processes();
        check_posix_timers();
        tick();
    }
    end_signals();
    end_timers();
    end_processes();
    end_posix_timers();
    return done();
}
