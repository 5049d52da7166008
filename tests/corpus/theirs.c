/* What libbpf makes of an object, program by program: for comparing with `rawbpf load --each --json`.
 *
 *      theirs OBJECT...      one JSON line a program: {"program","section","loaded","errno","insns","insn_hash"}
 *      theirs --whole OBJECT loads it as a whole, with what it pins: status 0 when that went well
 *
 * Each program is loaded alone, in an object opened anew. The final instructions are seen on their way to the kernel: libbpf is
 * linked statically, and its calls of syscall(2) are wrapped by the linker (-Wl,--wrap=syscall), so they are known also when the
 * kernel refuses them. The hash is the one that rawbpf prints: FNV-1a 64 with maps by position and other descriptors as 0.
 *
 * Built for comparison only; nothing of rawbpf depends on it.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

enum { MAX_TABLES = 64 };
static struct bpf_object *object;  /* being loaded */
static struct bpf_program *wanted; /* its only program to load; struct_ops may bring others along */
static bool seen;
static uint32_t seen_insns;
static uint64_t seen_hash;
static char last_words[512]; /* of libbpf's warnings */

long __real_syscall(long number, ...);

static int position_of(int fd) {
    const struct bpf_map *map;
    int at = 0;
    bpf_object__for_each_map(map, object) {
        if (bpf_map__fd(map) == fd) return at;
        at++;
    }
    return -1;
}

/* libbpf makes a map for each jump table (1.7), which isn't one of the object's: they are numbered behind those, by first use. */
static int table_of(int fd, int *known, int *count) {
    enum { INSN_ARRAY = 34 };
    struct bpf_map_info info = {0};
    uint32_t size = sizeof info;
    const struct bpf_map *map;
    int maps = 0, at = 0;
    while (at < *count && known[at] != fd) at++;
    if (at == *count) {
        if (*count == MAX_TABLES || bpf_obj_get_info_by_fd(fd, &info, &size) != 0 || info.type != INSN_ARRAY) return -1;
        known[(*count)++] = fd;
    }
    bpf_object__for_each_map(map, object) maps++;
    return maps + at;
}

static void hash_of(const struct bpf_insn *insns, uint32_t count) {
    uint64_t hash = 0xcbf29ce484222325ull;
    int tables[MAX_TABLES], table_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct bpf_insn insn = insns[i];
        bool wide = insn.code == (BPF_LD | BPF_IMM | BPF_DW);
        if (wide && (insn.src_reg == BPF_PSEUDO_MAP_FD || insn.src_reg == BPF_PSEUDO_MAP_VALUE)) {
            int position = position_of(insn.imm);
            if (position < 0) position = table_of(insn.imm, tables, &table_count);
            if (position >= 0) insn.imm = position; /* else a number that hand-written code made up */
        }
        if (insn.code == (BPF_JMP | BPF_CALL) && insn.src_reg == BPF_PSEUDO_KFUNC_CALL) insn.off = 0;
        if (i > 0 && insns[i - 1].code == (BPF_LD | BPF_IMM | BPF_DW) && insns[i - 1].src_reg == BPF_PSEUDO_BTF_ID) insn.imm = 0;
        for (size_t b = 0; b < sizeof insn; b++) hash = (hash ^ ((const uint8_t *)&insn)[b]) * 0x100000001b3ull;
    }
    seen = true;
    seen_insns = count;
    seen_hash = hash;
}

long __wrap_syscall(long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number == __NR_bpf && a[0] == BPF_PROG_LOAD && object && wanted && !seen) {
        const union bpf_attr *attr = (const union bpf_attr *)a[1];
        if ((uintptr_t)attr->insns == (uintptr_t)bpf_program__insns(wanted))
            hash_of((const struct bpf_insn *)(uintptr_t)attr->insns, attr->insn_cnt);
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int remember(enum libbpf_print_level level, const char *text, va_list args) {
    if (level == LIBBPF_WARN) vsnprintf(last_words, sizeof last_words, text, args);
    return 0;
}

static void quote(const char *text) {
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

/* The n-th program alone; false when there is none. */
static bool load_one(const char *path, int n) {
    LIBBPF_OPTS(bpf_object_open_opts, options);
    options.pin_root_path = "/nowhere"; /* pinned maps are nobody's business here */
    object = bpf_object__open_file(path, &options);
    if (!object) return false;
    struct bpf_program *program, *chosen = NULL;
    struct bpf_map *map;
    int at = 0;
    bpf_object__for_each_program(program, object) {
        bpf_program__set_autoload(program, at == n);
        if (at == n) chosen = program;
        at++;
    }
    bool found = chosen != NULL;
    if (found) {
        bpf_object__for_each_map(map, object) bpf_map__set_pin_path(map, NULL);
        wanted = chosen;
        seen = false;
        last_words[0] = 0;
        int err = bpf_object__load(object);
        bool loaded = err == 0 && bpf_program__fd(chosen) >= 0;
        printf("{\"program\":");
        quote(bpf_program__name(chosen));
        printf(",\"section\":");
        quote(bpf_program__section_name(chosen));
        printf(",\"loaded\":%s,\"errno\":%d", loaded ? "true" : "false", loaded ? 0 : -err);
        if (seen)
            printf(",\"insns\":%u,\"insn_hash\":\"%016llx\"", seen_insns, (unsigned long long)seen_hash);
        else
            printf(",\"insns\":null,\"insn_hash\":null");
        printf(",\"reason\":");
        quote(last_words);
        puts("}");
        fflush(stdout);
    }
    wanted = NULL;
    bpf_object__close(object);
    object = NULL;
    return found;
}

/* Open only: the programs that there are. */
int main(int argc, char **argv) {
    libbpf_set_print(remember);
    if (argc == 3 && strcmp(argv[1], "--whole") == 0) {
        struct bpf_object *whole = bpf_object__open(argv[2]);
        int failed = !whole || bpf_object__load(whole) != 0;
        if (failed) fputs(last_words, stdout);
        return failed;
    }
    for (int i = 1; i < argc; i++) {
        object = NULL;
        struct bpf_object *probe = bpf_object__open(argv[i]);
        if (!probe) {
            printf("{\"open\":false,\"errno\":%d,\"reason\":", errno);
            quote(last_words);
            puts("}");
            continue;
        }
        bpf_object__close(probe);
        for (int n = 0; load_one(argv[i], n); n++) {
        }
    }
    return 0;
}
