// Switches that become jump tables (gotox, Linux 6.19), which clang makes since 22. golden jumps-clang22.o is this file:
//
//      clang-22 --target=bpf -mcpu=v4 -mllvm -bpf-min-jump-table-entries=5 -O2 -g -fdebug-compilation-dir=. \
//          -I programs/include -c jumps.bpf.c -o - | llvm-strip -g -o jumps-clang22.o -
//
// The tables' places count from the start of a section, and a program's instructions from its own: so `second` isn't the first
// of its section, and `weigh` is called from both.
#include <rawbpf/bpf.h>

long chosen, seen[8];

static __attribute__((noinline)) int weigh(long n) {
    switch (n) {
    case 0: seen[0] = 5; return 50;
    case 1: seen[1] = 7; return 61;
    case 2: seen[2] = 3; return 72;
    case 3: seen[3] = 9; return 83;
    case 4: seen[4] = 1; return 94;
    case 5: seen[5] = 2; return 105;
    default: seen[6] = 8; return 2;
    }
}

SEC("syscall") int first(void *ctx) { return weigh(chosen); }

SEC("syscall") int second(void *ctx) {
    int sum = 0;
    switch (chosen) {
    case 0:
        seen[1] = 2;
        sum = 1000;
        break;
    case 1:
        seen[2] = 4;
        sum = 3000;
        break;
    case 2:
        seen[3] = 6;
        sum = 2000;
        break;
    case 3:
        seen[4] = 8;
        sum = 5000;
        break;
    case 4:
        seen[5] = 1;
        sum = 7000;
        break;
    case 5:
        seen[6] = 3;
        sum = 6000;
        break;
    case 6:
        seen[7] = 5;
        sum = 4000;
        break;
    }
    return sum + weigh(chosen);
}

LICENSE("GPL");
