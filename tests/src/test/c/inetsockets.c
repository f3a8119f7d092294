/*
 * Internet sockets, both ends in one tree: TCP over IPv4, IPv6 and mapped addresses, with bytes in flight both ways (with
 * the argument "full" more than the receiver has room for), half closed, with an end that is gone, with connections that wait to be accepted, with
 * options; UDP with datagrams that wait; and a child that a byte goes to and fro with all the time.
 */
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

typedef union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} address;

static address at(int family, const char *host, int port) {
    address a;
    memset(&a, 0, sizeof a);
    a.any.sa_family = family;
    if (family == AF_INET) {
        a.v4.sin_port = htons(port);
        must(inet_pton(family, host, &a.v4.sin_addr) == 1);
    } else {
        a.v6.sin6_port = htons(port);
        must(inet_pton(family, host, &a.v6.sin6_addr) == 1);
    }
    return a;
}

static void text_of(char *out, const address *a) {
    char host[64];
    if (a->any.sa_family == AF_INET) inet_ntop(AF_INET, &a->v4.sin_addr, host, sizeof host);
    else inet_ntop(AF_INET6, &a->v6.sin6_addr, host, sizeof host);
    sprintf(out, "%s %d", host, ntohs(a->v4.sin_port));
}

static int integer(int fd, int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    if (getsockopt(fd, level, name, &value, &length)) return -errno;
    return value;
}

/* What the socket tells of itself. */
static void watch(const char *name, int fd) {
    address a;
    char own[100], peer[100] = "nobody", key[64];
    socklen_t length = sizeof a;
    must(!getsockname(fd, &a.any, &length));
    text_of(own, &a);
    length = sizeof a;
    if (!getpeername(fd, &a.any, &length)) text_of(peer, &a);
    int unread = 0;
    if (integer(fd, SOL_SOCKET, SO_ACCEPTCONN) != 1) must(!ioctl(fd, FIONREAD, &unread));
    struct pollfd polled = {fd, POLLIN | POLLRDHUP, 0};
    must(poll(&polled, 1, 0) >= 0);
    struct linger linger = {0, 0};
    length = sizeof linger;
    getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length);
    snprintf(key, sizeof key, "socket %s", name);
    same(key, "%s to %s type %d listens %d reuse %d keepalive %d nodelay %d idle %d linger %d %d v6only %d ttl %d tos %d flags %x %x unread %d poll %x error %d", own, peer,
         integer(fd, SOL_SOCKET, SO_TYPE), integer(fd, SOL_SOCKET, SO_ACCEPTCONN), integer(fd, SOL_SOCKET, SO_REUSEADDR), integer(fd, SOL_SOCKET, SO_KEEPALIVE),
         integer(fd, IPPROTO_TCP, TCP_NODELAY), integer(fd, IPPROTO_TCP, TCP_KEEPIDLE), linger.l_onoff, linger.l_linger, strcmp(peer, "nobody") ? -1 : integer(fd, IPPROTO_IPV6, IPV6_V6ONLY),
         integer(fd, IPPROTO_IP, IP_TTL), integer(fd, IPPROTO_IP, IP_TOS), fcntl(fd, F_GETFL), fcntl(fd, F_GETFD), unread, polled.revents,
         integer(fd, SOL_SOCKET, SO_ERROR));
}

static int listening(address a, int backlog, int reuse) {
    int fd = socket(a.any.sa_family, SOCK_STREAM, 0);
    must(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse));
    must(!bind(fd, &a.any, sizeof a) && !listen(fd, backlog));
    return fd;
}

static int port_of(int fd) {
    address a;
    socklen_t length = sizeof a;
    must(!getsockname(fd, &a.any, &length));
    return ntohs(a.v4.sin_port);
}

static int client(address a) {
    int fd = socket(a.any.sa_family, SOCK_STREAM, 0);
    must(fd >= 0 && !connect(fd, &a.any, sizeof a));
    return fd;
}

static void put(int fd, const char *data) {
    must(send(fd, data, strlen(data), MSG_NOSIGNAL) == (ssize_t)strlen(data));
}

static void expect(int fd, const char *data) {
    char bytes[200];
    ssize_t n = recv(fd, bytes, strlen(data), MSG_WAITALL);
    if (n != (ssize_t)strlen(data) || memcmp(bytes, data, n)) fail("received %zd bytes <%.*s>, not <%s>", n, n > 0 ? (int)n : 0, bytes, data);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    int any = listening(at(AF_INET, "0.0.0.0", 0), 7, 1), port = port_of(any);
    int six = listening(at(AF_INET6, "::", 0), 5, 0), port6 = port_of(six);
    int plain = client(at(AF_INET, "127.0.0.1", port)), served = accept4(any, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int plain6 = client(at(AF_INET6, "::1", port6)), served6 = accept(six, NULL, NULL);
    int mapped = client(at(AF_INET, "127.0.0.1", port6)), served46 = accept(six, NULL, NULL);
    int half = client(at(AF_INET, "127.0.0.1", port)), half_served = accept(any, NULL, NULL);
    int left = client(at(AF_INET, "127.0.0.1", port)), left_served = accept(any, NULL, NULL);
    int full = client(at(AF_INET, "127.0.0.1", port)), full_served = accept(any, NULL, NULL);
    int brief = listening(at(AF_INET, "127.0.0.1", 0), 1, 1), lonely = client(at(AF_INET, "127.0.0.1", port_of(brief))), lonely_served = accept(brief, NULL, NULL);
    close(brief);
    int waiting = client(at(AF_INET, "127.0.0.1", port)), too = client(at(AF_INET, "127.0.0.1", port));
    int fresh = socket(AF_INET, SOCK_STREAM, 0), bound = socket(AF_INET6, SOCK_STREAM, 0);
    int on = 1, seconds = 123;
    struct linger linger = {1, 9};
    must(!setsockopt(plain, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) && !setsockopt(plain, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
    must(!setsockopt(plain, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds) && !setsockopt(served, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    must(!setsockopt(bound, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on));
    address a = at(AF_INET6, "::1", 0);
    must(!bind(bound, &a.any, sizeof a));
    put(plain, "request"), put(served, "answer");
    put(plain6, "six"), put(served46, "mapped");
    put(half, "the last words");
    must(!shutdown(half, SHUT_WR));
    put(left, "a will");
    close(left);
    int beyond = argc > 2 && !strcmp(argv[2], "full");
    must(!fcntl(full, F_SETFL, O_NONBLOCK));
    uint64_t sent = 0;
    while (beyond || sent < 5 * 8192) {
        uint64_t block[1024];
        for (int i = 0; i < 1024; i++) block[i] = mix(sent / 8 + i);
        ssize_t n = send(full, block, sizeof block, MSG_NOSIGNAL);
        if (n < 0) break;
        sent += n;
        if (n % 8) break;
    }
    must(sent > (beyond ? 200000 : 0));

    int receiver = socket(AF_INET, SOCK_DGRAM, 0), sender = socket(AF_INET, SOCK_DGRAM, 0), open_udp = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    a = at(AF_INET, "127.0.0.1", 0);
    must(!bind(receiver, &a.any, sizeof a));
    a = at(AF_INET, "127.0.0.1", port_of(receiver));
    must(!connect(sender, &a.any, sizeof a));
    put(sender, "one"), put(sender, "three");
    must(!setsockopt(open_udp, SOL_SOCKET, SO_BROADCAST, &on, sizeof on));

    pid_t child = fork();
    must(child >= 0);
    int talk = -1;
    if (!child) {
        for (int fd = 3; fd < 100; fd++) close(fd);
        int fd = client(at(AF_INET6, "::1", port6));
        for (unsigned char byte; read(fd, &byte, 1) == 1;) {
            byte++;
            must(write(fd, &byte, 1) == 1);
        }
        _exit(7);
    }
    must((talk = accept(six, NULL, NULL)) >= 0);
    rest(100); /* acknowledgements and FINs have gone by now */

    struct {
        const char *name;
        int fd;
    } all[] = {{"any", any}, {"six", six}, {"plain", plain}, {"served", served}, {"plain6", plain6}, {"served6", served6}, {"mapped", mapped},
               {"served46", served46}, {"half", half}, {"half served", half_served}, {"left served", left_served}, {"lonely", lonely},
               {"lonely served", lonely_served}, {"waiting", waiting}, {"too", too}, {"fresh", fresh}, {"bound", bound}, {"receiver", receiver},
               {"sender", sender}, {"open udp", open_udp}};
    unsigned char round = 0;
    while (!stopped()) {
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) watch(all[i].name, all[i].fd);
        unsigned char byte = round++;
        must(write(talk, &byte, 1) == 1 && read(talk, &byte, 1) == 1 && byte == round);
        put(lonely, "ping"), expect(lonely_served, "ping"), put(lonely_served, "pong"), expect(lonely, "pong");
        tick();
        rest(2);
    }

    /* everything that was in flight is still there, in order */
    expect(plain, "answer");
    expect(served, "request");
    expect(served6, "six"), expect(mapped, "mapped");
    char bytes[100];
    expect(half_served, "the last words");
    must(read(half_served, bytes, 1) == 0);
    put(half_served, "heard"), expect(half, "heard");
    expect(left_served, "a will");
    must(read(left_served, bytes, 1) == 0);
    close(full);
    uint64_t got = 0;
    for (;;) {
        uint64_t block[512];
        ssize_t n = recv(full_served, block, sizeof block, MSG_WAITALL);
        must(n >= 0);
        for (ssize_t i = 0; i < n / 8; i++)
            if (block[i] != mix(got / 8 + i)) fail("byte %llu of the stream is wrong", (unsigned long long)(got + 8 * i));
        got += n;
        if (n < (ssize_t)sizeof block) break;
    }
    if (got != sent) fail("%llu of %llu bytes came", (unsigned long long)got, (unsigned long long)sent);
    address from;
    socklen_t length = sizeof from;
    must(recvfrom(receiver, bytes, 100, 0, &from.any, &length) == 3 && ntohs(from.v4.sin_port) == port_of(sender));
    must(recv(receiver, bytes, 100, 0) == 5);
    int first = accept(any, NULL, NULL), second = accept(any, NULL, NULL);
    must(first >= 0 && second >= 0);
    put(waiting, "w"), put(too, "t"), expect(first, "w"), expect(second, "t");
    int late = client(at(AF_INET, "127.0.0.1", port)), later = accept(any, NULL, NULL);
    put(late, "late"), expect(later, "late");
    close(talk);
    int status;
    must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    return done();
}
