/*
 * System V shared memory: attached once, twice, read-only, in part, in two processes; with a key and a name in sysvipc,
 * removed and living on in its mappings, nearly all hole. Ids stay what they were.
 */
#include "check.h"
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>

enum { PAGE = 4096, PAGES = 8 };
#define LARGE (64ul << 20)

struct words {
    volatile long parent, child;
    uint64_t pattern[(PAGES * PAGE - 16) / 8];
};

static void check_segment(const char *name, int id) {
    struct shmid_ds s;
    if (shmctl(id, IPC_STAT, &s)) fail("%s: no segment %d: %s", name, id, strerror(errno));
    same(name, "id %d key %x owner %d:%d mode %o size %zu attached %lu", id, s.shm_perm.__key, s.shm_perm.uid, s.shm_perm.gid, s.shm_perm.mode,
         s.shm_segsz, s.shm_nattch);
}

static void *attach(int id, int flags) {
    void *p = shmat(id, NULL, flags);
    must(p != (void *)-1);
    return p;
}

static void turn(const char *what, struct words *words, int parent, long round, uint64_t seed) {
    verify(what, words->pattern, sizeof words->pattern, seed);
    if (words->parent != round - parent || words->child != round - 1) fail("%s: %ld and %ld in round %ld", what, words->parent, words->child, round);
    *(parent ? &words->parent : &words->child) = round;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    key_t key = 0x57a50000 | (getpid() & 0xffff);
    int named = shmget(key, sizeof(struct words), IPC_CREAT | IPC_EXCL | 0640);
    int removed = shmget(IPC_PRIVATE, sizeof(struct words), 0600), sparse = shmget(IPC_PRIVATE, LARGE + 5, 0600);
    must(named >= 0 && removed >= 0 && sparse >= 0);
    struct words *named_words = attach(named, 0), *reader = attach(named, SHM_RDONLY), *twice = attach(named, 0);
    must(mprotect(reader, PAGE, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
    struct words *removed_words = attach(removed, 0);
    char *part = attach(removed, 0), *hole = attach(sparse, 0);
    must(!munmap(part, 2 * PAGE) && !munmap(part + 5 * PAGE, PAGE) && !mprotect(part + 3 * PAGE, PAGE, PROT_READ));
    must(!shmctl(removed, IPC_RMID, NULL) && !shmctl(sparse, IPC_RMID, NULL));
    fill(named_words->pattern, sizeof named_words->pattern, 1);
    fill(removed_words->pattern, sizeof removed_words->pattern, 2);
    hole[LARGE / 2] = 'm', hole[LARGE + 4] = 'e';
    struct {
        volatile long asked, answered;
    } *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    must(child >= 0);
    if (!child) {
        must(!shmdt(reader) && !shmdt(hole));
        while (shared->asked >= 0) {
            if (shared->asked == shared->answered) {
                rest(1);
                continue;
            }
            long round = shared->asked;
            turn("segment", named_words, 0, round, 1);
            turn("removed segment", removed_words, 0, round, 2);
            check_segment("child: segment", named);
            shared->answered = round;
        }
        must(!shmdt(named_words) && !shmdt(twice) && !shmdt(removed_words) && !shmdt(part));
        _exit(7);
    }
    long round = 0;
    while (!stopped()) {
        round++;
        turn("segment", named_words, 1, round, 1);
        turn("removed segment", removed_words, 1, round, 2);
        shared->asked = round;
        while (shared->answered != round) {
            int status;
            if (waitpid(child, &status, WNOHANG)) fail("the child ended with wait status %x", status);
            rest(1);
        }
        must(reader->child == round && twice->child == round && removed_words->child == round);
        verify("part of a segment", part + 2 * PAGE, 3 * PAGE, 2 + (2 * PAGE - 16) / 8);
        must(hole[LARGE / 2] == 'm' && hole[LARGE + 4] == 'e' && !hole[LARGE / 4]);
        must(shmget(key, 0, 0) == named);
        if (round > 1) check_segment("segment", named), check_segment("removed", removed), check_segment("sparse", sparse); /* the child is there */
        must(mprotect(reader, PAGE, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
        tick();
    }
    shared->asked = -1;
    int status;
    must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    struct shmid_ds s;
    must(!shmdt(twice) && !shmdt(reader) && !shmctl(named, IPC_STAT, &s) && s.shm_nattch == 1);
    must(!shmdt(part) && !shmctl(removed, IPC_STAT, &s) && s.shm_nattch == 1);
    must(!shmdt(removed_words) && shmctl(removed, IPC_STAT, &s) == -1);
    must(!shmctl(named, IPC_RMID, NULL) && !shmdt(named_words) && !shmdt(hole));
    return done();
}
