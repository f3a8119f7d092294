/*
 * A large heap, for measurements. usage: heap PROGRESS MEBIBYTES random|zero
 * Every page is written once; each round verifies one page.
 */
#include "check.h"

int main(int argc, char **argv) {
    begin(argc, argv);
    must(argc == 4);
    size_t pages = atol(argv[2]) * 256;
    int random = !strcmp(argv[3], "random");
    uint64_t *memory = malloc(pages * 4096);
    must(memory);
    for (size_t p = 0; p < pages; p++) {
        if (random)
            fill(memory + p * 512, 4096, p * 512);
        else
            memset(memory + p * 512, 0, 4096);
        __asm__ volatile("" : : "r"(memory + p * 512) : "memory");
    }
    for (uint64_t n = 1; !stopped(); n++) {
        size_t p = mix(n) % pages;
        if (random)
            verify("heap", memory + p * 512, 4096, p * 512);
        else
            for (int i = 0; i < 512; i++) must(memory[p * 512 + i] == 0);
        tick();
        rest(2);
    }
    for (size_t p = 0; random && p < pages; p++) verify("heap", memory + p * 512, 4096, p * 512);
    return done();
}
