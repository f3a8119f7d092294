/*
 * Signals: actions with their flags and masks, the masks of two threads, alternate stacks, pending signals with their
 * values in the process's and the threads' queues, and interval timers.
 */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
}
static void on_plain_signal(int number) { (void)number; }

static volatile long alarms, virtual_alarms, profile_alarms;
static void on_alarm(int number) {
    if (number == SIGALRM) alarms++;
    if (number == SIGVTALRM) virtual_alarms++;
    if (number == SIGPROF) profile_alarms++;
}

static void check_actions(void) {
    char text[8192] = "", *o = text;
    for (int i = 1; i < 65; i++) {
        /* the kernel's own structure, so that restorer and real-time signals of the library are seen too */
        struct {
            void *handler;
            unsigned long flags;
            void *restorer;
            unsigned long mask;
        } action;
        if (syscall(SYS_rt_sigaction, i, NULL, &action, 8)) continue;
        o += sprintf(o, "%d:%p/%lx/%p/%lx ", i, action.handler, action.flags, action.restorer, action.mask);
    }
    same("actions", "%s", text);
}

static void check_thread(const char *who) {
    unsigned long mask = 0, pending = 0;
    stack_t stack;
    char key[64];
    must(!syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8));
    must(!syscall(SYS_rt_sigpending, &pending, 8));
    must(!sigaltstack(NULL, &stack));
    unsigned long timers = 1ul << (SIGALRM - 1) | 1ul << (SIGVTALRM - 1) | 1ul << (SIGPROF - 1); /* these come and go */
    snprintf(key, sizeof key, "signals of %s", who);
    same(key, "mask %lx, pending %lx, alternate stack %p %zx %x", mask, pending & ~timers, stack.ss_sp, stack.ss_size, stack.ss_flags);
    snprintf(key, sizeof key, "private pending signals of %s", who);
    same(key, "%lx", strtoul(status_line("SigPnd") + 7, NULL, 16) & ~timers);
    snprintf(key, sizeof key, "shared pending signals of %s", who);
    same(key, "%lx", strtoul(status_line("ShdPnd") + 7, NULL, 16) & ~timers);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int quit, ready;
static int thread_code; /* si_code of tgkill(2): SI_TKILL, or SI_USER on newer kernels */
static long rounds;
static char second_stack[65536];

static void send(pid_t tid, int number, int value) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = number;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_int = value;
    if (tid)
        must(!syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, number, &info));
    else
        must(!syscall(SYS_rt_sigqueueinfo, getpid(), number, &info));
}

/* Takes pending signals of one number and compares their values. */
static void expect(int number, int code, int count, const int *values) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    struct timespec none = {0, 0};
    for (int i = 0; i < count; i++) {
        siginfo_t info;
        if (sigtimedwait(&set, &info, &none) != number) fail("signal %d number %d is lost", number, i);
        if (info.si_code != code) fail("signal %d has code %d, not %d", number, info.si_code, code);
        if (values && info.si_value.sival_int != values[i])
            fail("signal %d has value %d, not %d", number, info.si_value.sival_int, values[i]);
        if (info.si_pid != getpid() || info.si_uid != getuid())
            fail("signal %d comes from %d, uid %d", number, (int)info.si_pid, (int)info.si_uid);
    }
    siginfo_t info;
    if (sigtimedwait(&set, &info, &none) == number) fail("signal %d came once too often", number);
}

static void block(int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void *second(void *argument) {
    (void)argument;
    stack_t stack = {.ss_sp = second_stack, .ss_size = sizeof second_stack};
    must(!sigaltstack(&stack, NULL));
    block(SIGRTMIN + 5);
    block(SIGUSR1);
    pid_t tid = syscall(SYS_gettid);
    for (int i = 0; i < 7; i++) send(tid, SIGRTMIN + 5, 300 + i);
    must(!syscall(SYS_tgkill, getpid(), tid, SIGUSR1));
    ready = 1;
    for (;;) {
        pthread_mutex_lock(&lock);
        if (quit) break;
        check_thread("the second thread");
        rounds++;
        pthread_mutex_unlock(&lock);
        rest(3);
    }
    int values[7] = {300, 301, 302, 303, 304, 305, 306};
    expect(SIGRTMIN + 5, SI_QUEUE, 7, values);
    expect(SIGUSR1, thread_code, 1, NULL);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void handle(int number, int flags, int with) {
    struct sigaction action = {.sa_flags = flags};
    if (flags & SA_SIGINFO)
        action.sa_sigaction = on_signal;
    else
        action.sa_handler = on_plain_signal;
    sigemptyset(&action.sa_mask);
    if (with) sigaddset(&action.sa_mask, with);
    must(!sigaction(number, &action, NULL));
}

static volatile int in_handler, on_other_stack;
static void on_deep_signal(int number) {
    (void)number;
    int here;
    on_other_stack = (char *)&here >= second_stack && (char *)&here < second_stack + sizeof second_stack;
    in_handler = 1;
    while (!stopped()) rest(2); /* checkpointed inside a handler, on the alternate stack */
    in_handler = 2;
}

static void *in_a_handler(void *argument) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    must(!sigaltstack(&stack, NULL));
    (void)argument;
    must(!pthread_kill(pthread_self(), SIGRTMIN + 9));
    return NULL;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    handle(SIGUSR1, SA_SIGINFO | SA_RESTART, SIGUSR2);
    handle(SIGUSR2, SA_ONSTACK | SA_NODEFER, 0);
    handle(SIGHUP, SA_RESETHAND | SA_SIGINFO, SIGRTMAX);
    handle(SIGCHLD, SA_NOCLDSTOP | SA_NOCLDWAIT, 0);
    handle(SIGRTMIN + 3, SA_SIGINFO | SA_ONSTACK, SIGRTMIN + 7);
    handle(SIGRTMAX, SA_SIGINFO, SIGALRM);
    handle(SIGTRAP, SA_SIGINFO, 0);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGURG, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
    signal(SIGWINCH, on_plain_signal);
    struct sigaction alarm_action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &alarm_action, NULL);
    sigaction(SIGVTALRM, &alarm_action, NULL);
    sigaction(SIGPROF, &alarm_action, NULL);
    struct sigaction deep = {.sa_handler = on_deep_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGRTMIN + 9, &deep, NULL);

    block(SIGRTMIN + 1);
    block(SIGRTMIN + 2);
    block(SIGTERM);
    block(SIGINT);
    block(SIGQUIT);
    must(!syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGINT));
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    siginfo_t info;
    must(sigwaitinfo(&interrupt, &info) == SIGINT);
    thread_code = info.si_code;

    pthread_t thread, handler;
    pthread_mutex_lock(&lock); /* until all is set up */
    must(!pthread_create(&thread, NULL, second, NULL));
    must(!pthread_create(&handler, NULL, in_a_handler, NULL));
    while (!ready || !in_handler) rest(1);
    stack_t stack = {.ss_sp = malloc(32768), .ss_size = 32768};
    must(!sigaltstack(&stack, NULL));
    for (int i = 0; i < 20; i++) send(0, SIGRTMIN + 1, 100 + i);
    for (int i = 0; i < 5; i++) send(syscall(SYS_gettid), SIGRTMIN + 2, 200 + i);
    must(!kill(getpid(), SIGTERM));
    must(!syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGINT));

    /* far away, so that only the time that is left changes */
    struct itimerval often = {{0, 20000}, {0, 20000}}, slow = {{1000, 5}, {5000, 0}}, profile = {{0, 100000}, {0, 100000}};
    must(!setitimer(ITIMER_REAL, &often, NULL));
    must(!setitimer(ITIMER_VIRTUAL, &slow, NULL));
    must(!setitimer(ITIMER_PROF, &profile, NULL));
    pthread_mutex_unlock(&lock);
    long last_rounds = 0, last_alarms = 0, stale = 0;
    while (!stopped()) {
        pthread_mutex_lock(&lock);
        check_actions();
        check_thread("the main thread");
        struct itimerval left;
        must(!getitimer(ITIMER_REAL, &left));
        must(left.it_interval.tv_sec == 0 && left.it_interval.tv_usec == 20000);
        must(!getitimer(ITIMER_VIRTUAL, &left));
        must(left.it_interval.tv_sec == 1000 && left.it_interval.tv_usec >= 5);
        must(left.it_value.tv_sec <= 5000 && left.it_value.tv_sec > 4900);
        must(!getitimer(ITIMER_PROF, &left));
        must(left.it_interval.tv_usec == 100000);
        if (rounds > last_rounds) tick();
        last_rounds = rounds;
        pthread_mutex_unlock(&lock);
        stale = alarms == last_alarms ? stale + 1 : 0;
        last_alarms = alarms;
        if (stale > 200) fail("ITIMER_REAL does not come any more");
        rest(3);
    }
    struct itimerval off = {0};
    setitimer(ITIMER_REAL, &off, NULL);
    setitimer(ITIMER_PROF, &off, NULL);
    pthread_mutex_lock(&lock);
    quit = 1;
    pthread_mutex_unlock(&lock);
    must(!pthread_join(thread, NULL));
    must(!pthread_join(handler, NULL));
    must(in_handler == 2);
    if (virtual_alarms) fail("ITIMER_VIRTUAL came early");
    int values[20];
    for (int i = 0; i < 20; i++) values[i] = 100 + i;
    expect(SIGRTMIN + 1, SI_QUEUE, 20, values);
    for (int i = 0; i < 5; i++) values[i] = 200 + i;
    expect(SIGRTMIN + 2, SI_QUEUE, 5, values);
    expect(SIGTERM, SI_USER, 1, NULL);
    expect(SIGINT, thread_code, 1, NULL);
    return done();
}
