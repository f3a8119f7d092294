/*
 * Event descriptors: epoll sets with their members, data and modes, also members whose descriptors are closed, eventfds with their counts, shared by dup and fork.
 */
#include "check.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

/* What /proc tells of the members of a set. */
static void check_set(const char *name, int epoll) {
    char path[64], key[64], text[4096] = "", lines[32][64];
    memset(lines, 0, sizeof lines);
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll);
    for (const char *p = content(path); p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
        int target;
        unsigned events;
        unsigned long long data;
        if (sscanf(p, "tfd: %d events: %x data: %llx", &target, &events, &data) == 3) {
            must(target < 32);
            /* EPOLLERR and EPOLLHUP are implied, and come and go in a one-shot member that has fired */
            if (events & EPOLLONESHOT) events &= ~(unsigned)(EPOLLERR | EPOLLHUP);
            snprintf(lines[target], 64, "%d %x %llx; ", target, events, data);
        }
    }
    for (int i = 0; i < 32; i++) strcat(text, lines[i]); /* the kernel's order has no meaning */
    snprintf(key, sizeof key, "epoll set %s", name);
    same(key, "%sflags %x %x", text, fcntl(epoll, F_GETFL), fcntl(epoll, F_GETFD));
}

static void check_count(const char *name, int fd) {
    char path[64], key[64];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    const char *count = strstr(content(path), "eventfd-count:");
    snprintf(key, sizeof key, "eventfd %s", name);
    same(key, "%.*s flags %x %x", count ? (int)strcspn(count, "\n") : 0, count ? count : "", fcntl(fd, F_GETFL), fcntl(fd, F_GETFD));
}

static void add(int epoll, int fd, unsigned events, uint64_t data) {
    struct epoll_event event = {events, {.u64 = data}};
    must(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

int main(int argc, char **argv) {
    begin(argc, argv);
    int zero = eventfd(0, 0), seven = eventfd(7, EFD_CLOEXEC), many = eventfd(3, EFD_SEMAPHORE | EFD_NONBLOCK), full = eventfd(0, EFD_NONBLOCK);
    must(zero >= 0 && seven >= 0 && many >= 0 && full >= 0);
    uint64_t value = UINT64_MAX - 1;
    must(write(full, &value, 8) == 8);
    int twin = dup(seven), bytes[2], quiet[2], ping[2], pong[2];
    must(!pipe(bytes) && !pipe(quiet) && !pipe(ping) && !pipe(pong));
    must(write(bytes[1], "three", 5) == 5);
    int set = epoll_create1(EPOLL_CLOEXEC), other = epoll_create1(0), empty = epoll_create1(0);
    add(set, bytes[0], EPOLLIN, 0x1111222233334444);
    add(set, quiet[0], EPOLLIN | EPOLLRDHUP, 2);
    add(set, seven, EPOLLIN, 3);
    add(set, twin, EPOLLIN | EPOLLPRI, 4);
    add(set, zero, EPOLLIN, 5);
    add(other, quiet[1], EPOLLOUT | EPOLLONESHOT, 6);
    add(other, bytes[0], EPOLLIN | EPOLLET, 7);
    add(other, set, EPOLLIN, 8); /* a set in a set */
    /* a member whose descriptor is closed while another leads to its file, and whose number another file has */
    int gone = epoll_create1(0), spare[2];
    must(gone >= 0 && !pipe(spare) && write(spare[1], "x", 1) == 1);
    int kept = dup(spare[0]);
    add(gone, spare[0], EPOLLIN, 91);
    must(kept >= 0 && dup2(seven, spare[0]) == spare[0]);
    add(gone, spare[0], EPOLLIN, 92);
    struct epoll_event event[8];
    must(epoll_wait(other, event, 8, 0) == 3); /* the one-shot is now disarmed */
    pid_t child = fork();
    must(child >= 0);
    if (!child) {
        close(ping[1]);
        close(pong[0]);
        int own = epoll_create1(0);
        add(own, ping[0], EPOLLIN, 77);
        for (char byte;;) {
            must(epoll_wait(own, event, 8, -1) == 1 && event[0].data.u64 == 77); /* no EINTR */
            if (read(ping[0], &byte, 1) != 1) _exit(8);
            must(epoll_wait(set, event, 8, 0) == 3);
            must(write(pong[1], &byte, 1) == 1);
        }
    }
    close(ping[0]);
    close(pong[1]);
    /* a file of /proc that tells of a descriptor of this process */
    char telling[64];
    snprintf(telling, sizeof telling, "/proc/self/fdinfo/%d", seven);
    int told = open(telling, O_RDONLY | O_CLOEXEC);
    must(told >= 0);
    while (!stopped()) {
        char start[5] = "";
        must(lseek(told, 0, SEEK_SET) == 0 && read(told, start, 4) == 4 && !strcmp(start, "pos:"));
        check_set("set", set);
        check_set("other", other);
        check_set("empty", empty);
        check_count("zero", zero);
        check_count("seven", seven);
        check_count("twin", twin);
        check_count("many", many);
        check_count("full", full);
        must(epoll_wait(set, event, 8, 0) == 3);
        must(epoll_wait(gone, event, 8, 0) == 2 && event[0].data.u64 + event[1].data.u64 == 183);
        must(epoll_wait(empty, event, 8, 20) == 0);
        must(epoll_wait(set, event, 8, -1) == 3);
        char byte = 'b';
        must(write(ping[1], &byte, 1) == 1 && read(pong[0], &byte, 1) == 1 && byte == 'b');
        value = 5;
        must(write(zero, &value, 8) == 8 && epoll_wait(set, event, 8, 0) == 4);
        must(read(zero, &value, 8) == 8 && value == 5);
        tick();
    }
    must(!epoll_ctl(gone, EPOLL_CTL_DEL, spare[0], NULL));
    must(epoll_wait(gone, event, 8, 0) == 1 && event[0].data.u64 == 91);
    must(dup2(kept, spare[0]) == spare[0] && !epoll_ctl(gone, EPOLL_CTL_DEL, spare[0], NULL));
    must(epoll_wait(gone, event, 8, 0) == 0);
    must(read(twin, &value, 8) == 8 && value == 7);
    must(epoll_wait(set, event, 8, 0) == 1 && event[0].data.u64 == 0x1111222233334444);
    for (int i = 0; i < 3; i++) must(read(many, &value, 8) == 8 && value == 1);
    must(read(many, &value, 8) == -1 && errno == EAGAIN);
    value = 1;
    must(write(full, &value, 8) == -1 && errno == EAGAIN);
    close(ping[1]);
    int status;
    must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 8);
    return done();
}
