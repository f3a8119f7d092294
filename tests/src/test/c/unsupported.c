/* Holds one descriptor or resource of a kind named on the command line, and counts. usage: unsupported PROGRESS KIND */
#include "check.h"
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <signal.h>
#include <arpa/inet.h>

int main(int argc, char **argv) {
    begin(argc, argv);
    must(argc == 3);
    const char *kind = argv[2];
    int fd = -1;
    if (!strcmp(kind, "tcp")) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        fd = socket(AF_INET, SOCK_STREAM, 0);
        must(!bind(fd, (struct sockaddr *)&address, sizeof address) && !listen(fd, 5));
    } else if (!strcmp(kind, "udp")) {
        fd = socket(AF_INET, SOCK_DGRAM, 0);
    } else if (!strcmp(kind, "unix")) {
        int pair[2];
        must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
        fd = pair[0];
        must(write(pair[1], "in flight", 9) == 9);
    } else if (!strcmp(kind, "netlink")) {
        fd = socket(AF_NETLINK, SOCK_RAW, 0);
    } else if (!strcmp(kind, "eventfd")) {
        fd = eventfd(7, 0);
    } else if (!strcmp(kind, "epoll")) {
        fd = epoll_create1(0);
    } else if (!strcmp(kind, "signalfd")) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        fd = signalfd(-1, &set, 0);
    } else if (!strcmp(kind, "timerfd")) {
        fd = timerfd_create(CLOCK_MONOTONIC, 0);
    } else if (!strcmp(kind, "inotify")) {
        fd = inotify_init1(0);
    } else if (!strcmp(kind, "memfd")) {
        fd = memfd_create("memory", 0);
    } else if (!strcmp(kind, "deleted")) {
        char path[4200];
        snprintf(path, sizeof path, "%s.deleted", argv[1]);
        fd = open(path, O_RDWR | O_CREAT, 0644);
        must(write(fd, "still here", 10) == 10 && !unlink(path));
    } else if (!strcmp(kind, "shm")) {
        fd = 0;
        int id = shmget(IPC_PRIVATE, 4096, 0600);
        must(id >= 0 && shmat(id, NULL, 0) != (void *)-1);
        must(!shmctl(id, IPC_RMID, NULL));
    } else if (!strcmp(kind, "lock")) {
        char path[4200];
        snprintf(path, sizeof path, "%s.lock", argv[1]);
        fd = open(path, O_RDWR | O_CREAT, 0644);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        must(!fcntl(fd, F_SETLK, &lock));
    } else if (!strcmp(kind, "timer")) {
        fd = 0;
        timer_t timer;
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
        must(!timer_create(CLOCK_MONOTONIC, &event, &timer));
    } else if (!strcmp(kind, "pidfd")) {
        fd = syscall(434, getpid(), 0);
    } else {
        fail("unknown kind %s", kind);
    }
    must(fd >= 0);
    while (!stopped()) {
        tick();
        rest(2);
    }
    return done();
}
