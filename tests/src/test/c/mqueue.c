/*
 * POSIX message queues: with a name, one whose name was removed, descriptors of all modes, limits, permissions, and a child that waits in
 * mq_receive(3) and answers; non-blocking and offset-less as ever. Link with -lrt on old systems.
 */
#include "check.h"
#include <mqueue.h>
#include <sys/wait.h>

static void check_queue(const char *name, mqd_t queue) {
    struct mq_attr a;
    struct stat s;
    must(!mq_getattr(queue, &a) && !fstat(queue, &s));
    same(name, "flags %lx and %x, limits %ld of %ld bytes, holds %ld, mode %o owner %d:%d links %ld", a.mq_flags, fcntl(queue, F_GETFL),
         a.mq_maxmsg, a.mq_msgsize, a.mq_curmsgs, s.st_mode, s.st_uid, s.st_gid, (long)s.st_nlink);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    char name[64], removed[64];
    snprintf(name, sizeof name, "/check-%d", (int)getpid());
    snprintf(removed, sizeof removed, "/check removed-%d", (int)getpid());
    struct mq_attr small = {.mq_maxmsg = 3, .mq_msgsize = 65}, other = {.mq_maxmsg = 10, .mq_msgsize = 8000};
    mqd_t to_child = mq_open(name, O_WRONLY | O_CREAT | O_EXCL, 0640, &small), in = mq_open(name, O_RDONLY);
    mqd_t back = mq_open(removed, O_RDWR | O_CREAT | O_EXCL, 0600, &other), eager = mq_open(removed, O_RDWR | O_NONBLOCK);
    must(to_child >= 0 && in >= 0 && back >= 0 && eager >= 0 && !mq_unlink(removed));
    pid_t child = fork();
    must(child >= 0);
    char text[8000];
    unsigned priority;
    if (!child) {
        must(!mq_close(to_child));
        while (mq_receive(in, text, sizeof text, &priority) == 5) must(!mq_send(back, text, 7, priority + 1));
        _exit(7);
    }
    unsigned round = 0;
    while (!stopped()) {
        check_queue("sending end", to_child);
        check_queue("receiving end", in);
        check_queue("removed queue", back);
        check_queue("removed queue, not blocking", eager);
        must(mq_receive(eager, text, sizeof text, NULL) == -1 && errno == EAGAIN);
        must(mq_receive(to_child, text, sizeof text, NULL) == -1 && errno == EBADF);
        must(mq_send(to_child, text, 66, 0) == -1 && errno == EMSGSIZE);
        snprintf(text, sizeof text, "%04u", ++round % 10000);
        must(!mq_send(to_child, text, 5, round % 100));
        must(mq_receive(back, text, sizeof text, &priority) == 7 && priority == round % 100 + 1 && (unsigned)atoi(text) == round % 10000);
        mqd_t again = mq_open(name, O_RDONLY);
        must(again >= 0 && !mq_close(again));
        tick();
        rest(2);
    }
    must(!mq_send(to_child, "", 1, 0));
    int status;
    must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    must(!mq_unlink(name));
    return done();
}
