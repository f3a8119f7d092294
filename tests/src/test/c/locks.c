/*
 * Locks on files: a process's own, those of a description, of flock, leases, on a deleted file; held by parent and child,
 * tried by a second child, which sees the same holders every time, and waited for by a third.
 */
#include "check.h"
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>

static char base[4000];

static int open_file(const char *name, int flags) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%s", base, name);
    int fd = open(path, flags, 0600);
    must(fd >= 0);
    return fd;
}

static int lock(int fd, int command, int type, off_t start, off_t length) {
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    return fcntl(fd, command, &l);
}

/* Who stands in the way of a write lock on a byte. */
static void check_holder(const char *name, int fd, off_t at) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    must(!fcntl(fd, F_GETLK, &l));
    char key[100];
    snprintf(key, sizeof key, "%s at %ld", name, (long)at);
    same(key, "type %d from %ld length %ld pid %d", l.l_type, (long)l.l_start, (long)l.l_len, l.l_type == F_UNLCK ? 0 : l.l_pid);
}

static void watch(volatile long *asked, volatile long *answered, const char *deleted) {
    int posix = open_file("posix", O_RDWR), ofd = open_file("ofd", O_RDWR), whole = open_file("flock", O_RDWR), shared = open_file("shared", O_RDWR);
    int gone = open(deleted, O_RDWR);
    must(gone >= 0);
    while (*asked >= 0) {
        if (*asked == *answered) {
            rest(1);
            continue;
        }
        off_t places[] = {0, 99, 100, 150, 199, 200, 1l << 50};
        for (int i = 0; i < 7; i++) check_holder("posix", posix, places[i]);
        check_holder("ofd", ofd, 5), check_holder("ofd", ofd, 25), check_holder("ofd", ofd, 50), check_holder("deleted", gone, 3), check_holder("deleted", gone, 7);
        must(lock(posix, F_SETLK, F_WRLCK, 50, 1) == -1 && lock(posix, F_SETLK, F_RDLCK, 210, 1) == 0 && lock(posix, F_SETLK, F_UNLCK, 210, 1) == 0);
        must(flock(whole, LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK);
        must(flock(shared, LOCK_EX | LOCK_NB) == -1 && !flock(shared, LOCK_SH | LOCK_NB) && !flock(shared, LOCK_UN));
        *answered = *asked;
    }
    _exit(7);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    snprintf(base, sizeof base, "%s", argv[1]);
    struct {
        volatile long asked, answered, locked, waited;
    } *shared_words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int posix = open_file("posix", O_RDWR | O_CREAT), again = open_file("posix", O_RDONLY);
    int ofd = open_file("ofd", O_RDWR | O_CREAT), whole = open_file("flock", O_RDWR | O_CREAT), shared = open_file("shared", O_RDONLY | O_CREAT);
    int lease = open_file("lease", O_RDONLY | O_CREAT), gone = open_file("gone", O_RDWR | O_CREAT), twin = dup(posix);
    must(!lock(posix, F_SETLK, F_WRLCK, 0, 100) && !lock(again, F_SETLK, F_RDLCK, 200, 0));
    must(!lock(ofd, F_OFD_SETLK, F_WRLCK, 0, 10) && !lock(ofd, F_OFD_SETLK, F_RDLCK, 20, 10));
    must(!flock(whole, LOCK_EX) && !flock(shared, LOCK_SH));
    must(!fcntl(lease, F_SETLEASE, F_RDLCK) && !lock(gone, F_SETLK, F_WRLCK, 3, 1));
    char deleted[64];
    snprintf(deleted, sizeof deleted, "/proc/%d/fd/%d", (int)getpid(), gone);
    char path[4096];
    snprintf(path, sizeof path, "%s.gone", base);
    must(!unlink(path));
    pid_t holder = fork(); /* shares the descriptions, and has a lock of its own through one of them */
    must(holder >= 0);
    if (!holder) {
        must(!lock(posix, F_SETLK, F_WRLCK, 150, 10));
        shared_words->locked = 1;
        while (shared_words->asked >= 0) rest(1);
        _exit(7);
    }
    while (!shared_words->locked) rest(1);
    pid_t watcher = fork();
    must(watcher >= 0);
    if (!watcher) watch(&shared_words->asked, &shared_words->answered, deleted);
    pid_t waiter = fork();
    must(waiter >= 0);
    if (!waiter) {
        must(!lock(posix, F_SETLKW, F_WRLCK, 30, 1)); /* until the parent gives it up */
        shared_words->waited = 1;
        _exit(7);
    }
    while (!stopped()) {
        shared_words->asked++;
        while (shared_words->asked != shared_words->answered) {
            int status;
            if (waitpid(watcher, &status, WNOHANG)) fail("the watcher ended with wait status %x", status);
            rest(1);
        }
        must(fcntl(lease, F_GETLEASE) == F_RDLCK && !shared_words->waited);
        must(fcntl(twin, F_GETFD) == 0);
        tick();
    }
    must(!lock(posix, F_SETLK, F_UNLCK, 0, 100));
    shared_words->asked = -1;
    for (int i = 0; i < 3; i++) {
        int status;
        pid_t ended = wait(&status);
        must(ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    must(shared_words->waited);
    return done();
}
