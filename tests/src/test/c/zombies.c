/*
 * A parent with zombies and stopped children: their wait statuses are what they were when they are reaped at the end.
 * Some zombies are reaped and made anew all along.
 */
#include "check.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static pid_t child(void) {
    pid_t pid = fork();
    must(pid >= 0);
    return pid;
}

static char state_of(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *text = strrchr(content(path), ')');
    return text ? text[2] : '?';
}

static void await_state(pid_t pid, char state) {
    for (int i = 0; state_of(pid) != state; i++) {
        if (i > 5000) fail("process %d is %c, not %c", (int)pid, state_of(pid), state);
        rest(1);
    }
}

enum { EXITED = 5 };

int main(int argc, char **argv) {
    begin(argc, argv);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    pid_t exited[EXITED], killed, segfault, stopped_seen, stopped_unseen, stopped_group[2], named;
    for (int i = 0; i < EXITED; i++)
        if (!(exited[i] = child())) _exit(i * 50);
    if (!(killed = child()))
        for (;;) pause();
    kill(killed, SIGKILL);
    if (!(segfault = child())) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
        _exit(1);
    }
    if (!(named = child())) {
        prctl(PR_SET_NAME, "I am dead");
        _exit(3);
    }
    if (!(stopped_seen = child()))
        for (;;) {
            raise(SIGSTOP);
            _exit(21);
        }
    if (!(stopped_unseen = child())) {
        setpgid(0, 0); /* a group that is not orphaned: in an orphaned one SIGTSTP has no effect */
        raise(SIGTSTP);
        _exit(22);
    }
    for (int i = 0; i < 2; i++) {
        if (!(stopped_group[i] = child())) {
            volatile long count = 0;
            for (;;) {
                count++;
                if (stopped()) _exit(23 + i);
                rest(5);
            }
        }
        kill(stopped_group[i], SIGSTOP);
    }
    int status;
    must(waitpid(stopped_seen, &status, WUNTRACED) == stopped_seen && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    pid_t all_stopped[] = {stopped_seen, stopped_unseen, stopped_group[0], stopped_group[1]};
    for (int i = 0; i < 4; i++) await_state(all_stopped[i], 'T');
    for (int i = 0; i < EXITED; i++) await_state(exited[i], 'Z');
    await_state(killed, 'Z');
    await_state(segfault, 'Z');
    await_state(named, 'Z');

    while (!stopped()) {
        for (int i = 0; i < EXITED; i++) must(state_of(exited[i]) == 'Z');
        must(state_of(killed) == 'Z' && state_of(segfault) == 'Z' && state_of(named) == 'Z');
        for (int i = 0; i < 4; i++)
            if (state_of(all_stopped[i]) != 'T') fail("stopped child %d is %c", i, state_of(all_stopped[i]));
        char name[64];
        snprintf(name, sizeof name, "/proc/%d/comm", (int)named);
        same("name of a zombie", "%s", content(name));
        pid_t fresh = child();
        if (!fresh) _exit(check_ticks % 256);
        rest(2);
        must(waitpid(fresh, &status, 0) == fresh && WIFEXITED(status) && WEXITSTATUS(status) == check_ticks % 256);
        siginfo_t info;
        must(!waitid(P_PID, exited[3], &info, WEXITED | WNOWAIT));
        must(info.si_code == CLD_EXITED && info.si_status == 150 && info.si_pid == exited[3]);
        tick();
    }
    for (int i = 0; i < EXITED; i++)
        must(waitpid(exited[i], &status, 0) == exited[i] && WIFEXITED(status) && WEXITSTATUS(status) == (i * 50) % 256);
    must(waitpid(killed, &status, 0) == killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    must(waitpid(segfault, &status, 0) == segfault && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    must(waitpid(named, &status, 0) == named && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    /* The stop that nobody waited for is still to be seen, with its signal. The seen one may show again: a restart stops
       the child anew, and the kernel does not tell whether the parent knew. */
    must(waitpid(stopped_seen, &status, WUNTRACED | WNOHANG) >= 0);
    must(waitpid(stopped_unseen, &status, WUNTRACED | WNOHANG) == stopped_unseen && WIFSTOPPED(status));
    if (WSTOPSIG(status) != SIGTSTP) fail("a child was stopped by signal %d, not by SIGTSTP", WSTOPSIG(status));
    for (int i = 0; i < 4; i++) {
        must(!kill(all_stopped[i], SIGCONT));
        must(waitpid(all_stopped[i], &status, WUNTRACED) == all_stopped[i]);
        if (WIFSTOPPED(status) && i >= 2) /* their stop was not waited for either */
            must(waitpid(all_stopped[i], &status, 0) == all_stopped[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 21 + i)
            fail("stopped child %d ended with wait status %x", i, status);
    }
    return done();
}
