/*
 * Every kind of memory mapping: its place, protection, flags, name and content stay what they were, in a parent and a
 * child that share some of it.
 */
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PAGE 4096ul
#define MIB (1ul << 20)

static char maps_text[60000];

/* Address ranges of /proc/self/smaps with what must not change; neighbours that are alike count as one. */
static const char *mappings(void) {
    static char in[400000], last_tail[1024];
    int fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
    must(fd >= 0);
    size_t n = 0;
    for (ssize_t k; (k = read(fd, in + n, sizeof in - 1 - n)) > 0;) n += k;
    close(fd);
    in[n] = 0;
    must(n < sizeof in - 1);
    unsigned long start = 0, end = 0, last_start = 0, last_end = 0;
    char tail[1024] = "", *out = maps_text;
    last_tail[0] = 0;
    for (char *line = in, *next; *line; line = next) {
        next = strchr(line, '\n');
        *next++ = 0;
        unsigned long a, b, offset;
        char protection[8], device[16];
        unsigned long long inode;
        int name = 0;
        if (sscanf(line, "%lx-%lx %7s %lx %15s %llu %n", &a, &b, protection, &offset, device, &inode, &name) >= 6 && name) {
            const char *path = line + name;
            int file = path[0] == '/' && !strstr(path, "(deleted)");
            start = a, end = b;
            if (path[0] == '/' && !file) path = "(nameless)";
            if (!strcmp(path, "[stack]")) start = 0; /* it grows */
            snprintf(tail, sizeof tail, "%s %s %s", protection, path, file ? "file" : "");
            if (file) /* in a file, an offset that does not change when neighbours are merged */
                snprintf(tail + strlen(tail), 64, " %lx", a - offset);
        } else if (!strncmp(line, "VmFlags:", 8)) {
            char flags[256] = "";
            for (char *f = strtok(line + 8, " "); f; f = strtok(NULL, " "))
                if (strcmp(f, "ac") && strcmp(f, "sd")) strcat(strcat(flags, " "), f);
            strcat(tail, flags);
            if (*last_tail && !strcmp(tail, last_tail) && start == last_end) {
                last_end = end;
            } else {
                if (*last_tail) out += sprintf(out, "%lx-%lx %s | ", last_start, last_end, last_tail);
                last_start = start, last_end = end;
                strcpy(last_tail, tail);
            }
        }
    }
    out += sprintf(out, "%lx-%lx %s | ", last_start, last_end, last_tail);
    must(out - maps_text < (long)sizeof maps_text);
    return maps_text;
}

static sigjmp_buf fault_return;
static volatile int fault_code;
static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)context;
    fault_code = signal * 100 + info->si_code;
    siglongjmp(fault_return, 1);
}

/* Touches an address; returns 0 or signal * 100 + si_code. */
static int touch(const void *address) {
    if (sigsetjmp(fault_return, 1)) return fault_code;
    (void)*(volatile const char *)address;
    return 0;
}

static char *map(size_t bytes, int protection, int flags, int fd, off_t offset) {
    char *p = mmap(NULL, bytes, protection, flags, fd, offset);
    must(p != MAP_FAILED);
    return p;
}

enum { RW = PROT_READ | PROT_WRITE, ANON = MAP_PRIVATE | MAP_ANONYMOUS };

struct shared {
    volatile long asked, answered;
    uint64_t pattern[1000];
};

static char *plain, *holes, *guarded, *readonly, *hidden, *code, *huge, *nohuge, *sparse, *dontdump, *locked, *noreserve, *wiped,
    *down, *file_private, *file_shared, *file_readonly, *past_end, *zero_private, *dropped, *named;
static struct shared *shared;
static uint64_t *file_counter;
static void *initial_break;
static char file_path[4096], exe_path[4096];

static void check_all(int child) {
    verify("plain memory", plain, MIB, child ? 777 : 1);
    for (int i = 0; i < 64; i += 2) verify("memory between holes", holes + i * PAGE, PAGE, 100 + i);
    for (int i = 1; i < 64; i += 2) must(touch(holes + i * PAGE) == SIGSEGV * 100 + SEGV_MAPERR);
    must(touch(guarded) == SIGSEGV * 100 + SEGV_ACCERR);
    verify("memory after a guard page", guarded + PAGE, 4 * PAGE, 2);
    must(touch(guarded + 5 * PAGE) == SIGSEGV * 100 + SEGV_ACCERR);
    verify("read-only memory", readonly, 8 * PAGE, 3);
    must(touch(hidden) == SIGSEGV * 100 + SEGV_ACCERR);
    must(!mprotect(hidden, 8 * PAGE, PROT_READ));
    verify("memory without permissions", hidden, 8 * PAGE, 4);
    must(!mprotect(hidden, 8 * PAGE, PROT_NONE));
#if defined(__x86_64__) || defined(__i386__)
    must(((int (*)(void))code)() == 4711);
#endif
    verify("memory with MADV_HUGEPAGE", huge, 4 * MIB, 5);
    verify("memory with MADV_NOHUGEPAGE", nohuge, 2 * MIB, 6);
    if (!child) {
        verify("memory with MADV_DONTFORK", dropped, 4 * PAGE, 7);
        verify("memory with MADV_WIPEONFORK", wiped, 4 * PAGE, 8);
    } else {
        must(touch(dropped) == SIGSEGV * 100 + SEGV_MAPERR);
        for (unsigned i = 0; i < 4 * PAGE; i++) must(!wiped[i]);
    }
    verify("memory with MADV_DONTDUMP", dontdump, 4 * PAGE, 9);
    verify("locked memory", locked, 4 * PAGE, 10);
    verify("memory with MAP_NORESERVE", noreserve, 4 * PAGE, 11);
    for (unsigned long i = 0; i < 3; i++) {
        verify("sparse memory", sparse + i * 400 * 1024 * MIB, PAGE, 20 + i);
        must(!sparse[i * 400 * 1024 * MIB + 5 * PAGE]);
    }
    verify("a growing-down mapping", down, 4 * PAGE, 12);
    verify("a private file mapping, unchanged page", file_private, PAGE, 50);
    verify("a private file mapping, changed page", file_private + PAGE, PAGE, child ? 778 : 13);
    verify("a private file mapping, unchanged page", file_private + 2 * PAGE, 2 * PAGE, 50 + 2 * 512);
    for (int i = 100; i < (int)PAGE; i++) must(!file_private[5 * PAGE + i]);
    must(touch(past_end + PAGE) == 0);
    must(touch(past_end + 2 * PAGE) == SIGBUS * 100 + BUS_ADRERR);
    verify("a read-only file mapping", file_readonly, 4 * PAGE, 50);
    verify("a private mapping of /dev/zero", zero_private, 2 * PAGE, 14);
    verify("shared anonymous memory", shared->pattern, sizeof shared->pattern, 15);
    verify("named memory", named, 2 * PAGE, 16);
    must(sbrk(0) == initial_break);
    /* A file of /proc that changes while it is read, as by a restart, reads like no moment: then once more. */
    static char first[sizeof maps_text];
    if (!*first) strcpy(first, mappings());
    for (int i = 0; i < 5 && strcmp(first, mappings()); i++) {
    }
    same("mappings", "%s", maps_text);
    same("exe", "%.*s", (int)readlink("/proc/self/exe", exe_path, sizeof exe_path), exe_path);
    same("cmdline", "%s", content("/proc/self/cmdline"));
    same("environ", "%s", content("/proc/self/environ"));
    char auxv[4096], *o = auxv;
    int fd = open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
    unsigned long pairs[100];
    ssize_t n = read(fd, pairs, sizeof pairs);
    close(fd);
    for (ssize_t i = 0; i < n / (ssize_t)sizeof(long); i++) o += sprintf(o, "%lx ", pairs[i]);
    same("auxv", "%s", auxv);
    same("AT_SYSINFO_EHDR", "%lx", getauxval(AT_SYSINFO_EHDR));
    /* start and end of code, data, arguments and environment, and the break's start */
    char *stat = strrchr(content("/proc/self/stat"), ')') + 1, fields[1024] = "";
    int number = 3;
    for (char *f = strtok(stat, " "); f; f = strtok(NULL, " "), number++)
        if (number == 26 || number == 27 || number == 28 || (number >= 45 && number <= 51)) strcat(strcat(fields, f), " ");
    same("mm fields of stat", "%s", fields);
    must(now() > 0); /* through the vDSO */
}

int main(int argc, char **argv) {
    begin(argc, argv);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    snprintf(file_path, sizeof file_path, "%s.map", argv[1]);
    int fd = open(file_path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    must(fd >= 0);
    static uint64_t block[5 * 512];
    fill(block, sizeof block, 50);
    must(write(fd, block, sizeof block) == sizeof block);
    must(write(fd, block, 100) == 100);
    must(!ftruncate(fd, 5 * PAGE + 100));

    plain = map(MIB, RW, ANON, -1, 0);
    fill(plain, MIB, 1);
    holes = map(64 * PAGE, RW, ANON, -1, 0);
    for (int i = 0; i < 64; i += 2) fill(holes + i * PAGE, PAGE, 100 + i);
    guarded = map(6 * PAGE, RW, ANON, -1, 0);
    fill(guarded + PAGE, 4 * PAGE, 2);
    must(!mprotect(guarded, PAGE, PROT_NONE) && !mprotect(guarded + 5 * PAGE, PAGE, PROT_NONE));
    readonly = map(8 * PAGE, RW, ANON, -1, 0);
    fill(readonly, 8 * PAGE, 3);
    must(!mprotect(readonly, 8 * PAGE, PROT_READ));
    hidden = map(8 * PAGE, RW, ANON, -1, 0);
    fill(hidden, 8 * PAGE, 4);
    must(!mprotect(hidden, 8 * PAGE, PROT_NONE));
    code = map(PAGE, RW, ANON, -1, 0);
    memcpy(code, "\xb8\x67\x12\x00\x00\xc3", 6); /* mov $4711, %eax; ret */
    must(!mprotect(code, PAGE, PROT_READ | PROT_EXEC));
    huge = map(4 * MIB, RW, ANON, -1, 0);
    madvise(huge, 4 * MIB, MADV_HUGEPAGE);
    fill(huge, 4 * MIB, 5);
    nohuge = map(2 * MIB, RW, ANON, -1, 0);
    madvise(nohuge, 2 * MIB, MADV_NOHUGEPAGE);
    fill(nohuge, 2 * MIB, 6);
    dropped = map(4 * PAGE, RW, ANON, -1, 0);
    fill(dropped, 4 * PAGE, 7);
    must(!madvise(dropped, 4 * PAGE, MADV_DONTFORK));
    wiped = map(4 * PAGE, RW, ANON, -1, 0);
    fill(wiped, 4 * PAGE, 8);
    must(!madvise(wiped, 4 * PAGE, MADV_WIPEONFORK));
    dontdump = map(4 * PAGE, RW, ANON, -1, 0);
    fill(dontdump, 4 * PAGE, 9);
    must(!madvise(dontdump, 4 * PAGE, MADV_DONTDUMP));
    locked = map(4 * PAGE, RW, ANON, -1, 0);
    fill(locked, 4 * PAGE, 10);
    must(!mlock(locked, 4 * PAGE));
    noreserve = map(4 * PAGE, RW, ANON | MAP_NORESERVE, -1, 0);
    fill(noreserve, 4 * PAGE, 11);
    sparse = map(1024 * 1024 * MIB, RW, ANON | MAP_NORESERVE, -1, 0);
    for (unsigned long i = 0; i < 3; i++) fill(sparse + i * 400 * 1024 * MIB, PAGE, 20 + i);
    char *room = map(8 * MIB, PROT_NONE, ANON, -1, 0);
    must(!munmap(room, 8 * MIB));
    down = mmap(room + 4 * MIB, 4 * PAGE, RW, ANON | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0);
    must(down == room + 4 * MIB);
    fill(down, 4 * PAGE, 12);
    must(!touch(down - 8)); /* grows by a page */
    file_private = map(6 * PAGE, RW, MAP_PRIVATE, fd, 0);
    fill(file_private + PAGE, PAGE, 13);
    file_shared = map(6 * PAGE, RW, MAP_SHARED, fd, 0);
    file_counter = (uint64_t *)(file_shared + 5 * PAGE);
    *file_counter = 0;
    past_end = map(4 * PAGE, PROT_READ, MAP_PRIVATE, fd, 4 * PAGE);
    int only = open(file_path, O_RDONLY);
    file_readonly = map(5 * PAGE, PROT_READ, MAP_SHARED, only, 0);
    close(only);
    close(fd);
    int zero = open("/dev/zero", O_RDWR);
    zero_private = map(2 * PAGE, RW, MAP_PRIVATE, zero, 0);
    close(zero);
    fill(zero_private, 2 * PAGE, 14);
    shared = (void *)map(4 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fill(shared->pattern, sizeof shared->pattern, 15);
    named = map(2 * PAGE, RW, ANON, -1, 0);
    fill(named, 2 * PAGE, 16);
    char *grown = sbrk(300000);
    must(grown != (void *)-1);
    fill(grown - (uintptr_t)grown % 8 + 8, 200000, 17);
    initial_break = sbrk(0);
    for (int i = 1; i < 64; i += 2) must(!munmap(holes + i * PAGE, PAGE));

    pid_t child = fork();
    must(child >= 0);
    if (!child) {
        fill(plain, MIB, 777);
        fill(file_private + PAGE, PAGE, 778);
        check_all(1);
        while (shared->asked >= 0) {
            if (shared->asked != shared->answered) {
                check_all(1);
                must(*file_counter == (uint64_t)shared->asked);
                shared->answered = shared->asked;
            }
            rest(1);
        }
        _exit(7);
    }
    check_all(0);
    while (!stopped()) {
        ++*file_counter;
        shared->asked++;
        while (shared->answered != shared->asked) {
            int status;
            if (waitpid(child, &status, WNOHANG) != 0) fail("the child ended with wait status %x", status);
            rest(1);
        }
        check_all(0);
        tick();
    }
    shared->asked = -1;
    int status;
    must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    verify("the grown break", grown - (uintptr_t)grown % 8 + 8, 200000, 17);
    must(!touch(down - 3 * PAGE)); /* it still grows */
    must(sbrk(4096) == initial_break);
    must(!unlink(file_path));
    return done();
}
