// own_probes.cpp in C: the same probes, made while it runs. It says "up", and fires them at each line that it reads. "-" as
// argument: makes them, takes them away, and tries what is wrong.
#include <stdio.h>
#include <string.h>

#ifdef RAWBPF_TREE
#include "runtime/provider/usdt_provider.h"
#else
#include <rawbpf/usdt_provider.h>
#endif

static int try_what_is_wrong(void) {
    rawbpf_usdt_provider *wrong = rawbpf_usdt_provider_new("1st");
    if (rawbpf_usdt_add(wrong, "a", "s32 s33") || !strstr(rawbpf_usdt_error(wrong), "\"s33\" is no type")) return 2;
    if (rawbpf_usdt_add(wrong, "a", "u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8 u8") || !strstr(rawbpf_usdt_error(wrong), "12"))
        return 3;
    rawbpf_usdt_probe *probe = rawbpf_usdt_add(wrong, "a", " ptr  u64 ");
    if (!probe || *rawbpf_usdt_error(wrong)) return 4;
    rawbpf_usdt_fire(probe, "not loaded", 1L);
    if (rawbpf_usdt_load(wrong) != -1 || !strstr(rawbpf_usdt_error(wrong), "1st")) return 5;
    if (rawbpf_usdt_enabled(probe)) return 6;
    rawbpf_usdt_provider_free(wrong);
    rawbpf_usdt_provider_free(NULL);

    rawbpf_usdt_provider *right = rawbpf_usdt_provider_new("right");
    probe = rawbpf_usdt_add(right, "a", "s32");
    if (rawbpf_usdt_load(right) != 0 || rawbpf_usdt_load(right) != 0 || *rawbpf_usdt_error(right)) return 7;
    rawbpf_usdt_fire(probe, 1);
    rawbpf_usdt_unload(right);
    rawbpf_usdt_fire(probe, 2);
    rawbpf_usdt_provider_free(right);
    puts("right");
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "-") == 0) return try_what_is_wrong();
    rawbpf_usdt_provider *own = rawbpf_usdt_provider_new("own");
    rawbpf_usdt_probe *mixed = rawbpf_usdt_add(own, "mixed", "s32 ptr f64 f32 u8 s8 u64");
    rawbpf_usdt_probe *twelve = rawbpf_usdt_add(own, "twelve", "s32 s64 s16 s8 u32 s64 s32 s8 u16 u64 f64 u8");
    rawbpf_usdt_probe *none = rawbpf_usdt_add(own, "none", "");
    if (rawbpf_usdt_load(own) != 0) {
        fprintf(stderr, "%s\n", rawbpf_usdt_error(own));
        return 1;
    }
    puts("up");
    fflush(stdout);
    for (int c; (c = getchar()) != EOF;) {
        if (c != '\n') continue;
        printf("%d\n", rawbpf_usdt_enabled(mixed));
        fflush(stdout);
        rawbpf_usdt_fire(mixed, -7, "hello", 2.5, -0.25F, 250, -1, ~0UL);
        rawbpf_usdt_fire(twelve, 1, -2L, -3, 'd', 4000000000U, 6L, -7, -8, 65000, 10UL, 11.5, 1);
        rawbpf_usdt_fire(none);
    }
    rawbpf_usdt_provider_free(own);
    return 0;
}
