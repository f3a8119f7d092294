/*
 * Processes are born and die all the time, at several levels, some by execve(2): the tree never stands still while
 * somebody tries to freeze it. Every wait status is checked.
 */
#include "check.h"
#include <sys/mman.h>
#include <sys/wait.h>

enum { WORKERS = 4 };
static volatile long *rounds;

static int grandchild(int number) {
    pid_t pid = fork();
    must(pid >= 0);
    if (!pid) _exit(number);
    int status;
    must(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void work(int number) {
    for (long n = 0;; n++) {
        int expected = (number * 31 + n) % 120;
        pid_t pid = fork();
        must(pid >= 0);
        if (!pid) {
            if (n % 8 == 3) {
                char text[32];
                sprintf(text, "exit %d", expected);
                execl("/bin/sh", "sh", "-c", text, NULL);
                _exit(126);
            }
            _exit(n % 2 ? grandchild(expected) : expected);
        }
        int status;
        must(waitpid(pid, &status, 0) == pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != expected)
            fail("worker %d: child %ld ended with wait status %x, not with %d", number, n, status, expected);
        rounds[number]++;
        if (stopped()) _exit(50 + number);
        rest(1);
    }
}

int main(int argc, char **argv) {
    begin(argc, argv);
    rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t worker[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        must((worker[i] = fork()) >= 0);
        if (!worker[i]) work(i);
    }
    long last[WORKERS] = {0};
    while (!stopped()) {
        int all = 1;
        for (int i = 0; i < WORKERS; i++) all &= rounds[i] > last[i];
        if (all) {
            for (int i = 0; i < WORKERS; i++) last[i] = rounds[i];
            tick();
        }
        int status;
        if (!stopped()) must(waitpid(-1, &status, WNOHANG) == 0 || stopped());
        rest(2);
    }
    for (int i = 0; i < WORKERS; i++) {
        int status;
        pid_t ended = waitpid(worker[i], &status, 0);
        if (ended < 0 && errno == ECHILD) continue; /* reaped by the last look above */
        must(WIFEXITED(status) && WEXITSTATUS(status) == 50 + i);
    }
    return done();
}
