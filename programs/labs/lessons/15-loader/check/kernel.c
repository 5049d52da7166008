// Stands in for the kernel: the student's bpf(2) calls come here, because a program's own syscall() is taken before the C
// library's. It looks at the instructions of BPF_PROG_LOAD beside those of the file (check/program.hex), where the map is at 1, 6
// and 8.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { kMap = 77, kProgram = 78, kCount = 12 };
static const struct bpf_insn kFile[kCount] = {
    {0xb7, 3, 0, 0, 5}, {0x18, 1, 0, 0, 0}, {0, 0, 0, 0, 0},    {0xb7, 4, 0, 0, 0x18}, {0xbf, 5, 1, 0, 0}, {0xb7, 2, 0, 0, 9},
    {0x18, 2, 0, 0, 0}, {0, 0, 0, 0, 0},    {0x18, 6, 0, 0, 0}, {0, 0, 0, 0, 0},       {0xb7, 0, 0, 0, 2}, {0x95, 0, 0, 0, 0},
};
static int loaded;

static void wrong(int i, const char *what) {
    printf("instruction %d: %s, lab.c, in relocate()\n", i, what);
    fflush(stdout);
    _Exit(1);
}

static long load(const union bpf_attr *attr) {
    const struct bpf_insn *code = (const struct bpf_insn *)(uintptr_t)attr->insns;
    if (attr->insn_cnt != kCount) {
        printf("BPF_PROG_LOAD: expected 12 instructions, got %u\n", attr->insn_cnt);
        _Exit(1);
    }
    for (int i = 0; i < kCount; ++i) {
        int address = kFile[i].code == 0x18;
        if (!address && i && kFile[i - 1].code == 0x18) {
            if (memcmp(&code[i], &kFile[i], 8) != 0) wrong(i, "this is the second half of `r1 = 0 ll`; it must stay as it is");
            continue;
        }
        if (!address && memcmp(&code[i], &kFile[i], 8) != 0)
            wrong(i, "it isn't one that loads an address (opcode 0x18), and must stay as it is");
        if (!address) continue;
        if (code[i].code != 0x18 || code[i].dst_reg != kFile[i].dst_reg || code[i].off != 0)
            wrong(i, "opcode, register and distance must stay as they are");
        if (code[i].src_reg != BPF_PSEUDO_MAP_FD)
            wrong(i, "the source register must say BPF_PSEUDO_MAP_FD: otherwise this is only a number");
        if (code[i].imm != kMap) wrong(i, "the number must be the map's file descriptor");
    }
    if (!attr->license || strcmp((const char *)(uintptr_t)attr->license, "GPL") != 0) {
        printf("BPF_PROG_LOAD: the license must be GPL\n");
        _Exit(1);
    }
    loaded = 1;
    return kProgram;
}

long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    int command = va_arg(list, int);
    union bpf_attr *attr = va_arg(list, union bpf_attr *);
    va_end(list);
    errno = EINVAL;
    if (number != __NR_bpf) return -1;
    switch (command) {
    case BPF_MAP_CREATE: return attr->map_type == BPF_MAP_TYPE_ARRAY && attr->key_size == 4 && attr->value_size == 8 ? kMap : -1;
    case BPF_PROG_LOAD: return load(attr);
    case BPF_PROG_TEST_RUN:
        if (!loaded || attr->test.prog_fd != kProgram || attr->test.repeat != 5) return -1;
        attr->test.retval = 2;
        return 0;
    case BPF_MAP_LOOKUP_ELEM:
        if (attr->map_fd != kMap) return -1;
        *(uint64_t *)(uintptr_t)attr->value = 5;
        return 0;
    default: return -1;
    }
}
