// For skeleton.cpp: every kind of global variable, a typed map, and a program that runs when it is told to (BPF_PROG_RUN).
#include <rawbpf/bpf.h>

enum color { RED, GREEN = 7 };
struct point {
    char tag;
    long x;
    enum color color;
    _Bool on : 1;
};

const volatile int step = 1;   // .rodata
struct point last = {'a', 5};  // .data
unsigned long hits;            // .bss
static volatile char names[5]; // .bss, an array

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16);
    __type(key, __u32);
    __type(value, struct point);
} points SEC(".maps");

SEC("raw_tp/sys_enter")
int on_enter(void *ctx) {
    __u32 key = hits;
    hits += step;
    last.x += hits;
    last.color = GREEN;
    last.on = 1;
    names[0] = 'n';
    bpf_map_update_elem(&points, &key, &last, 0);
    return 0;
}

char LICENSE[] SEC("license") = "GPL";
