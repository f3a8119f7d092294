/*
 * inotify: watches of a directory, a file, a symbolic link and of what only a hard link leads to; numbers with gaps; IN_ONESHOT and
 * IN_EXCL_UNLINK; two descriptors of one instance, a second instance that two processes share, and one without watches.
 */
#include "check.h"
#include <poll.h>
#include <sys/inotify.h>
#include <sys/wait.h>

static char base[4000];

static const char *at(const char *name) {
    static char paths[4][5000];
    static int next;
    char *path = paths[next++ & 3];
    snprintf(path, sizeof paths[0], "%s/%s", base, name);
    return path;
}

static void touch(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    must(fd >= 0 && write(fd, "x", 1) == 1 && !close(fd));
}

/* The next events, one after the other: exactly those, and then nothing. */
static void expect(const char *what, int fd, int wd, const unsigned *masks, const char *name) {
    static char buffer[4096] __attribute__((aligned(8)));
    size_t length = 0, used = 0;
    for (; *masks; masks++) {
        struct inotify_event *e;
        if (used == length) {
            struct pollfd p = {fd, POLLIN, 0};
            if (poll(&p, 1, 10000) != 1) fail("%s: no event %x", what, *masks);
            ssize_t n = read(fd, buffer, sizeof buffer);
            must(n > 0);
            length = n, used = 0;
        }
        e = (void *)(buffer + used);
        used += sizeof *e + e->len;
        if (e->wd != wd || e->mask != *masks || strcmp(e->len ? e->name : "", name))
            fail("%s: event %x of watch %d for <%s>, not %x of %d for <%s>", what, e->mask, e->wd, e->len ? e->name : "", *masks, wd, name);
    }
    struct pollfd p = {fd, POLLIN, 0};
    if (used != length || poll(&p, 1, 0)) fail("%s: more events than should be", what);
}

#define EXPECT(what, fd, wd, name, ...) expect(what, fd, wd, (const unsigned[]){__VA_ARGS__, 0}, name)

/* Their lines without the inode of the instance. */
static void check_watches(const char *name, int fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    const char *text = content(path), *lines = strstr(text, "inotify");
    same(name, "%s", lines ? lines : "none");
    char flags[80];
    snprintf(flags, sizeof flags, "flags of %s", name);
    same(flags, "%x", fcntl(fd, F_GETFL));
}

int main(int argc, char **argv) {
    begin(argc, argv);
    snprintf(base, sizeof base, "%s.watched", argv[1]);
    must(!mkdir(base, 0755) && !mkdir(at("sub dir"), 0755));
    touch(at("file"));
    touch(at("once"));
    must(!symlink("file", at("link")) && !link(at("file"), at("hard")) && !unlink(at("file")) && !symlink("hard", at("file")));
    int in = inotify_init1(IN_NONBLOCK), other = inotify_init1(IN_CLOEXEC), none = inotify_init();
    must(in >= 0 && other >= 0 && none >= 0);
    for (int i = 0; i < 5; i++) { /* numbers are not used again at once */
        must(inotify_add_watch(none, base, IN_ATTRIB) == i + 1 && !inotify_rm_watch(none, i + 1));
        char buffer[64];
        must(read(none, buffer, sizeof buffer) == sizeof(struct inotify_event));
    }
    int gap = inotify_add_watch(in, "/", IN_ATTRIB), hard = inotify_add_watch(in, at("hard"), IN_CLOSE_WRITE | IN_EXCL_UNLINK);
    int sub = inotify_add_watch(in, at("sub dir"), IN_CREATE | IN_DELETE | IN_MOVE | IN_ONLYDIR);
    int second_gap = inotify_add_watch(in, "/proc", IN_ATTRIB);
    int once = inotify_add_watch(in, at("once"), IN_CLOSE_WRITE | IN_ONESHOT);
    int link = inotify_add_watch(in, at("link"), IN_ATTRIB | IN_DONT_FOLLOW);
    must(inotify_add_watch(in, at("sub dir"), IN_MODIFY | IN_MASK_ADD) == sub);
    must(gap == 1 && hard == 2 && sub == 3 && second_gap == 4 && once == 5 && link == 6);
    must(!inotify_rm_watch(in, gap));
    EXPECT("gap", in, gap, "", IN_IGNORED);
    must(!inotify_rm_watch(in, second_gap));
    EXPECT("gap", in, second_gap, "", IN_IGNORED);
    int twin = dup(in), shared = inotify_add_watch(other, at("sub dir"), IN_DELETE);
    must(twin >= 0 && shared == 1);
    int go[2], back[2];
    must(!pipe(go) && !pipe(back));
    pid_t child = fork();
    must(child >= 0);
    if (!child) {
        close(go[1]), close(back[0]);
        char c;
        while (read(go[0], &c, 1) == 1) {
            EXPECT("child", other, shared, "new", IN_DELETE);
            must(write(back[1], &c, 1) == 1);
        }
        _exit(3);
    }
    close(go[0]), close(back[1]);
    while (!stopped()) {
        check_watches("watches", in);
        check_watches("watches of the twin", twin);
        check_watches("shared watches", other);
        check_watches("no watches", none);
        touch(at("hard"));
        EXPECT("hard link", in, hard, "", IN_CLOSE_WRITE);
        touch(at("sub dir/new"));
        EXPECT("new file", twin, sub, "new", IN_CREATE, IN_MODIFY);
        must(!unlink(at("sub dir/new")));
        EXPECT("removed file", in, sub, "new", IN_DELETE);
        char c = 'c';
        must(write(go[1], &c, 1) == 1 && read(back[0], &c, 1) == 1);
        must(!fchownat(AT_FDCWD, at("link"), getuid(), getgid(), AT_SYMLINK_NOFOLLOW));
        EXPECT("symbolic link", in, link, "", IN_ATTRIB);
        tick();
        rest(2);
    }
    touch(at("once"));
    EXPECT("one shot", in, once, "", IN_CLOSE_WRITE, IN_IGNORED);
    touch(at("once"));
    must(!inotify_rm_watch(in, sub));
    EXPECT("end", in, sub, "", IN_IGNORED);
    int fresh = inotify_add_watch(in, "/", IN_ATTRIB);
    if (fresh != 7) fail("a new watch got the number %d", fresh);
    close(go[1]);
    int status;
    must(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
    return done();
}
