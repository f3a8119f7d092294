/*
 * A ring of processes, each joined to the next by a pipe. Process i writes stream i and reads stream i-1; the pipes are
 * kept full, and every process checks every byte it receives, so that a lost, doubled or altered byte in flight is
 * found at once. A token goes round through a second ring and makes the ticks: all processes must be alive for a tick.
 *
 * usage: ring PROGRESS [PROCESSES]
 */
#include "check.h"
#include <signal.h>
#include <sys/wait.h>

static int count = 50;
static int stream[512][2], token[512][2];

static inline unsigned char byte_of(int id, uint64_t offset) {
    return (unsigned char)(mix(((uint64_t)id << 40) + (offset >> 3)) >> ((offset & 7) * 8));
}

static uint64_t sent, received;
static unsigned char buffer[4096];

static void receive(int id, int in, int before, size_t most) {
    ssize_t k = read(in, buffer, most);
    must(k >= 0 || errno == EAGAIN);
    for (ssize_t i = 0; i < k; i++)
        if (buffer[i] != byte_of(before, received + i))
            fail("node %d: byte %llu of stream %d is %02x, not %02x", id, (unsigned long long)(received + i), before, buffer[i],
                 byte_of(before, received + i));
    if (k > 0) received += k;
}

static void transmit(int id, int out) {
    for (;;) {
        for (int i = 0; i < 2999; i++) buffer[i] = byte_of(id, sent + i);
        ssize_t k = write(out, buffer, 2999);
        must(k > 0 || errno == EAGAIN);
        if (k < 0) return;
        sent += k;
    }
}

static void node(int id) {
    int before = (id + count - 1) % count, in = stream[before][0], out = stream[id][1];
    int token_in = token[before][0], token_out = token[id][1];
    for (int i = 0; i < count; i++) {
        if (i != before) close(stream[i][0]), close(token[i][0]);
        if (i != id) close(stream[i][1]), close(token[i][1]);
    }
    must(!fcntl(in, F_SETFL, O_NONBLOCK) && !fcntl(out, F_SETFL, O_NONBLOCK));
    long value = 1, idle = 0;
    if (id == 0) must(write(token_out, &value, sizeof value) == sizeof value);
    for (;;) {
        transmit(id, out); /* the pipe is now full */
        uint64_t so_far = received;
        if (read(token_in, &value, sizeof value) != sizeof value) fail("node %d: the token ring broke", id);
        if (id == 0) {
            if (value == -1) break;
            if (value != check_ticks + 1) fail("the token is %ld, not %ld", value, check_ticks + 1);
            tick();
            value = stopped() ? -1 : value + 1;
            rest(2);
        }
        receive(id, in, before, 1 + mix(received) % 3000);
        idle = received == so_far ? idle + 1 : 0;
        if (idle > 100) fail("node %d: no byte came in %ld rounds", id, idle);
        must(write(token_out, &value, sizeof value) == sizeof value);
        if (value == -1 && id) break;
    }
    close(out);
    must(!fcntl(in, F_SETFL, 0));
    for (uint64_t so_far = received - 1; so_far != received;) {
        so_far = received;
        receive(id, in, before, sizeof buffer);
    }
}

int main(int argc, char **argv) {
    begin(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    if (argc > 2) count = atoi(argv[2]);
    for (int i = 0; i < count; i++) {
        must(!pipe(stream[i]) && !pipe(token[i]));
        must(fcntl(stream[i][1], F_SETPIPE_SZ, 4096 << (i % 3)) > 0);
    }
    pid_t child[512];
    for (int i = 1; i < count; i++) {
        must((child[i] = fork()) >= 0);
        if (!child[i]) {
            node(i);
            _exit(i % 100);
        }
    }
    node(0);
    for (int i = 1; i < count; i++) {
        int status;
        must(waitpid(child[i], &status, 0) == child[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != i % 100) fail("node %d ended with wait status %x", i, status);
    }
    return done();
}
