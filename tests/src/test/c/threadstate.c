/*
 * What the kernel keeps for a thread on behalf of the C library: restartable sequences (they must go on to follow the
 * processor the thread runs on), the robust list, the address that is cleared at the thread's end, the base of
 * thread-local storage, and its own floating-point modes.
 */
#include "check.h"
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int quit;
static long rounds[3];

static void check(int number) {
    char key[64];
    void *robust = NULL, *clear = NULL;
    size_t length = 0;
    must(!syscall(SYS_get_robust_list, 0, &robust, &length));
    if (prctl(PR_GET_TID_ADDRESS, &clear)) clear = NULL;
    unsigned modes = fegetround();
#ifdef __x86_64__
    unsigned short control;
    __asm__ volatile("fnstcw %0" : "=m"(control));
    modes |= (unsigned)control << 16 | (_mm_getcsr() & 0xffc0);
#endif
    snprintf(key, sizeof key, "thread %d", number);
    same(key, "robust list %p %zu, clear address %p, thread pointer %p, floating-point modes %x", robust, length, clear,
         __builtin_thread_pointer(), modes);
}

/* Moves to each processor in turn and asks the shared area where it is. */
static void wander(cpu_set_t *all) {
    if (__rseq_size == 0) return; /* the library did not register any */
    volatile struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
    for (int i = 0; i < 64; i++) {
        if (!CPU_ISSET(i, all)) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        must(!sched_setaffinity(0, sizeof one, &one));
        if ((int)area->cpu_id != i) fail("the area of rseq(2) says processor %d on processor %d", (int)area->cpu_id, i);
        if (sched_getcpu() != i) fail("sched_getcpu says %d on processor %d", sched_getcpu(), i);
    }
    must(!sched_setaffinity(0, sizeof *all, all));
}

static void *run(void *argument) {
    int number = (int)(long)argument;
    fesetround(number == 1 ? FE_UPWARD : FE_TOWARDZERO);
    cpu_set_t all;
    must(!sched_getaffinity(0, sizeof all, &all));
    while (!quit) {
        pthread_mutex_lock(&lock);
        check(number);
        rounds[number]++;
        pthread_mutex_unlock(&lock);
        wander(&all);
        rest(2);
    }
    return NULL;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    pthread_t thread[3];
    for (long i = 1; i < 3; i++) must(!pthread_create(&thread[i], NULL, run, (void *)i));
    cpu_set_t all;
    must(!sched_getaffinity(0, sizeof all, &all));
    long last = 0;
    while (!stopped()) {
        pthread_mutex_lock(&lock);
        check(0);
        long sum = rounds[1] < rounds[2] ? rounds[1] : rounds[2];
        pthread_mutex_unlock(&lock);
        wander(&all);
        if (sum > last) tick();
        last = sum;
        rest(2);
    }
    quit = 1;
    for (int i = 1; i < 3; i++) must(!pthread_join(thread[i], NULL)); /* the kernel clears the address and wakes us */
    return done();
}
