/*
 * Rare kinds of memory: guard pages of madvise(2), memory the kernel may drop, sealed memory, memory that is locked when
 * it is touched, and the lock on whatever is mapped later. What smaps and pagemap show of them never changes.
 */
#include "check.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 8
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif
enum { PAGE = 4096, PAGES = 16, AREAS = 6 };

static char *areas[AREAS];

static char *area(int type) {
    char *some = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, type | MAP_ANONYMOUS, -1, 0);
    must(some != MAP_FAILED);
    return some;
}

/* The flags of the mapping that begins at an address. */
static const char *flags(const char *start) {
    static char line[512];
    char head[64];
    snprintf(head, sizeof head, "\n%lx-", (unsigned long)start);
    const char *at = strstr(content("/proc/self/smaps"), head);
    if (!at || !(at = strstr(at, "VmFlags:"))) return "no mapping begins there";
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

/* Which pages of an area can be read: the kernel fails instead of the program. */
static const char *readable(char *start) {
    static char text[PAGES + 1];
    for (int i = 0; i < PAGES; i++) {
        char byte;
        struct iovec to = {&byte, 1}, from = {start + i * PAGE, 1};
        text[i] = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 ? 'r' : '-';
    }
    return text;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    /* With holes between them, so that none is merged with another. */
    areas[0] = area(MAP_PRIVATE);
    int guards = !madvise(areas[0] + 3 * PAGE, 2 * PAGE, MADV_GUARD_INSTALL);
    guards &= !madvise(areas[0] + 9 * PAGE, PAGE, MADV_GUARD_INSTALL);
    memset(areas[0], 7, 2 * PAGE);
    areas[1] = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_DROPPABLE | MAP_ANONYMOUS, -1, 0);
    if (areas[1] != MAP_FAILED) memset(areas[1], 8, PAGES * PAGE);
    areas[2] = area(MAP_PRIVATE);
    fill(areas[2], PAGES * PAGE, 2);
    must(!mprotect(areas[2], PAGES * PAGE, PROT_READ));
    int sealed = !syscall(SYS_mseal, areas[2], PAGES * PAGE, 0);
    areas[3] = area(MAP_PRIVATE);
    int locked = !mlock2(areas[3], PAGES * PAGE, MLOCK_ONFAULT);
    fill(areas[3], 3 * PAGE, 3);
    areas[4] = area(MAP_PRIVATE);
    fill(areas[4], PAGES * PAGE, 4);
    must(!mprotect(areas[4], PAGES * PAGE, PROT_NONE));
    areas[5] = area(MAP_PRIVATE | MAP_GROWSDOWN);
    memset(areas[5], 9, PAGES * PAGE);
    /* An ordinary user's limit would leave no room for anything more. */
    int future = !geteuid() && !mlockall(MCL_FUTURE | MCL_ONFAULT);
    while (!stopped()) {
        if (guards) same("guards", "%s", readable(areas[0]));
        if (areas[1] != MAP_FAILED) same("droppable", "%s", flags(areas[1]));
        if (sealed) {
            must(mprotect(areas[2], PAGE, PROT_READ | PROT_WRITE) && errno == EPERM);
            verify("sealed", areas[2], PAGES * PAGE, 2);
        }
        if (locked) {
            verify("locked", areas[3], 3 * PAGE, 3);
            same("locked", "%s", flags(areas[3]));
        }
        must(!mprotect(areas[4], PAGES * PAGE, PROT_READ));
        verify("hidden", areas[4], PAGES * PAGE, 4);
        must(!mprotect(areas[4], PAGES * PAGE, PROT_NONE));
        same("downwards", "%d %d", areas[5][0], areas[5][PAGES * PAGE - 1]);
        if (future) {
            char *later = area(MAP_PRIVATE);
            must(!mprotect(later, PAGE, PROT_NONE)); /* never part of a neighbour */
            same("later", "%s", flags(later));
            must(!munmap(later, PAGES * PAGE));
        }
        tick();
        rest(2);
    }
    return done();
}
