/* The plain program: counts, checks its heap, stack, data, time and floating point, keeps one file open. */
#include "check.h"

static uint64_t data[4096];

int main(int argc, char **argv) {
    begin(argc, argv);
    size_t heap_size = 1 << 20;
    uint64_t *heap = malloc(heap_size), stack[512];
    fill(heap, heap_size, 1);
    fill(stack, sizeof stack, 2);
    fill(data, sizeof data, 3);
    volatile double root = 1.0;
    double last = now();
    printf("started\n");
    fflush(stdout);
    while (!stopped()) {
        verify("heap", heap, heap_size, check_ticks * 7 + 1);
        verify("stack", stack, sizeof stack, 2);
        verify("data", data, sizeof data, 3);
        tick();
        fill(heap, heap_size, check_ticks * 7 + 1);
        for (int i = 0; i < 20; i++) root = root / 2 + 1 / root;
        if (root < 1.41421356 || root > 1.41421357) fail("square root of 2 is %.9f", root);
        double t = now();
        if (t < last) fail("the monotonic clock went back from %.6f to %.6f", last, t);
        last = t;
        same("pid", "%d", (int)getpid());
        rest(3);
    }
    return done();
}
