/* What running.bench needs of the kernel alone: system calls, and nothing done with what they answer.
 *
 *   objects-floor programs           BPF_PROG_GET_NEXT_ID, _GET_FD_BY_ID, _OBJ_GET_INFO_BY_FD of every program: how many there are
 *   objects-floor load PIN N         N programs of two instructions, pinned as PIN_0, PIN_1 ...
 *   objects-floor fill PIN N         a hash map of N entries, 8 bytes each, pinned
 *   objects-floor entries PIN        BPF_MAP_LOOKUP_BATCH until the end: how many there are
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PORTION = 16384 };

static long bpf(int command, union bpf_attr *attr) { return syscall(SYS_bpf, command, attr, sizeof *attr); }
static long must(long answer, const char *what) {
    if (answer < 0) {
        fprintf(stderr, "objects-floor: %s: %s\n", what, strerror(errno));
        exit(1);
    }
    return answer;
}
static void pin(int fd, const char *path) {
    union bpf_attr attr = {.pathname = (uintptr_t)path, .bpf_fd = (uint32_t)fd};
    must(bpf(BPF_OBJ_PIN, &attr), path);
}

static void programs(void) {
    int count = 0;
    for (uint32_t id = 0;; ++count) {
        union bpf_attr next = {.start_id = id};
        if (bpf(BPF_PROG_GET_NEXT_ID, &next) < 0) break;
        id = next.next_id;
        union bpf_attr open = {.prog_id = id};
        const long fd = bpf(BPF_PROG_GET_FD_BY_ID, &open);
        if (fd < 0) continue;
        struct bpf_prog_info info;
        memset(&info, 0, sizeof info);
        union bpf_attr ask = {.info = {.bpf_fd = (uint32_t)fd, .info_len = sizeof info, .info = (uintptr_t)&info}};
        must(bpf(BPF_OBJ_GET_INFO_BY_FD, &ask), "a program's information");
        close((int)fd);
    }
    printf("%d\n", count);
}
static void load(const char *path, int n) {
    const struct bpf_insn insns[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K}, {.code = BPF_JMP | BPF_EXIT}};
    for (int i = 0; i < n; ++i) {
        char name[4096];
        union bpf_attr attr = {
            .prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = 2, .insns = (uintptr_t)insns, .license = (uintptr_t) "GPL"};
        snprintf(attr.prog_name, sizeof attr.prog_name, "floor_%d", i);
        const int fd = (int)must(bpf(BPF_PROG_LOAD, &attr), "a program");
        snprintf(name, sizeof name, "%s_%d", path, i);
        pin(fd, name);
        close(fd);
    }
}
static void fill(const char *path, uint32_t n) {
    union bpf_attr make = {.map_type = BPF_MAP_TYPE_HASH, .key_size = 8, .value_size = 8, .max_entries = n, .map_name = "floor"};
    const int fd = (int)must(bpf(BPF_MAP_CREATE, &make), "a map");
    static uint64_t keys[PORTION], values[PORTION];
    for (uint32_t at = 0; at < n;) {
        const uint32_t some = n - at < PORTION ? n - at : PORTION;
        for (uint32_t i = 0; i < some; ++i) keys[i] = at + i, values[i] = (uint64_t)(at + i) * 3;
        union bpf_attr attr = {
            .batch = {.keys = (uintptr_t)keys, .values = (uintptr_t)values, .count = some, .map_fd = (uint32_t)fd}};
        must(bpf(BPF_MAP_UPDATE_BATCH, &attr), "entries");
        at += some;
    }
    pin(fd, path);
}
static void entries(const char *path) {
    union bpf_attr open = {.pathname = (uintptr_t)path};
    const int fd = (int)must(bpf(BPF_OBJ_GET, &open), path);
    static uint64_t keys[PORTION], values[PORTION];
    uint64_t in = 0, out = 0, count = 0;
    for (int first = 1;; first = 0) {
        union bpf_attr attr = {.batch = {.in_batch = first ? 0 : (uintptr_t)&in,
                                         .out_batch = (uintptr_t)&out,
                                         .keys = (uintptr_t)keys,
                                         .values = (uintptr_t)values,
                                         .count = PORTION,
                                         .map_fd = (uint32_t)fd}};
        const long answer = bpf(BPF_MAP_LOOKUP_BATCH, &attr);
        if (answer < 0 && errno != ENOENT) must(answer, "a portion");
        count += attr.batch.count;
        in = out;
        if (answer < 0) break;
    }
    printf("%llu\n", (unsigned long long)count);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "programs") == 0)
        programs();
    else if (argc == 4 && strcmp(argv[1], "load") == 0)
        load(argv[2], atoi(argv[3]));
    else if (argc == 4 && strcmp(argv[1], "fill") == 0)
        fill(argv[2], (uint32_t)atoi(argv[3]));
    else if (argc == 3 && strcmp(argv[1], "entries") == 0)
        entries(argv[2]);
    else
        return 2;
    return 0;
}
