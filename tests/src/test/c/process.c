/*
 * The attributes of a process and its threads: names, limits, priorities, working directory, umask, personality and
 * what prctl(2) keeps. Two threads and a child differ in all that can differ; an orphaned grandchild has come to the
 * program, which is a subreaper.
 */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int privileged;

static void check_task(const char *who) {
    char name[100], key[64];
    prctl(PR_GET_NAME, name);
    int policy = sched_getscheduler(0);
    struct sched_param parameter;
    must(!sched_getparam(0, &parameter));
    cpu_set_t cpus;
    must(!sched_getaffinity(0, sizeof cpus, &cpus));
    int signal_at_death = 0;
    must(!prctl(PR_GET_PDEATHSIG, &signal_at_death));
    snprintf(key, sizeof key, "task %s", who);
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, 0);
    same(key, "name %s, policy %d, priority %d, nice %d, affinity %lx, parent-death signal %d, timer slack %d, no_new_privs %d, THP disabled %d, keepcaps %d, I/O priority %ld",
         name, policy, parameter.sched_priority, nice, *(unsigned long *)&cpus, signal_at_death, prctl(PR_GET_TIMERSLACK),
         prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), prctl(PR_GET_KEEPCAPS),
         syscall(SYS_ioprio_get, 1, 0));
}

static void check_process(const char *who) {
    char text[4096] = "", key[64], directory[4096], root[4096];
    for (int i = 0; i < RLIMIT_NLIMITS; i++) {
        struct rlimit limit;
        must(!getrlimit(i, &limit));
        sprintf(text + strlen(text), "%d:%lx/%lx ", i, (long)limit.rlim_cur, (long)limit.rlim_max);
    }
    snprintf(key, sizeof key, "limits %s", who);
    same(key, "%s", text);
    mode_t mask = umask(0);
    umask(mask);
    must(getcwd(directory, sizeof directory));
    ssize_t n = readlink("/proc/self/root", root, sizeof root - 1);
    root[n < 0 ? 0 : n] = 0;
    int subreaper = 0;
    must(!prctl(PR_GET_CHILD_SUBREAPER, &subreaper));
    snprintf(key, sizeof key, "process %s", who);
    same(key, "umask %o, directory %s, root %s, dumpable %d, subreaper %d, personality %x, parent %d, group %d, session %d",
         mask, directory, root, prctl(PR_GET_DUMPABLE), subreaper, personality(0xffffffff),
         strstr(who, "main program") ? 0 : (int)getppid(), /* the restart command is another parent */
         (int)getpgrp(), (int)getsid(0));
    snprintf(key, sizeof key, "oom_score_adj %s", who);
    same(key, "%s", content("/proc/self/oom_score_adj"));
    snprintf(key, sizeof key, "coredump_filter %s", who);
    same(key, "%s", content("/proc/self/coredump_filter"));
    snprintf(key, sizeof key, "cpus allowed %s", who);
    same(key, "%s", status_line("Cpus_allowed_list"));
    snprintf(key, sizeof key, "speculation %s", who);
    same(key, "%d %d", prctl(PR_GET_SPECULATION_CTRL, 0, 0, 0, 0), prctl(PR_GET_SPECULATION_CTRL, 1, 0, 0, 0));
}

static void put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    must(fd >= 0);
    must(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void limit(int resource, rlim_t soft, rlim_t hard) {
    struct rlimit value;
    must(!getrlimit(resource, &value));
    if (hard < value.rlim_max) value.rlim_max = hard;
    value.rlim_cur = soft < value.rlim_max ? soft : value.rlim_max;
    must(!setrlimit(resource, &value));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long thread_rounds;
static volatile int quit;
static int go[2], jail[2];

static void *other_thread(void *argument) {
    (void)argument;
    must(!prctl(PR_SET_NAME, "other (thr) x"));
    setpriority(PRIO_PROCESS, syscall(SYS_gettid), 7);
    must(!prctl(PR_SET_TIMERSLACK, 123456));
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        cpu_set_t all;
        sched_getaffinity(0, sizeof all, &all);
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
            break;
        }
    }
    must(!sched_setaffinity(0, sizeof one, &one));
    struct sched_param zero = {0};
    must(!sched_setscheduler(0, SCHED_BATCH, &zero));
    syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 6);
    for (;;) {
        pthread_mutex_lock(&lock);
        if (quit) break;
        check_task("of the second thread");
        thread_rounds++;
        pthread_mutex_unlock(&lock);
        rest(3);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void child(void) {
    must(!prctl(PR_SET_PDEATHSIG, SIGUSR2));
    must(!prctl(PR_SET_NAME, "child\n\\ \xc3\xa4"));
    signal(SIGUSR2, SIG_IGN);
    must(!setpgid(0, 0));
    umask(0);
    must(!chdir("/proc/self"));
    must(!chdir("/usr/bin"));
    limit(RLIMIT_NOFILE, 100, 200);
    limit(RLIMIT_STACK, 1 << 20, 1 << 21);
    must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    must(!prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
    personality(ADDR_NO_RANDOMIZE | STICKY_TIMEOUTS);
    put("/proc/self/oom_score_adj", "234");
    if (privileged) {
        struct sched_param three = {3};
        if (sched_setscheduler(0, SCHED_RR, &three)) must(errno == EPERM);
    }
    for (char byte; read(go[0], &byte, 1) == 1;) {
        check_process("of the child");
        check_task("of the child");
        if (byte == 'q') _exit(5);
    }
    _exit(6);
}

/* Lives in a root directory of its own, from which it sees nothing else; its status tells. */
static void imprisoned(const char *prison) {
    struct stat before, after;
    must(!mkdir(prison, 0755) && !stat(prison, &before) && !chdir(prison) && !chroot(".") && !mkdir("inside", 0700));
    must(!chdir("inside"));
    char directory[100];
    for (char byte; read(jail[0], &byte, 1) == 1;) {
        if (stat("/", &after) || after.st_ino != before.st_ino || after.st_dev != before.st_dev) _exit(91);
        if (!getcwd(directory, sizeof directory) || strcmp(directory, "/inside")) _exit(92);
        if (byte == 'q') _exit(6);
    }
    _exit(93);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    privileged = geteuid() == 0;
    must(!pipe(go));
    pid_t pid = fork();
    must(pid >= 0);
    if (!pid) child();
    pid_t prisoner = 0;
    must(!pipe(jail));
    if (privileged) {
        char prison[4200];
        snprintf(prison, sizeof prison, "%s.root", argv[1]);
        must((prisoner = fork()) >= 0);
        if (!prisoner) imprisoned(prison);
    }
    must(!prctl(PR_SET_NAME, "main) R 1 2 3"));
    umask(0137);
    must(!chdir("/usr/share"));
    must(!prctl(PR_SET_CHILD_SUBREAPER, 1));
    must(!prctl(PR_SET_TIMERSLACK, 70000));
    put("/proc/self/coredump_filter", "0x7b");
    put("/proc/self/oom_score_adj", "345");
    if (getpriority(PRIO_PROCESS, 0) < 3) must(!setpriority(PRIO_PROCESS, 0, 3));
    limit(RLIMIT_CORE, 1234567, RLIM_INFINITY);
    limit(RLIMIT_NOFILE, 512, 1000);
    limit(RLIMIT_AS, 1ul << 46, 1ul << 47);
    limit(RLIMIT_SIGPENDING, 500, 600);
    limit(RLIMIT_MSGQUEUE, 5000, 60000);
    pthread_t thread;
    must(!pthread_create(&thread, NULL, other_thread, NULL));
    /* An orphaned grandchild comes to the subreaper. */
    pid_t middle = fork();
    if (!middle) {
        if (!fork()) {
            while (!stopped()) rest(5);
            _exit(77);
        }
        _exit(0);
    }
    must(waitpid(middle, NULL, 0) == middle);
    long last = 0;
    while (!stopped()) {
        must(write(go[1], "c", 1) == 1);
        if (prisoner) must(write(jail[1], "c", 1) == 1);
        pthread_mutex_lock(&lock);
        check_process("of the main program");
        check_task("of the main thread");
        if (thread_rounds > last) tick();
        last = thread_rounds;
        pthread_mutex_unlock(&lock);
        int status;
        must(waitpid(pid, &status, WNOHANG) == 0);
        must(!prisoner || waitpid(prisoner, &status, WNOHANG) == 0);
        rest(4);
    }
    int status, seen = 0;
    if (prisoner) {
        must(write(jail[1], "q", 1) == 1);
        must(waitpid(prisoner, &status, 0) == prisoner && WIFEXITED(status));
        if (WEXITSTATUS(status) != 6) fail("the process with a root directory of its own ended with %d", WEXITSTATUS(status));
    }
    must(write(go[1], "q", 1) == 1);
    for (int i = 0; i < 2; i++) {
        pid_t ended = wait(&status);
        must(ended > 0 && WIFEXITED(status));
        seen += ended == pid ? WEXITSTATUS(status) : WEXITSTATUS(status) * 100;
    }
    if (seen != 7705) fail("the child and the adopted grandchild gave %d, not 7705", seen);
    pthread_mutex_lock(&lock);
    quit = 1;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    return done();
}
