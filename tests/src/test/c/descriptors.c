/*
 * Descriptors of files: offsets, flags, close-on-exec, numbers, descriptions shared by dup, by fork and not shared by a
 * second open, directories, device files, files opened in odd modes, many descriptors.
 */
#include "check.h"
#include <dirent.h>
#include <sys/mman.h>
#include <sys/wait.h>

static char base[4096];

static const char *in_base(const char *name) {
    static char path[8192];
    snprintf(path, sizeof path, "%s/%s", base, name);
    return path;
}

/* What the kernel tells of a descriptor. */
static void check_descriptor(int fd, const char *who) {
    char key[64], link[4096], path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, link, sizeof link - 1);
    must(n > 0);
    link[n] = 0;
    struct stat status;
    must(!fstat(fd, &status));
    snprintf(key, sizeof key, "%s fd %d", who, fd);
    off_t offset = S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) ? lseek(fd, 0, SEEK_CUR) : 0;
    if (offset < 0) offset = -1; /* O_PATH */
    same(key, "%s, flags %x, close-on-exec %d, offset %ld, device %lx inode %lx mode %o size %ld", link, fcntl(fd, F_GETFL), fcntl(fd, F_GETFD),
         (long)offset, (long)status.st_rdev, (long)status.st_ino, status.st_mode, S_ISREG(status.st_mode) ? (long)status.st_size : 0);
}

static void check_list(const char *who) {
    char text[4096] = "", key[64];
    for (int i = 0; i < 1024; i++)
        if (fcntl(i, F_GETFD) >= 0 && strlen(text) < 4000) sprintf(text + strlen(text), "%d ", i);
    snprintf(key, sizeof key, "%s list of descriptors", who);
    same(key, "%s", text);
}

static int open_file(const char *name, int flags) {
    int fd = open(in_base(name), flags, 0640);
    if (fd < 0) fail("cannot open %s: %s", in_base(name), strerror(errno));
    return fd;
}

static void read_word(int fd, const char *expected) {
    char word[16] = "";
    ssize_t n = read(fd, word, strlen(expected));
    if (n != (ssize_t)strlen(expected) || strcmp(word, expected)) fail("descriptor %d gives <%s>, not <%s>", fd, word, expected);
}

static void append_word(int fd, const char *word) {
    must(write(fd, word, strlen(word)) == (ssize_t)strlen(word));
}

int main(int argc, char **argv) {
    begin(argc, argv);
    snprintf(base, sizeof base, "%s.d", argv[1]);
    must(!mkdir(base, 0755));
    int plain = open_file("plain", O_RDWR | O_CREAT);
    append_word(plain, "0123456789abcdefghijklmnopqrstuvwxyz");
    must(lseek(plain, 10, SEEK_SET) == 10);
    int again = open_file("plain", O_RDONLY);         /* its own offset */
    int twin = dup(plain);                            /* the same offset */
    int far = fcntl(plain, F_DUPFD_CLOEXEC, 700);     /* the same offset, another flag */
    must(far >= 700);
    int append = open_file("append", O_WRONLY | O_CREAT | O_APPEND);
    append_word(append, "one\n");
    int second_append = open_file("append", O_WRONLY | O_APPEND | O_CLOEXEC);
    int only_write = open_file("write", O_WRONLY | O_CREAT | O_EXCL | O_TRUNC);
    append_word(only_write, "content");
    int sync_file = open_file("sync", O_RDWR | O_CREAT | O_DSYNC | O_NONBLOCK | O_NOATIME);
    int big = open_file("big", O_RDWR | O_CREAT);
    must(lseek(big, 1l << 40, SEEK_SET) == 1l << 40); /* far beyond the end */
    int readonly = open_file("readonly", O_CREAT | O_RDONLY);
    must(!chmod(in_base("readonly"), 0400));
    int write_once = open_file("unwritable", O_CREAT | O_WRONLY);
    append_word(write_once, "x");
    must(!chmod(in_base("unwritable"), 0444)); /* opened for writing when that was allowed */
    must(!mkdir(in_base("dir"), 0755));
    for (int i = 0; i < 40; i++) {
        char name[32];
        sprintf(name, "dir/entry-%02d", i);
        close(open_file(name, O_WRONLY | O_CREAT));
    }
    int directory = open_file("dir", O_RDONLY | O_DIRECTORY);
    int position = open_file("plain", O_PATH);
    must(!symlink("plain", in_base("link")));
    int strange = open_file("a name with \n newline, (deleted) and \xc3\xa4", O_RDWR | O_CREAT);
    int null = open("/dev/null", O_RDWR), null_append = open("/dev/null", O_WRONLY | O_APPEND | O_CLOEXEC), zero = open("/dev/zero", O_RDONLY),
        random = open("/dev/urandom", O_RDONLY | O_NONBLOCK), full = open("/dev/full", O_RDWR);
    must(null >= 0 && null_append >= 0 && zero >= 0 && random >= 0 && full >= 0);
    int many[200];
    for (int i = 0; i < 200; i++) {
        if (i % 5 == 0) {
            must((many[i] = dup(i ? many[i - 1] : again)) >= 0);
            continue;
        }
        many[i] = open_file("plain", O_RDONLY | (i % 2 ? O_CLOEXEC : 0));
        must(lseek(many[i], i, SEEK_SET) == i);
    }
    close(many[100]);
    close(many[101]);

    struct {
        volatile long asked, answered;
    } *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int words = open_file("words", O_RDWR | O_CREAT); /* parent and child append in turn at the offset they share */
    pid_t child = fork();
    must(child >= 0);
    if (!child) {
        int own = open_file("plain", O_RDONLY);
        must(lseek(own, 26, SEEK_SET) == 26);
        must(!close(append));
        must(dup2(own, 3) == 3);
        close(own);
        must(fcntl(twin, F_SETFD, FD_CLOEXEC) == 0);
        for (;;) {
            while (shared->asked == shared->answered) rest(1);
            if (shared->asked < 0) break;
            for (int fd = 0; fd < 1024; fd++)
                if (fd > 2 && fd != words && fcntl(fd, F_GETFD) >= 0) check_descriptor(fd, "child");
            check_list("child");
            append_word(words, "child ");
            shared->answered = shared->asked;
        }
        read_word(3, "qrstuv");
        _exit(17);
    }
    long rounds = 0;
    while (!stopped()) {
        append_word(words, "parent ");
        shared->asked++;
        while (shared->asked != shared->answered) {
            int status;
            if (waitpid(child, &status, WNOHANG)) fail("the child ended with wait status %x", status);
            rest(1);
        }
        rounds++;
        must(lseek(words, 0, SEEK_CUR) == rounds * 13);
        for (int fd = 3; fd < 1024; fd++)
            if (fd != words && fcntl(fd, F_GETFD) >= 0) check_descriptor(fd, "parent");
        check_list("parent");
        char byte = 1;
        must(read(null, &byte, 1) == 0 && read(zero, &byte, 1) == 1 && byte == 0 && read(random, &byte, 1) == 1);
        must(write(full, &byte, 1) == -1 && errno == ENOSPC);
        tick();
    }
    /* One offset for all three, another for the other open. */
    read_word(plain, "a");
    read_word(twin, "b");
    read_word(far, "c");
    read_word(again, "0");
    must(lseek(plain, 0, SEEK_CUR) == 13);
    append_word(append, "two\n");
    append_word(second_append, "three\n");
    if (strcmp(content(in_base("append")), "one\ntwo\nthree")) fail("O_APPEND gave <%s>", content(in_base("append")));
    append_word(only_write, "!");
    append_word(write_once, "y");
    if (strcmp(content(in_base("unwritable")), "xy")) fail("a file made read-only meanwhile has <%s>", content(in_base("unwritable")));
    append_word(big, "end");
    struct stat status;
    must(!fstat(big, &status) && status.st_size == (1l << 40) + 3);
    must(!unlink(in_base("big")));
    (void)sync_file, (void)readonly, (void)position, (void)strange, (void)null_append;
    DIR *entries = fdopendir(directory);
    int count = 0;
    for (struct dirent *e; (e = readdir(entries));) count += e->d_name[0] == 'e';
    if (count != 40) fail("the directory has %d entries", count);
    shared->asked = -1;
    int ended;
    must(waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == 17);
    must(lseek(plain, 0, SEEK_CUR) == 13); /* the child's reads were from a description of its own */
    return done();
}
