/*
 * Filters of seccomp(2): one that all threads have, others that only one has, with and without no_new_privs, in a child
 * that inherits them, in a child without privileges, and one that kills. What a filter forbids stays forbidden, what it
 * allows stays allowed, and threads that had the same filters can be given one more together. Needs root.
 */
#include "check.h"
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { LENGTH = 600 };

/* Answers call `number` with error `error`; `padding` instructions come first, so that no two filters are alike. */
static void forbid(int number, int error, int padding, unsigned flags) {
    struct sock_filter code[LENGTH + 4];
    int n = 0;
    must(padding <= LENGTH);
    while (n < padding) code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, (unsigned)n);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, code};
    must(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

/* Kills the process at all calls but those that it makes itself and those that every C program needs now and then. */
static void confine(void) {
    static const int allowed[] = {SYS_openat, SYS_read, SYS_write, SYS_close, SYS_exit_group, SYS_getpid, SYS_gettid, SYS_rt_sigreturn,
                                  SYS_times, SYS_prctl, SYS_mmap, SYS_munmap, SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_tgkill,
                                  SYS_sigaltstack, SYS_prlimit64, SYS_brk, SYS_getitimer, SYS_membarrier, SYS_get_mempolicy};
    enum { COUNT = sizeof allowed / sizeof *allowed };
    struct sock_filter code[COUNT + 3];
    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < COUNT; i++)
        code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], (unsigned char)(COUNT - i), 0);
    code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {COUNT + 3, code};
    must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static int answer(int number) {
    errno = 0;
    long result = syscall(number, 0, 0, 0);
    return result == -1 ? errno : 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void check(const char *who) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    must(!syscall(SYS_capget, &header, data));
    pthread_mutex_lock(&lock);
    same(who, "mode %d, no new privileges %d, capabilities %x %x, times %d, getpgrp %d, getuid %d, getppid %d", prctl(PR_GET_SECCOMP),
         prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), data[0].effective, data[1].effective, answer(SYS_times), answer(SYS_getpgrp),
         answer(SYS_getuid), answer(SYS_getppid) != 0);
    pthread_mutex_unlock(&lock);
}

static volatile int quit;
static volatile long rounds[3];

static void *run(void *argument) {
    long number = (long)argument;
    char who[32];
    snprintf(who, sizeof who, "thread %ld", number);
    if (number == 1) {
        forbid(SYS_getpgrp, 61, 1, 0);
        forbid(SYS_getuid, 62, 2, SECCOMP_FILTER_FLAG_LOG);
        must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    } else {
        forbid(SYS_getpgrp, 63, LENGTH, 0);
    }
    while (!quit) {
        check(who);
        rounds[number]++;
        rest(2);
    }
    return NULL;
}

static void *wait_for_end(void *argument) {
    char byte;
    while (read(*(int *)argument, &byte, 1) == 1) check("waiting");
    same("sync", "%d", answer(SYS_getppid)); /* the last filter came from the main thread */
    return NULL;
}

/* A child whose two threads have the same filters; they get one more together at the end. */
static void together(int commands, int answers) {
    int wake[2];
    pthread_t thread;
    must(!pipe(wake));
    forbid(SYS_getuid, 70, 3, 0);
    must(!pthread_create(&thread, NULL, wait_for_end, wake));
    for (char byte; read(commands, &byte, 1) == 1;) {
        check("together");
        must(write(wake[1], &byte, 1) == 1 && write(answers, &byte, 1) == 1);
    }
    forbid(SYS_getppid, 71, 4, SECCOMP_FILTER_FLAG_TSYNC);
    same("sync", "%d", 71);
    close(wake[1]);
    must(!pthread_join(thread, NULL));
    _exit(10);
}

static void child(int kind, int commands, int answers) {
    if (kind == 0) together(commands, answers);
    if (kind == 1) { /* filters of a time when it had the right to install them */
        forbid(SYS_getppid, 80, 5, 0);
        must(!setresgid(2000, 2000, 2000) && !setresuid(1500, 1500, 1500) && !prctl(PR_SET_DUMPABLE, 1));
    }
    if (kind == 2) confine();
    for (char byte; read(commands, &byte, 1) == 1;) {
        if (kind == 2)
            must(answer(SYS_times) == 55);
        else
            check("child");
        must(write(answers, &byte, 1) == 1);
    }
    _exit(10 + kind);
}

enum { CHILDREN = 3 };

int main(int argc, char **argv) {
    begin(argc, argv);
    int commands[CHILDREN][2], answers[2];
    pid_t children[CHILDREN];
    pthread_t thread[3];
    umask(0);
    report("starts"); /* all may complain there */
    must(!chmod(argv[1], 0666) && !pipe2(answers, O_CLOEXEC));
    forbid(SYS_times, 55, 0, SECCOMP_FILTER_FLAG_LOG);
    for (int i = 0; i < CHILDREN; i++) {
        must(!pipe(commands[i]) && (children[i] = fork()) >= 0);
        if (!children[i]) {
            for (int k = 0; k <= i; k++) close(commands[k][1]);
            close(answers[0]);
            child(i, commands[i][0], answers[1]);
        }
        close(commands[i][0]);
    }
    for (long i = 1; i < 3; i++) must(!pthread_create(&thread[i], NULL, run, (void *)i));
    for (long last = 0; !stopped(); rest(2)) {
        check("main");
        char byte = 'x';
        for (int i = 0; i < CHILDREN; i++) must(write(commands[i][1], &byte, 1) == 1 && read(answers[0], &byte, 1) == 1);
        long least = rounds[1] < rounds[2] ? rounds[1] : rounds[2];
        if (least > last) tick();
        last = least;
    }
    quit = 1;
    for (int i = 1; i < 3; i++) must(!pthread_join(thread[i], NULL));
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        close(commands[i][1]);
        must(waitpid(children[i], &status, 0) == children[i]);
        if (status != (10 + i) << 8) fail("child %d ended with wait status %x", i, status);
    }
    return done();
}
