/* Linked beside tests/install/packets.c: how much the library held at once, by its hook; said at the end. */
#include <rawbpf/core.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static size_t held, peak;

static void *take(size_t size, void *context) {
    void *memory = malloc(size);
    (void)context;
    held += malloc_usable_size(memory);
    if (held > peak) peak = held;
    return memory;
}
static void give(void *memory, void *context) {
    (void)context;
    held -= malloc_usable_size(memory);
    free(memory);
}
__attribute__((constructor)) static void hook(void) { rawbpf_set_memory(take, give, NULL); }
__attribute__((destructor)) static void say(void) { fprintf(stderr, "%zu\n", peak); }
