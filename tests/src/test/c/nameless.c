/*
 * Files without a name, each seen through several descriptions and mappings of two processes as one: unlinked, on
 * /dev/shm, of O_TMPFILE and of memfd_create, sealed ones, sparse ones, one whose name belongs to another file by now,
 * one that has a second name. And removed directories, open and as a working directory.
 */
#include "check.h"
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGE = 4096, PAGES = 16 };
#define GIB (1ul << 30)

struct words {
    volatile long parent, child;
    uint64_t pattern[(PAGES * PAGE - 16) / 8];
};

static char base[4096];

static const char *in_base(const char *name) {
    static char paths[2][8192], *path;
    path = path == paths[0] ? paths[1] : paths[0];
    snprintf(path, sizeof *paths, "%s/%s", base, name);
    return path;
}

static void *map(int fd, int protection, int flags, size_t bytes) {
    void *p = mmap(NULL, bytes, protection, flags, fd, 0);
    must(p != MAP_FAILED);
    return p;
}

static const char *link_of(int fd) {
    static char text[4096];
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, text, sizeof text - 1);
    must(n > 0);
    text[n] = 0;
    return text;
}

/* What stat and fcntl tell; not the inode, which is a new one. */
static void check_file(const char *name, int fd) {
    struct stat s;
    must(!fstat(fd, &s));
    same(name, "mode %o links %d owner %d:%d size %ld seals %x flags %x close-on-exec %d offset %ld", s.st_mode, (int)s.st_nlink, s.st_uid, s.st_gid,
         (long)s.st_size, fcntl(fd, F_GET_SEALS), fcntl(fd, F_GETFL) & ~(O_TMPFILE), fcntl(fd, F_GETFD), (long)lseek(fd, 0, SEEK_CUR));
}

static void one_inode(int a, int b) {
    struct stat first, second;
    must(!fstat(a, &first) && !fstat(b, &second));
    must(first.st_ino == second.st_ino && first.st_dev == second.st_dev);
}

/* A file filled with a pattern behind two words, its name gone. */
static int unlinked(const char *path, uint64_t seed) {
    static struct words content;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0640);
    must(fd >= 0);
    fill(content.pattern, sizeof content.pattern, seed);
    must(write(fd, &content, sizeof content) == sizeof content);
    return fd;
}

/* Parent and child count in the words of a mapping and see each other's. */
static void turn(const char *what, struct words *words, int parent, long round, uint64_t seed) {
    verify(what, words->pattern, sizeof words->pattern, seed);
    if (parent) {
        must(words->parent == round - 1 && words->child == round - 1);
        words->parent = round;
    } else {
        if (words->parent != round || words->child != round - 1) fail("%s: %ld and %ld in round %ld", what, words->parent, words->child, round);
        words->child = round;
    }
}

int main(int argc, char **argv) {
    begin(argc, argv);
    snprintf(base, sizeof base, "%s.d", argv[1]);
    must(!mkdir(base, 0755));
    /* Open twice, once shared by dup, and mapped. */
    int file = unlinked(in_base("file"), 1), again = open(in_base("file"), O_RDONLY | O_CLOEXEC), append = open(in_base("file"), O_WRONLY | O_APPEND);
    must(again >= 0 && append >= 0 && !unlink(in_base("file")));
    must(!fchmod(file, 0400)); /* opened for writing when that was allowed */
    int twin = dup(file);
    must(lseek(again, 1000, SEEK_SET) == 1000);
    struct words *file_words = map(file, PROT_READ | PROT_WRITE, MAP_SHARED, sizeof *file_words);
    struct words *file_reader = map(again, PROT_READ, MAP_SHARED, sizeof *file_reader);
    must(mprotect(file_reader, PAGE, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {1000000000, 123456789}};
    /* On /dev/shm, only mapped, by half a page more than it is long; the name is taken by another one. */
    char shm[64];
    snprintf(shm, sizeof shm, "/dev/shm/stasis-nameless-%d", (int)getpid());
    int only_mapped = unlinked(shm, 2);
    must(!ftruncate(only_mapped, PAGES * PAGE - 100 * 8));
    must(!ftruncate(only_mapped, PAGES * PAGE));
    struct words *shm_words = map(only_mapped, PROT_READ | PROT_WRITE, MAP_SHARED, sizeof *shm_words);
    fill(shm_words->pattern, sizeof shm_words->pattern, 2);
    must(!unlink(shm) && !close(only_mapped));
    int other = open(shm, O_RDWR | O_CREAT | O_EXCL, 0600);
    must(other >= 0 && write(other, "another file", 12) == 12 && !unlink(shm));
    /* Like a library that was replaced while it was in use: private, one page of it changed. */
    int library = unlinked(in_base("library"), 3);
    char *code = map(library, PROT_READ | PROT_EXEC, MAP_PRIVATE, sizeof(struct words));
    char *data = map(library, PROT_READ | PROT_WRITE, MAP_PRIVATE, sizeof(struct words));
    must(!unlink(in_base("library")));
    close(library);
    fill(data + PAGE, PAGE, 33);
    must(symlink("another library", in_base("library")) == 0);
    /* Nearly all hole. */
    int sparse = open(in_base("sparse"), O_RDWR | O_CREAT, 0600);
    must(!unlink(in_base("sparse")));
    must(pwrite(sparse, "begin", 5, 0) == 5 && pwrite(sparse, "middle", 6, 700 * 1024 * 1024 + 3000) == 6 && !ftruncate(sparse, 3 * GIB + 17));
    must(pwrite(sparse, "end", 3, 3 * GIB + 14) == 3);
    int empty = open(in_base("empty"), O_RDWR | O_CREAT, 0600);
    must(!unlink(in_base("empty")));
    /* Without a name from the beginning, which it gets in the end. */
    int temporary = open(base, O_TMPFILE | O_RDWR, 0644);
    must(temporary >= 0 && write(temporary, "given a name later", 18) == 18);
    /* Another name is left. */
    int linked = open(in_base("first"), O_RDWR | O_CREAT, 0600);
    must(!link(in_base("first"), in_base("second")) && !unlink(in_base("first")));
    must(write(linked, "linked", 6) == 6);
    /* Removed directories. */
    must(!mkdir(in_base("removed"), 0751));
    int directory = open(in_base("removed"), O_RDONLY | O_DIRECTORY);
    must(directory >= 0 && !rmdir(in_base("removed")));
    /* memfd_create: open and mapped, sealed against all, without sealing. */
    int memory = memfd_create("a memory file (deleted)", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    must(memory >= 0 && !ftruncate(memory, PAGES * PAGE) && !fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
    struct words *memory_words = map(memory, PROT_READ | PROT_WRITE, MAP_SHARED, sizeof *memory_words);
    fill(memory_words->pattern, sizeof memory_words->pattern, 4);
    char *memory_private = map(memory, PROT_READ | PROT_WRITE, MAP_PRIVATE, PAGES * PAGE);
    fill(memory_private + 2 * PAGE, PAGE, 44);
    must(!fcntl(memory, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
    int sealed = memfd_create("", MFD_ALLOW_SEALING);
    must(write(sealed, "sealed for ever", 15) == 15);
    char *sealed_memory = map(sealed, PROT_READ, MAP_PRIVATE, PAGE);
    must(!fcntl(sealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL));
    int unsealable = memfd_create("plain", 0);
    must(fcntl(unsealable, F_GET_SEALS) == F_SEAL_SEAL && write(unsealable, "plain", 5) == 5);
    /* Only mapped. */
    int vanishing = memfd_create("mapped", 0);
    must(!ftruncate(vanishing, PAGES * PAGE));
    struct words *mapped_words = map(vanishing, PROT_READ | PROT_WRITE, MAP_SHARED, sizeof *mapped_words);
    close(vanishing);
    fill(mapped_words->pattern, sizeof mapped_words->pattern, 5);

    struct {
        volatile long asked, answered;
    } *shared = map(-1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, PAGE);
    pid_t child = fork();
    must(child >= 0);
    if (!child) {
        must(!mkdir(in_base("left"), 0700) && !chdir(in_base("left")) && !rmdir(in_base("left")));
        must(!munmap(file_reader, sizeof *file_reader) && !munmap(shm_words, 0 + PAGE));
        struct words *own = map(memory, PROT_READ, MAP_SHARED, sizeof *own); /* the seal forbids PROT_WRITE */
        close(again);
        while (shared->asked >= 0) {
            if (shared->asked == shared->answered) {
                rest(1);
                continue;
            }
            long round = shared->asked;
            turn("unlinked file", file_words, 0, round, 1);
            turn("memory file", memory_words, 0, round, 4);
            turn("mapped memory file", mapped_words, 0, round, 5);
            must(own->parent == round && own->child == round);
            verify("rest of the file on /dev/shm", (char *)shm_words + PAGE, (PAGES - 1) * PAGE, 2 + (PAGE - 16) / 8);
            must(pwrite(file, &round, 0, 0) == 0);
            check_file("child: file", file);
            char path[4200];
            same("child: working directory", "%.*s", (int)readlink("/proc/self/cwd", path, sizeof path), path);
            must(!getcwd(path, sizeof path) && errno == ENOENT && open("x", O_CREAT | O_WRONLY, 0600) == -1 && errno == ENOENT);
            shared->answered = round;
        }
        _exit(7);
    }
    long round = 0;
    while (!stopped()) {
        round++;
        turn("unlinked file", file_words, 1, round, 1);
        turn("memory file", memory_words, 1, round, 4);
        turn("mapped memory file", mapped_words, 1, round, 5);
        shm_words->parent = round;
        shared->asked = round;
        while (shared->answered != round) {
            int status;
            if (waitpid(child, &status, WNOHANG)) fail("the child ended with wait status %x", status);
            rest(1);
        }
        must(file_reader->child == round && memory_words->child == round && mapped_words->child == round && shm_words->parent == round);
        long seen;
        must(pread(again, &seen, 8, 8) == 8 && seen == round && pread(memory, &seen, 8, 8) == 8 && seen == round);
        one_inode(file, again);
        one_inode(file, append);
        verify("file on /dev/shm", shm_words->pattern, sizeof shm_words->pattern, 2);
        char text[32] = "";
        must(pread(other, text, 30, 0) == 12 && !strcmp(text, "another file"));
        verify("private mapping", code + 16, PAGES * PAGE - 16, 3);
        verify("private mapping", data + 16, PAGE - 16, 3);
        verify("changed page of a private mapping", data + PAGE, PAGE, 33);
        verify("private mapping", data + 2 * PAGE, (PAGES - 2) * PAGE, 3 + (2 * PAGE - 16) / 8);
        verify("private mapping of a memory file", memory_private + PAGE, PAGE, 4 + (PAGE - 16) / 8);
        verify("changed page of a memory file", memory_private + 2 * PAGE, PAGE, 44);
        memset(text, 0, sizeof text);
        must(pread(sparse, text, 5, 0) == 5 && !strcmp(text, "begin"));
        must(pread(sparse, text, 6, 700 * 1024 * 1024 + 3000) == 6 && !strcmp(text, "middle"));
        must(pread(sparse, text, 6, 3 * GIB + 14) == 3 && !strcmp(text, "enddle"));
        must(lseek(sparse, 100000, SEEK_DATA) == 700 * 1024 * 1024 && !lseek(sparse, 0, SEEK_SET));
        must(!memcmp(sealed_memory, "sealed for ever", 16) && write(sealed, "x", 1) == -1 && errno == EPERM);
        must(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0) == MAP_FAILED && errno == EPERM);
        must(pread(linked, text, 10, 0) == 6 && !memcmp(text, "linked", 6));
        check_file("file", file), check_file("again", again), check_file("append", append), check_file("twin", twin), check_file("sparse", sparse);
        check_file("empty", empty), check_file("temporary", temporary), check_file("linked", linked), check_file("memory", memory);
        check_file("sealed", sealed), check_file("unsealable", unsealable);
        check_file("directory", directory);
        same("link of directory", "%s", link_of(directory));
        must(openat(directory, "x", O_CREAT | O_WRONLY, 0600) == -1 && errno == ENOENT);
        same("link of memory", "%s", link_of(memory));
        same("link of sealed", "%s", link_of(sealed));
        same("link of file", "%s", link_of(file));
        same("link of other", "%s", link_of(other));
        struct stat s;
        must(!fstat(sparse, &s) && s.st_blocks < 1000);
        if (round == 1) must(!futimens(empty, times));
        must(!fstat(empty, &s) && s.st_mtim.tv_sec == 1000000000 && s.st_mtim.tv_nsec == 123456789);
        tick();
    }
    shared->asked = -1;
    int status;
    must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    must(write(append, "end", 3) == 3 && lseek(append, 0, SEEK_CUR) == PAGES * PAGE + 3);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", temporary);
    if (linkat(AT_FDCWD, path, AT_FDCWD, in_base("named"), AT_SYMLINK_FOLLOW)) fail("linkat: %s", strerror(errno));
    if (strcmp(content(in_base("named")), "given a name later")) fail("the temporary file has <%s>", content(in_base("named")));
    if (strcmp(content(in_base("second")), "linked")) fail("the linked file has <%s>", content(in_base("second")));
    return done();
}
