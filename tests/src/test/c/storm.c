/*
 * Two processes and a thread send each other numbered real-time signals as fast as they are taken: none may be lost,
 * doubled or overtaken, with a signal in delivery at any moment that somebody freezes the program.
 */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static struct {
    volatile long received[3];
    volatile int over;
} *shared;

static volatile long expected[3];

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)context;
    int stream = number - SIGRTMIN;
    if (info->si_value.sival_int != (int)expected[stream])
        fail("stream %d: number %d instead of %ld", stream, info->si_value.sival_int, expected[stream]);
    expected[stream]++;
    shared->received[stream] = expected[stream];
}

static pid_t parent;
static pthread_t main_thread;

/* Keeps at most 40 numbers under way. */
static void transmit(int stream, pid_t to) {
    for (long n = 0; !shared->over; n++) {
        while (n - shared->received[stream] >= 40) {
            if (shared->over) return;
            rest(1);
        }
        union sigval value = {.sival_int = (int)n};
        int r = to ? sigqueue(to, SIGRTMIN + stream, value) : pthread_sigqueue(main_thread, SIGRTMIN + stream, value);
        must(r == 0);
    }
}

static void *sender(void *argument) {
    (void)argument;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    transmit(1, 0);
    return NULL;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&action.sa_mask);
    for (int i = 0; i < 3; i++) must(!sigaction(SIGRTMIN + i, &action, NULL));
    parent = getpid();
    main_thread = pthread_self();
    pid_t child = fork();
    must(child >= 0);
    if (!child) {
        transmit(0, parent);
        _exit(3);
    }
    pthread_t thread;
    sigset_t all, none;
    sigfillset(&all);
    must(!pthread_sigmask(SIG_BLOCK, &all, &none)); /* a thread that handled one signal could be overtaken by this one */
    must(!pthread_create(&thread, NULL, sender, NULL));
    must(!pthread_sigmask(SIG_SETMASK, &none, NULL));
    long last[2] = {0};
    while (!stopped()) {
        if (shared->received[0] > last[0] && shared->received[1] > last[1]) {
            last[0] = shared->received[0];
            last[1] = shared->received[1];
            tick();
        }
        rest(3);
    }
    shared->over = 1;
    pthread_join(thread, NULL);
    int status;
    while (waitpid(child, &status, 0) < 0) must(errno == EINTR);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    return done();
}
