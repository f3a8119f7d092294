/*
 * What every self-checking program shares.
 *
 * A program is started as `PROGRAM PROGRESS ...`. It appends one line "tick N" to the file PROGRESS for every round of
 * its checks, so that a gap, a repetition or a standstill shows. It goes on until the file PROGRESS.stop exists, makes
 * its last checks, appends "done" and ends with status 42. The first check that fails appends "FAIL ..." and ends it
 * with status 99.
 *
 * same("name", "format", ...) is the usual check: the first call under a name remembers the text, every later call
 * compares. What the program sees of itself must never change, whatever is done to it from outside.
 */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { STATUS_DONE = 42, STATUS_FAILED = 99 };

static const char *check_progress = "/dev/stderr";
static char check_stop_file[4096];
static long check_ticks;

static void check_append(const char *line) {
    int saved = errno;
    int fd = open(check_progress, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0) {
        if (write(fd, line, strlen(line)) < 0) {
        }
        close(fd);
    }
    errno = saved;
}

static void report(const char *format, ...) __attribute__((format(printf, 1, 2), unused));
static void report(const char *format, ...) {
    char line[8192];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line - 2, format, arguments);
    va_end(arguments);
    if (n > (int)sizeof line - 2) n = sizeof line - 2;
    strcpy(line + n, "\n");
    check_append(line);
}

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn, unused));
static void fail(const char *format, ...) {
    char line[8192];
    int n = snprintf(line, sizeof line, "FAIL pid %d: ", (int)getpid());
    va_list arguments;
    va_start(arguments, format);
    n += vsnprintf(line + n, sizeof line - 2 - n, format, arguments);
    va_end(arguments);
    if (n > (int)sizeof line - 2) n = sizeof line - 2;
    strcpy(line + n, "\n");
    check_append(line);
    _exit(STATUS_FAILED);
}

/* A condition that must hold; the message tells errno too. */
#define must(condition)                                                                                 \
    do {                                                                                                \
        if (!(condition)) fail("%s:%d: %s (errno %d, %s)", __FILE__, __LINE__, #condition, errno, strerror(errno)); \
    } while (0)

static void begin(int argc, char **argv) __attribute__((unused));
static void begin(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s PROGRESS ...\n", argv[0]);
        exit(2);
    }
    check_progress = argv[1];
    snprintf(check_stop_file, sizeof check_stop_file, "%s.stop", argv[1]);
}

static void tick(void) __attribute__((unused));
static void tick(void) {
    report("tick %ld", ++check_ticks);
}

static int stopped(void) __attribute__((unused));
static int stopped(void) {
    int saved = errno;
    int there = access(check_stop_file, F_OK) == 0;
    errno = saved;
    return there;
}

static int done(void) __attribute__((unused));
static int done(void) {
    check_append("done\n");
    return STATUS_DONE;
}

/* Sleeps the whole time, whatever signals come. */
static void rest(long milliseconds) __attribute__((unused));
static void rest(long milliseconds) {
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
    }
}

static double now(void) __attribute__((unused));
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

struct check_value {
    struct check_value *next;
    char *name, *text;
};
static struct check_value *check_values; /* one thread at a time */

static void same(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3), unused));
static void same(const char *name, const char *format, ...) {
    char text[65536];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (struct check_value *v = check_values; v; v = v->next)
        if (!strcmp(v->name, name)) {
            if (!strcmp(v->text, text)) return;
            size_t at = 0, shown = 0; /* where they differ, and a little before */
            while (v->text[at] && v->text[at] == text[at]) at++;
            if (at > 60) shown = at - 60;
            fail("%s was <%.200s> and is <%.200s>, from byte %zu", name, v->text + shown, text + shown, shown);
        }
    static char arena[300000]; /* not malloc, which would move the break under a program that watches it */
    static size_t used;
    struct check_value *v = (void *)(arena + used);
    v->name = (char *)(v + 1);
    v->text = v->name + strlen(name) + 1;
    used += (sizeof *v + strlen(name) + strlen(text) + 2 + 15) & ~15ul;
    if (used > sizeof arena) fail("too many values to remember");
    strcpy(v->name, name);
    strcpy(v->text, text);
    v->next = check_values;
    check_values = v;
}

/* Forgets a value that the program itself is about to change. */
static void changed(const char *name) __attribute__((unused));
static void changed(const char *name) {
    for (struct check_value **v = &check_values; *v; v = &(*v)->next)
        if (!strcmp((*v)->name, name)) {
            *v = (*v)->next;
            return;
        }
}

/* The content of a small file such as those of /proc; trailing newline removed. */
static const char *content(const char *path) __attribute__((unused));
static const char *content(const char *path) {
    static char buffer[60000];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(buffer, sizeof buffer, "cannot open %s: %s", path, strerror(errno));
        return buffer;
    }
    size_t n = 0;
    ssize_t k;
    while (n < sizeof buffer - 1 && (k = read(fd, buffer + n, sizeof buffer - 1 - n)) > 0) n += k;
    close(fd);
    if (n && buffer[n - 1] == '\n') n--;
    buffer[n] = 0;
    return buffer;
}

/* One line of /proc/self/status, such as "SigIgn". */
static const char *status_line(const char *key) __attribute__((unused));
static const char *status_line(const char *key) {
    static char line[4096];
    const char *text = content("/proc/thread-self/status");
    size_t k = strlen(key);
    for (const char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        if (!strncmp(p, key, k) && p[k] == ':') {
            snprintf(line, sizeof line, "%.*s", (int)strcspn(p, "\n"), p);
            return line;
        }
    return "(no such line)";
}

/* SplitMix64: the pattern that fills memory and streams. */
static inline uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

static void fill(void *memory, size_t bytes, uint64_t seed) __attribute__((unused));
static void fill(void *memory, size_t bytes, uint64_t seed) {
    for (size_t i = 0; i < bytes / 8; i++) ((uint64_t *)memory)[i] = mix(seed + i);
}

static void verify(const char *what, const void *memory, size_t bytes, uint64_t seed) __attribute__((unused));
static void verify(const char *what, const void *memory, size_t bytes, uint64_t seed) {
    for (size_t i = 0; i < bytes / 8; i++)
        if (((const uint64_t *)memory)[i] != mix(seed + i))
            fail("%s: word %zu at %p is %llx, not %llx", what, i, (void *)((uint64_t *)memory + i),
                 (unsigned long long)((const uint64_t *)memory)[i], (unsigned long long)mix(seed + i));
}

#endif
