/* ticker FILE: four threads count under a mutex; a child at the end of a pipe adds up what it is sent and writes the
   number of the round to FILE. Any disagreement ends the program with status 3. SIGTERM ends it with status 42. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counts[4];
static volatile sig_atomic_t done;

static void stop(int sig) { done = 1; }

static void *count(void *argument) {
    long *mine = argument;
    struct timespec pause = {0, 1000000};
    for (;;) {
        pthread_mutex_lock(&lock);
        ++*mine;
        pthread_mutex_unlock(&lock);
        if (nanosleep(&pause, 0)) _exit(4);
    }
    return 0;
}

static void child(int in, const char *file) {
    long expected = 0, round;
    signal(SIGTERM, SIG_IGN);
    while (read(in, &round, sizeof round) == sizeof round) {
        if (round != ++expected) _exit(3);
        char line[64];
        int length = snprintf(line, sizeof line, "%ld\n", round);
        int out = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (write(out, line, length) != length) _exit(5);
        close(out);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    int ends[2];
    if (pipe(ends)) return 1;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        child(ends[0], argv[1]);
    }
    close(ends[0]);
    signal(SIGTERM, stop);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, count, &counts[i])) return 1;
    }
    struct timespec pause = {0, 2000000};
    for (long round = 1; !done; round++) {
        if (write(ends[1], &round, sizeof round) != sizeof round) return 6;
        nanosleep(&pause, 0);
    }
    close(ends[1]);
    int status;
    if (waitpid(pid, &status, 0) != pid) return 7;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 42 : 8;
}
