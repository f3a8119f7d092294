/*
 * What a thread keeps for itself while others of its process keep something else: credentials, capabilities,
 * no_new_privs, directories and umask, name, nice value, policy, processors, I/O priority, timer slack, personality,
 * memory policy, and what prctl(2) knows besides. Started as root it uses all of it, else what anybody may use.
 */
#include "check.h"
#include <linux/capability.h>
#include <linux/membarrier.h>
#include <linux/mempolicy.h>
#include <linux/prctl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { THREADS = 5 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int quit;
static volatile long rounds[THREADS];
static char directory[4096];

/* By system calls only: an open file of /proc belongs to a thread, too. */
static void check(long number) {
    char who[32], cwd[4096], name[17] = "", text[4096] = "", *o = text;
    uid_t u[3];
    gid_t g[3], groups[64];
    cpu_set_t cpus;
    int tsc = 0, policy = -1, count = getgroups(64, groups);
    unsigned long nodes[16] = {0};
    struct sched_param parameters = {0};
    struct stat here, top;
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    must(!syscall(SYS_capget, &header, data) && !getresuid(&u[0], &u[1], &u[2]) && !getresgid(&g[0], &g[1], &g[2]));
    for (int i = 0; i < count; i++) o += sprintf(o, "group %u, ", groups[i]);
    for (int i = 0; i < 2; i++) o += sprintf(o, "capabilities %x %x %x, ", data[i].effective, data[i].permitted, data[i].inheritable);
    for (int i = 0; i < 41; i++)
        o += sprintf(o, "%d%d", prctl(PR_CAPBSET_READ, i), prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, i, 0, 0));
    pthread_mutex_lock(&lock);
    mode_t mask = umask(0);
    umask(mask);
    must(syscall(SYS_getcwd, cwd, sizeof cwd) > 0 && !stat(".", &here) && !stat("/", &top));
    must(!prctl(PR_GET_TSC, &tsc) && !sched_getparam(0, &parameters) && !prctl(PR_GET_NAME, name));
    must(!sched_getaffinity(0, sizeof cpus, &cpus));
    syscall(SYS_get_mempolicy, &policy, nodes, 1024, NULL, 0);
    snprintf(who, sizeof who, "thread %ld", number);
    same(who, "user %u %u %u, group %u %u %u, %s, no new privileges %d, securebits %x, cwd %s %lu, root %lu, umask %o, tsc %d, "
         "memory policy %x of %lx, policy %d priority %d, nice %d, processors %d, ioprio %ld, slack %d, personality %x, "
         "machine checks %d, flusher %d, speculation %x %x, name %s",
         u[0], u[1], u[2], g[0], g[1], g[2], text, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), prctl(PR_GET_SECUREBITS), cwd, here.st_ino,
         top.st_ino, mask, tsc, (unsigned)policy, nodes[0], sched_getscheduler(0), parameters.sched_priority,
         getpriority(PRIO_PROCESS, 0), CPU_COUNT(&cpus), syscall(SYS_ioprio_get, 1, 0), prctl(PR_GET_TIMERSLACK),
         (unsigned)personality(0xffffffff), prctl(PR_MCE_KILL_GET, 0, 0, 0, 0), prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0),
         (unsigned)prctl(PR_GET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, 0, 0, 0),
         (unsigned)prctl(PR_GET_SPECULATION_CTRL, PR_SPEC_INDIRECT_BRANCH, 0, 0, 0), name);
    same("barriers", "%ld", syscall(SYS_membarrier, 1 << 9, 0, 0));
    pthread_mutex_unlock(&lock);
}

static void capabilities(uint64_t effective, uint64_t permitted, uint64_t inheritable) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {
        {effective, permitted, inheritable}, {effective >> 32, permitted >> 32, inheritable >> 32}};
    must(!syscall(SYS_capset, &header, data));
}

static void become(long number) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    unsigned long node = 1;
    int root = !geteuid();
    switch (number) {
        case 1: /* directories of its own */
            must(!unshare(CLONE_FS) && !chdir(directory));
            umask(0137);
            prctl(PR_SET_NAME, "elsewhere");
            if (root) must(!chroot("/tmp"));
            break;
        case 2: /* how it is scheduled */
            must(!setpriority(PRIO_PROCESS, 0, 7) && !sched_setaffinity(0, sizeof one, &one));
            must(!prctl(PR_SET_TIMERSLACK, 123456) && !syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 6));
            if (syscall(SYS_set_mempolicy, MPOL_BIND | MPOL_F_STATIC_NODES, &node, 64)) must(errno == ENOSYS);
            if (root) {
                struct sched_param parameters = {.sched_priority = 3};
                must(!sched_setscheduler(0, SCHED_RR, &parameters));
            }
            break;
        case 3: /* what prctl(2) and personality(2) know */
            must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0));
            prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, PR_SPEC_DISABLE, 0, 0);
            prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_INDIRECT_BRANCH, PR_SPEC_FORCE_DISABLE, 0, 0);
            prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
            must(!prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
            must(personality(ADDR_NO_RANDOMIZE | SHORT_INODE) != -1);
            break;
        case 4: /* another user, behind the back of the C library */
            if (!root) break;
            must(!syscall(SYS_setresgid, 2000, 2001, 2002) && !prctl(PR_SET_KEEPCAPS, 1));
            must(!syscall(SYS_setresuid, 1500, 0, 1502));
            capabilities(1 << CAP_NET_ADMIN | 1 << CAP_DAC_OVERRIDE, 1 << CAP_NET_ADMIN | 1 << CAP_DAC_OVERRIDE | 1 << CAP_KILL,
                         1 << CAP_NET_ADMIN);
            must(!prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN, 0, 0));
            break;
    }
}

static void *run(void *argument) {
    long number = (long)argument;
    become(number);
    while (!quit) {
        check(number);
        rounds[number]++;
        struct timespec time = {0, 2000000};
        syscall(SYS_nanosleep, &time, NULL); /* the C library would ask the time stamp counter */
    }
    return NULL;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    pthread_t thread[THREADS];
    if (geteuid())
        strcpy(directory, "/usr");
    else
        strcpy(directory, "/tmp");
    static char name[4096];
    must(realpath(argv[1], name) || (report("starts"), realpath(argv[1], name)));
    check_progress = name;
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
    umask(027);
    for (long i = 1; i < THREADS; i++) must(!pthread_create(&thread[i], NULL, run, (void *)i));
    for (long last = 0; !stopped(); rest(2)) {
        check(0);
        long least = rounds[1];
        for (int i = 2; i < THREADS; i++)
            if (rounds[i] < least) least = rounds[i];
        if (least > last) tick();
        last = least;
    }
    quit = 1;
    for (int i = 1; i < THREADS; i++) must(!pthread_join(thread[i], NULL));
    return done();
}
