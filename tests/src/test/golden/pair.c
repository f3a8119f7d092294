/* Two processes, a pipe with bytes in it, two threads: small, and still something of everything that an image holds. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *idle(void *unused) {
    for (;;) pause();
    return unused;
}

int main(void) {
    int ends[2];
    pthread_t thread;
    if (pipe(ends) || write(ends[1], "golden", 6) != 6) return 1;
    if (fork() == 0) {
        for (;;) pause();
    }
    if (pthread_create(&thread, NULL, idle, NULL)) return 1;
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
