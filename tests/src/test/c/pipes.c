/*
 * Pipes and FIFOs: bytes in flight (few, full, packets, across page borders), changed sizes, ends without a peer, ends
 * held by several processes, O_NONBLOCK and O_DIRECT.
 */
#include "check.h"
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void check_pipe(const char *name, int reader, int writer) {
    int size = fcntl(reader >= 0 ? reader : writer, F_GETPIPE_SZ), bytes = -1;
    ioctl(reader >= 0 ? reader : writer, FIONREAD, &bytes);
    char key[64];
    snprintf(key, sizeof key, "pipe %s", name);
    struct pollfd polled[2] = {{reader, POLLIN, 0}, {writer, POLLOUT, 0}};
    must(poll(polled, 2, 0) >= 0);
    same(key, "size %d, bytes %d, reader %x %x, writer %x %x, events %x %x", size, bytes, reader < 0 ? 0 : fcntl(reader, F_GETFL),
         reader < 0 ? 0 : fcntl(reader, F_GETFD), writer < 0 ? 0 : fcntl(writer, F_GETFL),
         writer < 0 ? 0 : fcntl(writer, F_GETFD), polled[0].revents, polled[1].revents);
}

static long filled(int fd, uint64_t seed) {
    unsigned char byte;
    long n = 0;
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    static unsigned char block[4096];
    for (;;) {
        for (int i = 0; i < 4096; i++) block[i] = mix(seed + n + i);
        ssize_t k = write(fd, block, sizeof block);
        if (k < 0) break;
        n += k;
    }
    for (;; n++) {
        byte = mix(seed + n);
        if (write(fd, &byte, 1) != 1) break;
    }
    must(errno == EAGAIN);
    fcntl(fd, F_SETFL, flags);
    return n;
}

static void drained(const char *name, int fd, uint64_t seed, long count) {
    unsigned char byte;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (long i = 0; i < count; i++) {
        if (read(fd, &byte, 1) != 1) fail("pipe %s: only %ld of %ld bytes", name, i, count);
        if (byte != (unsigned char)mix(seed + i)) fail("pipe %s: byte %ld is wrong", name, i);
    }
    if (read(fd, &byte, 1) == 1) fail("pipe %s: there are more than %ld bytes", name, count);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    int empty[2], few[2], full[2], small[2], large[2], packets[2], nonblocking[2], no_writer[2], no_reader[2], odd[2], fifo_path_ok, through[2], back[2];
    must(!pipe(empty) && !pipe(few) && !pipe(full) && !pipe2(small, O_CLOEXEC) && !pipe(large) && !pipe2(packets, O_DIRECT) &&
         !pipe2(nonblocking, O_NONBLOCK) && !pipe(no_writer) && !pipe(no_reader) && !pipe(odd) && !pipe(through) && !pipe(back));
    must(write(few[1], "hello", 5) == 5);
    long full_bytes = filled(full[1], 1);
    must(fcntl(small[1], F_SETPIPE_SZ, 4096) == 4096);
    long small_bytes = filled(small[1], 2);
    must(fcntl(large[1], F_SETPIPE_SZ, 1 << 20) == 1 << 20);
    long large_bytes = filled(large[1], 3);
    must(write(packets[1], "first", 5) == 5 && write(packets[1], "second packet", 13) == 13 && write(packets[1], "3", 1) == 1);
    must(write(no_writer[1], "last words", 10) == 10);
    close(no_writer[1]);
    close(no_reader[0]);
    /* many short buffers, each in a page of its own */
    for (int i = 0; i < 10; i++) {
        char block[4096];
        memset(block, 'a' + i, sizeof block);
        must(write(odd[1], block, 4000) == 4000);
        must(read(odd[0], block, 1000) == 1000);
    }
    char path[4200];
    snprintf(path, sizeof path, "%s.fifo", argv[1]);
    must(!mkfifo(path, 0622));
    int fifo_reader = open(path, O_RDONLY | O_NONBLOCK), fifo_writer = open(path, O_WRONLY), fifo_both = open(path, O_RDWR);
    fifo_path_ok = fifo_reader >= 0 && fifo_writer >= 0 && fifo_both >= 0;
    must(fifo_path_ok);
    must(write(fifo_writer, "through a FIFO", 14) == 14);
    /* The read end again, by way of /proc: another description of the same pipe. */
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", few[0]);
    int reopened = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    must(reopened >= 0);

    pid_t child = fork();
    must(child >= 0);
    if (!child) { /* echoes; it holds one end of each pipe too */
        close(through[1]);
        close(back[0]);
        close(few[1]);
        close(fifo_reader);
        char block[512];
        for (ssize_t n; (n = read(through[0], block, sizeof block)) > 0;) must(write(back[1], block, n) == n);
        must(write(fifo_writer, "; and more", 10) == 10);
        _exit(4);
    }
    close(through[0]);
    close(back[1]);
    while (!stopped()) {
        check_pipe("empty", empty[0], empty[1]);
        check_pipe("few", few[0], few[1]);
        check_pipe("reopened", reopened, -1);
        check_pipe("full", full[0], full[1]);
        check_pipe("small", small[0], small[1]);
        check_pipe("large", large[0], large[1]);
        check_pipe("packets", packets[0], packets[1]);
        check_pipe("nonblocking", nonblocking[0], nonblocking[1]);
        check_pipe("without a writer", no_writer[0], -1);
        check_pipe("without a reader", -1, no_reader[1]);
        check_pipe("odd", odd[0], odd[1]);
        check_pipe("FIFO", fifo_reader, fifo_writer);
        check_pipe("FIFO both", fifo_both, fifo_both);
        must(write(no_reader[1], "x", 1) == -1 && errno == EPIPE);
        char text[64], answer[64] = "";
        int n = sprintf(text, "message %ld", check_ticks);
        must(write(through[1], text, n) == n);
        must(read(back[0], answer, n) == n && !strcmp(text, answer));
        tick();
        rest(2);
    }
    char block[4096] = "";
    must(read(reopened, block, 2) == 2 && !memcmp(block, "he", 2));
    must(read(few[0], block, 100) == 3 && !memcmp(block, "llo", 3));
    drained("full", full[0], 1, full_bytes);
    drained("small", small[0], 2, small_bytes);
    drained("large", large[0], 3, large_bytes);
    must(read(packets[0], block, 100) == 5 && !memcmp(block, "first", 5));
    must(read(packets[0], block, 100) == 13 && !memcmp(block, "second packet", 13));
    must(read(packets[0], block, 100) == 1 && *block == '3');
    must(read(no_writer[0], block, 100) == 10 && !memcmp(block, "last words", 10) && read(no_writer[0], block, 1) == 0);
    must(fcntl(nonblocking[0], F_GETFL) & O_NONBLOCK);
    must(read(nonblocking[0], block, 1) == -1 && errno == EAGAIN);
    long total = 0;
    close(odd[1]);
    must(read(fifo_reader, block, 100) == 14 && !memcmp(block, "through a FIFO", 14));
    close(through[1]);
    int status;
    must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 4);
    for (ssize_t n; (n = read(odd[0], block, sizeof block)) > 0; total += n)
        for (ssize_t i = 0; i < n; i++) must(block[i] == (char)('a' + (total + i + 10000) / 4000));
    if (total != 30000) fail("the odd pipe gave %ld bytes", total);
    must(read(fifo_reader, block, 100) == 10 && !memcmp(block, "; and more", 10));
    must(!unlink(path));
    return done();
}
