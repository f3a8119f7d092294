/*
 * Unix sockets of every sort, between a parent and a child and within one process: pairs with bytes in flight both ways,
 * messages of their own length, descriptors on their way, names that are paths, relative, abstract, given by the kernel,
 * removed; listening sockets with connections that wait; ends that are shut or closed.
 */
#include "check.h"
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static char base[3000];

static socklen_t address(struct sockaddr_un *a, const char *name, int abstract) {
    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    strcpy(a->sun_path + abstract, name);
    return offsetof(struct sockaddr_un, sun_path) + abstract + strlen(name) + !abstract;
}

static void text_of(char *out, const struct sockaddr_un *a, socklen_t length) {
    int n = (int)length - (int)offsetof(struct sockaddr_un, sun_path);
    if (n <= 0) strcpy(out, "(none)");
    else {
        memcpy(out, a->sun_path, n);
        out[n] = 0;
        if (!out[0]) out[0] = '@';
    }
}

/* What the socket tells of itself. */
static void watch(const char *name, int fd) {
    struct sockaddr_un a;
    char own[200], peer[200], key[64];
    socklen_t length = sizeof a;
    must(!getsockname(fd, (void *)&a, &length));
    text_of(own, &a, length);
    length = sizeof a;
    if (getpeername(fd, (void *)&a, &length)) snprintf(peer, sizeof peer, "error %d", errno);
    else text_of(peer, &a, length);
    int type, buffer, passcred, listens, unread = 0;
    struct timeval timeout;
    length = sizeof type;
    must(!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length));
    must(!getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, &length));
    must(!getsockopt(fd, SOL_SOCKET, SO_PASSCRED, &passcred, &length));
    must(!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length));
    length = sizeof timeout;
    must(!getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, &length));
    ioctl(fd, FIONREAD, &unread);
    struct pollfd polled = {fd, POLLIN | POLLRDHUP, 0};
    must(poll(&polled, 1, 0) >= 0);
    snprintf(key, sizeof key, "socket %s", name);
    same(key, "%s to %s type %d sndbuf %d passcred %d listens %d timeout %ld flags %x %x unread %d poll %x", own, peer, type, buffer, passcred, listens,
         (long)timeout.tv_sec, fcntl(fd, F_GETFL), fcntl(fd, F_GETFD), unread, polled.revents);
}

static void send_descriptors(int socket, const char *data, int a, int b) {
    struct iovec vector = {(void *)data, strlen(data)};
    union {
        char bytes[CMSG_SPACE(8)];
        struct cmsghdr align;
    } control;
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(8);
    memcpy(CMSG_DATA(c), (int[]){a, b}, 8);
    must(sendmsg(socket, &message, 0) == (ssize_t)strlen(data));
}

/* Receives `data` and two descriptors. */
static void receive_descriptors(int socket, const char *data, int *a, int *b) {
    char bytes[100];
    struct iovec vector = {bytes, sizeof bytes};
    union {
        char bytes[CMSG_SPACE(8)];
        struct cmsghdr align;
    } control;
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (n != (ssize_t)strlen(data) || memcmp(bytes, data, n)) fail("received %zd bytes <%.*s> with %zu bytes of descriptors, not <%s>", n, n > 0 ? (int)n : 0, bytes, (size_t)message.msg_controllen, data);
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    must(c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(8));
    memcpy(a, CMSG_DATA(c), 4);
    memcpy(b, CMSG_DATA(c) + 4, 4);
}

static int named(int type, const char *name, int abstract, int backlog) {
    struct sockaddr_un a;
    int fd = socket(AF_UNIX, type, 0);
    must(fd >= 0);
    socklen_t length = address(&a, name, abstract);
    must(!bind(fd, (void *)&a, length));
    if (backlog >= 0) must(!listen(fd, backlog));
    return fd;
}

static int client(int type, const char *name, int abstract) {
    struct sockaddr_un a;
    int fd = socket(AF_UNIX, type, 0);
    socklen_t length = address(&a, name, abstract);
    must(fd >= 0 && !connect(fd, (void *)&a, length));
    return fd;
}

static void expect(int fd, const char *data) {
    char bytes[200];
    ssize_t n = recv(fd, bytes, strlen(data), MSG_WAITALL);
    if (n != (ssize_t)strlen(data) || memcmp(bytes, data, n)) fail("received %zd bytes <%.*s>, not <%s>", n, n > 0 ? (int)n : 0, bytes, data);
}

static void put(int fd, const char *data) {
    must(send(fd, data, strlen(data), MSG_NOSIGNAL) == (ssize_t)strlen(data));
}

int main(int argc, char **argv) {
    begin(argc, argv);
    char path[3100], other[3100], abstract[100];
    /* names of sockets are short: work in the directory of the progress file */
    snprintf(base, sizeof base, "%s", argv[1]);
    *strrchr(base, '/') = 0;
    must(strlen(base) < 90);
    snprintf(path, sizeof path, "%s/s%d", base, getpid() % 1000);
    snprintf(other, sizeof other, "%s/d%d", base, getpid() % 1000);
    snprintf(abstract, sizeof abstract, "stasis-test-%d", getpid());

    /* pairs */
    int stream[2], packets[2], datagrams[2], half[2], ended[2], carrier[2];
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
    must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, packets));
    must(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, datagrams));
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, half));
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ended));
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, carrier));
    put(stream[0], "from zero");
    put(stream[1], "from one");
    put(packets[0], "a"), put(packets[0], "packet"), put(packets[0], "of three");
    put(datagrams[1], "two"), put(datagrams[1], "datagrams");
    put(half[0], "the last words"); must(!shutdown(half[0], SHUT_WR));
    put(ended[0], "a will"), close(ended[0]);
    int on = 1, size = 100000;
    must(!setsockopt(stream[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
    struct timeval timeout = {77, 0};
    must(!setsockopt(stream[1], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout));

    /* descriptors on their way: a pipe whose ends nobody else holds, and a socket */
    int pipes[2], travelling[2];
    must(!pipe(pipes) && !socketpair(AF_UNIX, SOCK_STREAM, 0, travelling));
    must(write(pipes[1], "in the pipe", 11) == 11);
    put(travelling[1], "in the socket");
    send_descriptors(carrier[0], "rights", pipes[0], travelling[0]);
    put(carrier[0], " tail");
    close(pipes[0]), close(pipes[1]), close(travelling[0]);

    /* names */
    int listener = named(SOCK_STREAM, path, 0, 5), hidden = named(SOCK_SEQPACKET, abstract, 1, 3);
    must(!chmod(path, 0640));
    must(!chdir(base));
    int relative = named(SOCK_STREAM, "rel", 0, 2);
    must(!unlink("rel"));
    int receiver = named(SOCK_DGRAM, other, 0, -1);
    must(!setsockopt(receiver, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    int automatic = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr_un a;
    must(!bind(automatic, &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t)));
    int sender = client(SOCK_DGRAM, other, 0), fresh = socket(AF_UNIX, SOCK_STREAM, 0);
    put(sender, "nameless");
    socklen_t length = address(&a, other, 0);
    must(sendto(automatic, "named", 5, 0, (void *)&a, length) == 5);
    int plain = client(SOCK_STREAM, path, 0), served = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int shout = client(SOCK_SEQPACKET, abstract, 1), heard = accept(hidden, NULL, NULL);
    must(served >= 0 && heard >= 0);
    put(plain, "request"), put(served, "answer"), put(shout, "one"), put(shout, "two");
    int waiting = client(SOCK_STREAM, path, 0), too = client(SOCK_STREAM, path, 0);
    /* one whose listening socket is closed */
    char gone[120];
    snprintf(gone, sizeof gone, "%s-gone", abstract);
    int brief = named(SOCK_STREAM, gone, 1, 1), left = client(SOCK_STREAM, gone, 1), right = accept(brief, NULL, NULL);
    must(right >= 0 && !close(brief));

    /* a child at the other end, which answers every byte */
    int talk[2];
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, talk));
    pid_t child = fork();
    must(child >= 0);
    if (!child) {
        close(talk[0]);
        for (unsigned char byte; read(talk[1], &byte, 1) == 1;) {
            byte++;
            must(write(talk[1], &byte, 1) == 1);
        }
        _exit(7);
    }
    close(talk[1]);

    struct {
        const char *name;
        int fd;
    } all[] = {{"stream 0", stream[0]}, {"stream 1", stream[1]}, {"packets 0", packets[0]}, {"packets 1", packets[1]}, {"datagrams 0", datagrams[0]},
               {"datagrams 1", datagrams[1]}, {"half 0", half[0]}, {"half 1", half[1]}, {"ended", ended[1]}, {"carrier", carrier[1]}, {"listener", listener},
               {"hidden", hidden}, {"relative", relative}, {"receiver", receiver}, {"automatic", automatic}, {"sender", sender}, {"fresh", fresh},
               {"plain", plain}, {"served", served}, {"shout", shout}, {"heard", heard}, {"waiting", waiting}, {"too", too}, {"left", left}, {"right", right}};
    unsigned char round = 0;
    while (!stopped()) {
        struct stat st;
        must(!stat(path, &st));
        same("mode of the listener", "%o %d", st.st_mode, st.st_uid);
        must(access("rel", F_OK));
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) watch(all[i].name, all[i].fd);
        unsigned char byte = round++;
        must(write(talk[0], &byte, 1) == 1 && read(talk[0], &byte, 1) == 1 && byte == round);
        char dots[] = ".....";
        put(left, dots), expect(right, dots), put(right, dots), expect(left, dots);
        tick();
        rest(2);
    }

    /* everything that was in flight is still there, in order */
    expect(stream[1], "from zero"), expect(stream[0], "from one");
    char bytes[100];
    must(recv(packets[1], bytes, 100, 0) == 1 && recv(packets[1], bytes, 100, 0) == 6 && recv(packets[1], bytes, 100, 0) == 8);
    must(recv(datagrams[0], bytes, 100, 0) == 3 && recv(datagrams[0], bytes, 100, 0) == 9);
    must(recv(datagrams[0], bytes, 100, 0) == -1 && errno == EAGAIN);
    expect(half[1], "the last words");
    must(read(half[1], bytes, 1) == 0);
    put(half[1], "heard"), expect(half[0], "heard");
    expect(ended[1], "a will");
    must(read(ended[1], bytes, 1) == 0 && send(ended[1], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    int got_pipe, got_socket;
    receive_descriptors(carrier[1], "rights", &got_pipe, &got_socket);
    expect(carrier[1], " tail");
    must(read(got_pipe, bytes, 100) == 11 && !memcmp(bytes, "in the pipe", 11) && read(got_pipe, bytes, 1) == 0);
    expect(got_socket, "in the socket");
    put(got_socket, "back"), expect(travelling[1], "back");
    must(recv(receiver, bytes, 100, 0) == 8);
    length = sizeof a;
    must(recvfrom(receiver, bytes, 100, 0, (void *)&a, &length) == 5 && length == offsetof(struct sockaddr_un, sun_path) + 6);
    must(sendto(automatic, "self", 4, 0, (void *)&a, length) == 4 && recv(automatic, bytes, 100, 0) == 4);
    expect(served, "request"), expect(plain, "answer");
    must(recv(heard, bytes, 100, 0) == 3 && recv(heard, bytes, 100, 0) == 3);
    int first = accept(listener, NULL, NULL), second = accept(listener, NULL, NULL);
    must(first >= 0 && second >= 0);
    put(waiting, "w"), put(too, "t"), expect(first, "w"), expect(second, "t");
    int late = client(SOCK_STREAM, path, 0), later = accept(listener, NULL, NULL);
    put(late, "late"), expect(later, "late");
    close(talk[0]);
    int status;
    must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    unlink(path), unlink(other);
    return done();
}
