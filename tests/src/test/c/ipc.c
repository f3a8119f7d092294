/*
 * System V semaphores and message queues: values, messages of several types in their order, ids, keys, owners, permissions, limits and
 * who used them last; two processes that take turns and wait in semop(2) and msgrcv(2).
 */
#include "check.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/wait.h>

enum { SEMAPHORES = 6, TO_CHILD = 0, TO_PARENT = 1, LONGEST = 4000 };

struct message {
    long type;
    char text[LONGEST];
};

static void check_set(const char *name, int id) {
    struct semid_ds s;
    if (semctl(id, 0, IPC_STAT, &s)) fail("%s: no semaphore set %d: %s", name, id, strerror(errno));
    same(name, "id %d key %x owner %d:%d mode %o semaphores %lu used %d", id, s.sem_perm.__key, s.sem_perm.uid, s.sem_perm.gid,
         s.sem_perm.mode, s.sem_nsems, s.sem_otime != 0);
}

static void check_queue(const char *name, int id) {
    struct msqid_ds s;
    if (msgctl(id, IPC_STAT, &s)) fail("%s: no queue %d: %s", name, id, strerror(errno));
    same(name, "id %d key %x owner %d:%d mode %o bytes %lu messages %lu limit %lu sender %d receiver %d used %d %d", id, s.msg_perm.__key,
         s.msg_perm.uid, s.msg_perm.gid, s.msg_perm.mode, s.__msg_cbytes, s.msg_qnum, s.msg_qbytes, s.msg_lspid, s.msg_lrpid,
         s.msg_stime != 0, s.msg_rtime != 0);
}

static void change(int set, int number, int by) {
    struct sembuf operation = {number, by, 0};
    must(!semop(set, &operation, 1));
}

static void send(int queue, long type, size_t length, uint64_t seed) {
    struct message m = {.type = type};
    fill(m.text, length, seed);
    memset(m.text + length / 8 * 8, 'e', length % 8);
    must(!msgsnd(queue, &m, length, 0));
}

static void receive(int queue, long wanted, long type, size_t length, uint64_t seed) {
    struct message m;
    ssize_t n = msgrcv(queue, &m, sizeof m.text, wanted, 0);
    if (n != (ssize_t)length || m.type != type) fail("message of %zd bytes and type %ld, not %zu and %ld", n, m.type, length, type);
    verify("message", m.text, length, seed);
    for (size_t i = length / 8 * 8; i < length; i++) must(m.text[i] == 'e');
}

int main(int argc, char **argv) {
    begin(argc, argv);
    key_t key = 0x57a60000 | (getpid() & 0xffff);
    int set = semget(key, SEMAPHORES, IPC_CREAT | IPC_EXCL | 0640), private_set = semget(IPC_PRIVATE, 1, 0600);
    int work = msgget(IPC_PRIVATE, 0600), store = msgget(key, IPC_CREAT | IPC_EXCL | 0620), emptied = msgget(IPC_PRIVATE, 0600);
    must(set >= 0 && private_set >= 0 && work >= 0 && store >= 0 && emptied >= 0);
    must(!semctl(set, 3, SETVAL, 32767) && !semctl(private_set, 0, SETVAL, 5));
    change(set, 4, 17);
    pid_t child = fork();
    must(child >= 0);
    if (!child) {
        change(set, 5, 1);
        send(store, 7, 10, 1);
        send(emptied, 1, 0, 0);
        for (;;) {
            change(set, TO_CHILD, -1);
            struct message m;
            must(msgrcv(work, &m, sizeof m.text, 0, 0) == 8 && m.type == 3);
            if (m.text[0] == 'q') break;
            change(set, TO_PARENT, 1);
        }
        struct message m;
        must(msgrcv(work, &m, sizeof m.text, -9, 0) == 4 && m.type == 5);
        _exit(7);
    }
    receive(emptied, 0, 1, 0, 0);
    receive(store, 0, 7, 10, 1);
    send(store, 2, LONGEST, 2);
    send(store, 1L << 40, 1, 3);
    send(store, 2, 0, 4);
    send(store, 1, 77, 5);
    struct msqid_ds limits;
    must(!msgctl(store, IPC_STAT, &limits));
    limits.msg_qbytes = 1000; /* less than it holds */
    must(!msgctl(store, IPC_SET, &limits));
    while (!stopped()) {
        check_set("set", set);
        check_set("private set", private_set);
        check_queue("store", store);
        check_queue("emptied queue", emptied);
        for (int i = 2; i < SEMAPHORES; i++) {
            char name[32];
            sprintf(name, "semaphore %d", i);
            same(name, "%d by %d", semctl(set, i, GETVAL), semctl(set, i, GETPID));
        }
        same("private semaphore", "%d by %d", semctl(private_set, 0, GETVAL), semctl(private_set, 0, GETPID));
        struct message m = {.type = 3, .text = "go"};
        must(!msgsnd(work, &m, 8, 0));
        change(set, TO_CHILD, 1);
        change(set, TO_PARENT, -1);
        must(msgget(key, 0) == store && semget(key, 0, 0) == set);
        tick();
        rest(2);
    }
    struct message m = {.type = 3, .text = "quit"};
    must(!msgsnd(work, &m, 8, 0));
    change(set, TO_CHILD, 1);
    m.type = 5;
    must(!msgsnd(work, &m, 4, 0));
    int status;
    must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    receive(store, 1, 1, 77, 5);
    receive(store, 0, 2, LONGEST, 2);
    receive(store, 0, 1L << 40, 1, 3);
    receive(store, 0, 2, 0, 4);
    must(msgrcv(store, &m, sizeof m.text, 0, IPC_NOWAIT) == -1 && errno == ENOMSG);
    must(!semctl(set, 0, IPC_RMID) && !semctl(private_set, 0, IPC_RMID));
    must(!msgctl(work, IPC_RMID, NULL) && !msgctl(store, IPC_RMID, NULL) && !msgctl(emptied, IPC_RMID, NULL));
    return done();
}
