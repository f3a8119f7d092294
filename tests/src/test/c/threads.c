/*
 * Threads with everything the C library keeps about them: normal, recursive, error-checking and robust mutexes,
 * condition variables, barriers, read-write locks, semaphores, thread-local storage, threads that end and threads that
 * begin all the time, and threads that keep values in AVX registers while they spin.
 *
 * usage: threads PROGRESS [COUNT]
 */
#include "check.h"
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

enum { WAITERS = 8, BARRIER = 4, SPINNERS = 2 };

static int total = 64;
static pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER, recursive, checking, robust, gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t held, dead;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static long shared[4], whose_turn, turns, rounds[BARRIER], posted, births, pair[2];
static volatile int quit;
static __thread volatile uint64_t local[64];
static __thread long local_count;
static pthread_key_t key;
static pid_t tids[256];

static void check_thread(long id) {
    for (int i = 0; i < 64; i++)
        if (local[i] != mix(id * 1000 + i)) fail("thread %ld: thread-local word %d changed", id, i);
    if (pthread_getspecific(key) != (void *)(id + 1)) fail("thread %ld: its pthread key changed", id);
    if (tids[id] != syscall(SYS_gettid)) fail("thread %ld: its tid was %d and is %d", id, (int)tids[id], (int)syscall(SYS_gettid));
}

static void enter(long id) {
    tids[id] = syscall(SYS_gettid);
    for (int i = 0; i < 64; i++) local[i] = mix(id * 1000 + i);
    pthread_setspecific(key, (void *)(id + 1));
    char name[16];
    snprintf(name, sizeof name, "worker-%ld", id);
    pthread_setname_np(pthread_self(), name);
}

static void check_name(long id) {
    char name[16], expected[16];
    snprintf(expected, sizeof expected, "worker-%ld", id);
    must(!pthread_getname_np(pthread_self(), name, sizeof name));
    if (strcmp(name, expected)) fail("thread %ld: its name was %s and is %s", id, expected, name);
}

/* Takes every kind of mutex in turn. */
static void *worker(void *argument) {
    long id = (long)argument;
    enter(id);
    while (!quit) {
        must(!pthread_mutex_lock(&normal));
        shared[0]++;
        must(!pthread_mutex_unlock(&normal));
        must(!pthread_mutex_lock(&recursive));
        must(!pthread_mutex_lock(&recursive));
        must(!pthread_mutex_lock(&recursive));
        shared[1]++;
        must(!pthread_mutex_unlock(&recursive));
        must(!pthread_mutex_unlock(&recursive));
        must(!pthread_mutex_unlock(&recursive));
        must(!pthread_mutex_lock(&checking));
        must(pthread_mutex_lock(&checking) == EDEADLK);
        shared[2]++;
        must(!pthread_mutex_unlock(&checking));
        must(pthread_mutex_unlock(&checking) == EPERM);
        int r = pthread_mutex_lock(&robust);
        if (r == EOWNERDEAD) {
            must(!pthread_mutex_consistent(&robust));
            r = 0;
        }
        must(!r);
        shared[3]++;
        must(!pthread_mutex_unlock(&robust));
        must(pthread_mutex_trylock(&held) == EBUSY);
        must(!pthread_rwlock_rdlock(&rwlock));
        if (pair[0] != pair[1]) fail("the read-write lock let a writer in beside a reader");
        must(!pthread_rwlock_unlock(&rwlock));
        must(!sem_post(&semaphore));
        local_count++;
        check_thread(id);
        check_name(id);
        rest(4);
    }
    return (void *)(id * 3);
}

/* Hands a turn round a ring with a condition variable. */
static void *waiter(void *argument) {
    long id = (long)argument, place = id - 1;
    enter(id);
    must(!pthread_mutex_lock(&gate));
    while (!quit) {
        while (whose_turn % WAITERS != place && !quit) must(!pthread_cond_wait(&turn, &gate));
        if (quit) break;
        whose_turn++;
        turns++;
        must(!pthread_cond_broadcast(&turn));
        check_thread(id);
        pthread_mutex_unlock(&gate);
        rest(1);
        must(!pthread_mutex_lock(&gate));
    }
    pthread_cond_broadcast(&turn);
    pthread_mutex_unlock(&gate);
    return (void *)(id * 3);
}

static void *barrierer(void *argument) {
    long id = (long)argument, place = (id - 1) % BARRIER;
    enter(id);
    int last = 0;
    while (!last) {
        rounds[place]++;
        int serial = pthread_barrier_wait(&barrier);
        must(serial == 0 || serial == PTHREAD_BARRIER_SERIAL_THREAD);
        for (int i = 0; i < BARRIER; i++)
            if (rounds[i] != rounds[place]) fail("the barrier let a thread through early");
        static volatile int decision;
        if (serial == PTHREAD_BARRIER_SERIAL_THREAD) decision = quit;
        pthread_barrier_wait(&barrier);
        last = decision;
        check_thread(id);
        rest(2);
    }
    return (void *)(id * 3);
}

/* Keeps a pattern in all vector registers and never enters the kernel. */
static void *spinner(void *argument) {
    long id = (long)argument;
    enter(id);
#ifdef __x86_64__
    uint32_t a, b = 0, c, d;
    int wide = __builtin_cpu_supports("avx2"), wider = __builtin_cpu_supports("avx512f");
    (void)a, (void)c, (void)d;
    uint64_t pattern[8] __attribute__((aligned(64))), out[8] __attribute__((aligned(64)));
    while (!quit) {
        for (int i = 0; i < 8; i++) pattern[i] = mix(id + i + shared[0]);
        for (int spin = 0; spin < 200 && !quit; spin++) {
            if (wider) {
                __asm__ volatile(
                    "vmovdqu64 (%1), %%zmm31\n kmovw %%eax, %%k5\n mov $200000, %%ecx\n 1: dec %%ecx\n jnz 1b\n vmovdqu64 %%zmm31, (%2)\n kmovw %%k5, %%ebx\n"
                    : "=b"(b) : "r"(pattern), "r"(out), "a"(0x5a5a) : "rcx", "memory");
                if (b != 0x5a5a) fail("mask register k5 is %x", b);
                if (memcmp(pattern, out, 64)) fail("register zmm31 changed while it spun");
            }
            if (wide) {
                __asm__ volatile(
                    "vmovdqu (%0), %%ymm7\n vmovdqu (%0), %%ymm15\n mov $200000, %%ecx\n 1: dec %%ecx\n jnz 1b\n"
                    "vpxor %%ymm7, %%ymm15, %%ymm14\n vmovdqu %%ymm14, 32(%1)\n vmovdqu %%ymm7, (%1)\n vzeroupper\n"
                    : : "r"(pattern), "r"(out) : "rcx", "memory");
                if (memcmp(pattern, out, 32)) fail("register ymm7 changed while it spun");
                if (out[4] | out[5] | out[6] | out[7]) fail("register ymm15 changed while it spun");
            }
            __asm__ volatile(
                "movdqu (%0), %%xmm3\n mov $200000, %%ecx\n 1: dec %%ecx\n jnz 1b\n movdqu %%xmm3, (%1)\n"
                : : "r"(pattern), "r"(out) : "rcx", "xmm3", "memory");
            if (memcmp(pattern, out, 16)) fail("register xmm3 changed while it spun");
            long double x = 0;
            __asm__ volatile("fldpi\n mov $200000, %%ecx\n 1: dec %%ecx\n jnz 1b\n fstpt %0\n" : "=m"(x) : : "rcx", "st");
            if (x < 3.14159265358979L || x > 3.14159265358980L) fail("the x87 stack changed while it spun");
        }
        check_thread(id);
        rest(5);
    }
#endif
    return (void *)(id * 3);
}

static void *short_lived(void *argument) {
    local[0] = (uint64_t)argument;
    pthread_setspecific(key, argument);
    rest(1);
    must(local[0] == (uint64_t)argument);
    must(pthread_getspecific(key) == argument);
    return (void *)((long)argument + 1);
}

/* Threads end and begin all the time. */
static void *parent(void *argument) {
    long id = (long)argument;
    enter(id);
    while (!quit) {
        pthread_t thread[3];
        void *result;
        for (long i = 0; i < 3; i++) must(!pthread_create(&thread[i], NULL, short_lived, (void *)(births + i)));
        for (long i = 0; i < 3; i++) {
            must(!pthread_join(thread[i], &result));
            must((long)result == births + i + 1);
        }
        births += 3;
        check_thread(id);
        rest(2);
    }
    return (void *)(id * 3);
}

/* Ends while it owns a robust mutex. */
static void *quitter(void *argument) {
    (void)argument;
    must(!pthread_mutex_lock(&dead));
    return NULL;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    if (argc > 2) total = atoi(argv[2]);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checking, &attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_NORMAL);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attributes);
    pthread_mutex_init(&held, &attributes);
    pthread_mutex_init(&dead, &attributes);
    pthread_barrier_init(&barrier, NULL, BARRIER);
    sem_init(&semaphore, 0, 0);
    pthread_key_create(&key, NULL);
    must(!pthread_mutex_lock(&held));
    pthread_t quits;
    must(!pthread_create(&quits, NULL, quitter, NULL));
    must(!pthread_join(quits, NULL));

    pthread_t threads[256];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    enter(0);
    long workers = total - 1 - WAITERS - BARRIER - SPINNERS - 1, id = 1;
    if (workers < 1) workers = 1;
    for (int i = 0; i < WAITERS; i++, id++) must(!pthread_create(&threads[id], &small, waiter, (void *)id));
    for (int i = 0; i < BARRIER; i++, id++) must(!pthread_create(&threads[id], &small, barrierer, (void *)id));
    for (int i = 0; i < SPINNERS; i++, id++) must(!pthread_create(&threads[id], &small, spinner, (void *)id));
    must(!pthread_create(&threads[id], &small, parent, (void *)id));
    id++;
    for (int i = 0; i < workers; i++, id++) must(!pthread_create(&threads[id], &small, worker, (void *)id));

    long before[4] = {0};
    while (!stopped()) {
        for (int i = 0; i < 40 && !sem_trywait(&semaphore); i++) posted++;
        must(!pthread_rwlock_wrlock(&rwlock));
        pair[0]++;
        rest(1);
        pair[1]++;
        must(!pthread_rwlock_unlock(&rwlock));
        check_thread(0);
        must(pthread_mutex_trylock(&normal) == EBUSY || !pthread_mutex_unlock(&normal));
        rest(5);
        if (shared[0] > before[0]) tick(); /* only if the others live */
        before[0] = shared[0];
    }
    must(pthread_mutex_lock(&dead) == EOWNERDEAD);
    must(!pthread_mutex_consistent(&dead));
    must(!pthread_mutex_unlock(&dead));
    long turns_then = turns, births_then = births, rounds_then = rounds[0];
    for (int i = 0; i < 2000 && (turns == turns_then || births == births_then || rounds[0] == rounds_then); i++) rest(1);
    if (turns == turns_then) fail("the ring of condition variables stands still at %ld", turns);
    if (births == births_then) fail("no thread is born any more after %ld", births);
    if (rounds[0] == rounds_then) fail("the barrier stands still after %ld rounds", rounds[0]);
    quit = 1;
    pthread_mutex_lock(&gate);
    pthread_cond_broadcast(&turn);
    pthread_mutex_unlock(&gate);
    for (long i = 1; i < id; i++) {
        void *result;
        must(!pthread_join(threads[i], &result));
        if ((long)result != i * 3) fail("thread %ld ended with %ld", i, (long)result);
    }
    must(!pthread_mutex_unlock(&held));
    return done();
}
