/*
 * Sessions and process groups of every shape: leaders, members, a group whose leader is dead, a session whose leader is
 * dead, a zombie that leads a group, and a process that lives in a session of its own with two groups.
 */
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { MOST = 16 };
static struct {
    volatile long asked, answered[MOST];
    volatile pid_t pid[MOST];
    volatile int ready[MOST];
} *shared;

static void check(int number) {
    char key[32];
    snprintf(key, sizeof key, "process %d", number);
    same(key, "pid %d, parent %d, group %d, session %d", (int)getpid(), number ? (int)getppid() : 0 /* the restart command is another parent */,
         (int)getpgrp(), (int)getsid(0));
}

/* Answers as long as it is asked. */
static void serve(int number) {
    check(number);
    shared->pid[number] = getpid();
    shared->ready[number] = 1;
    while (shared->asked >= 0) {
        if (shared->answered[number] != shared->asked) {
            check(number);
            shared->answered[number] = shared->asked;
        }
        rest(2);
    }
    _exit(number);
}

static void await(volatile int *flag) {
    for (int i = 0; !*flag; i++) {
        if (i > 10000) fail("a child does not get ready");
        rest(1);
    }
}

static pid_t child(void) {
    pid_t pid = fork();
    must(pid >= 0);
    return pid;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t direct[MOST] = {0};
    /* 1: a session leader; 2, 3: its child in the same group, and a group of its own within that session */
    if (!(direct[1] = child())) {
        setsid();
        if (!child()) serve(2);
        if (!child()) {
            setpgid(0, 0);
            if (!child()) serve(4); /* member of 3's group */
            serve(3);
        }
        await(&shared->ready[2]);
        await(&shared->ready[3]);
        await(&shared->ready[4]);
        serve(1);
    }
    /* 5, 6: a group whose leader has ended and was reaped */
    int to_reap[2];
    must(!pipe(to_reap));
    pid_t leader = child();
    if (!leader) {
        setpgid(0, 0);
        char byte;
        close(to_reap[1]);
        (void)!read(to_reap[0], &byte, 1);
        _exit(0);
    }
    setpgid(leader, leader);
    for (int i = 5; i <= 6; i++)
        if (!(direct[i] = child())) {
            close(to_reap[1]);
            must(!setpgid(0, leader));
            serve(i);
        }
    await(&shared->ready[5]);
    await(&shared->ready[6]);
    close(to_reap[1]);
    close(to_reap[0]);
    must(waitpid(leader, NULL, 0) == leader);
    /* 7: orphaned in a session whose leader is dead; it comes to init or to the nearest subreaper */
    pid_t session = child();
    if (!session) {
        setsid();
        if (!child()) {
            while (getppid() == getsid(0)) rest(1);
            rest(20);
            serve(7);
        }
        _exit(0);
    }
    must(waitpid(session, NULL, 0) == session);
    await(&shared->ready[7]);
    /* 8: a zombie leads the group of 9 */
    pid_t zombie = child();
    if (!zombie) {
        setpgid(0, 0);
        while (!shared->ready[9]) rest(1);
        _exit(88);
    }
    setpgid(zombie, zombie);
    if (!(direct[9] = child())) {
        must(!setpgid(0, zombie));
        serve(9);
    }
    await(&shared->ready[9]);
    siginfo_t info;
    must(!waitid(P_PID, zombie, &info, WEXITED | WNOWAIT));

    /* 10: a plain child */
    if (!(direct[10] = child())) serve(10);
    await(&shared->ready[10]);
    static const int askable[] = {1, 2, 3, 4, 5, 6, 7, 9, 10};
    while (!stopped()) {
        shared->asked++;
        for (unsigned i = 0; i < sizeof askable / sizeof *askable; i++) {
            int n = askable[i];
            for (long k = 0; shared->answered[n] != shared->asked; k++) {
                if (k > 20000) fail("process %d does not answer", n);
                rest(1);
            }
            must(!kill(shared->pid[n], 0));
        }
        check(0);
        tick();
    }
    must(!kill(-leader, 0));
    shared->asked = -1;
    int status;
    for (int i = 0; i < MOST; i++)
        if (direct[i]) {
            must(waitpid(direct[i], &status, 0) == direct[i]);
            if (!WIFEXITED(status) || WEXITSTATUS(status) != i) fail("process %d ended with wait status %x", i, status);
        }
    must(waitpid(zombie, &status, 0) == zombie && WIFEXITED(status) && WEXITSTATUS(status) == 88);
    return done();
}
