/* A kernel that says yes at once: system calls of bpf(2) that would change something are answered here, so that what a loader
 * does by itself can be timed. The linker sends every syscall(2) of libbpf's and of ours through __wrap_syscall
 * (-Wl,--wrap=syscall).
 */
#include "tests/bench/dry.h"

#include <linux/bpf.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef RAWBPF_BENCH_LIBBPF
#include <bpf/libbpf.h>
#endif

long __real_syscall(long number, ...);
static int dry;

/* Something that can be closed, duplicated and mapped: sparse, and as large as an arena. */
static long stand_in(void) {
    int fd = memfd_create("dry", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)1 << 32) != 0) return -1;
    return fd;
}

static long answer(long command) {
    switch (command) {
    case BPF_MAP_CREATE:
    case BPF_PROG_LOAD:
    case BPF_BTF_LOAD: return stand_in();
    case BPF_MAP_UPDATE_ELEM:
    case BPF_MAP_FREEZE:
    case BPF_PROG_BIND_MAP: return 0;
    default: return 1; /* ask the kernel */
    }
}

long __wrap_syscall(long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (dry && number == __NR_bpf) {
        long told = answer(a[0]);
        if (told != 1) return told;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void dry_kernel(int on) { dry = on; }

#ifdef RAWBPF_BENCH_LIBBPF
static int silent(enum libbpf_print_level level, const char *text, va_list args) {
    (void)level, (void)text, (void)args;
    return 0;
}

int dry_libbpf(const char *path) {
    libbpf_set_print(silent);
    struct bpf_object *object = bpf_object__open(path);
    if (!object) return 0;
    struct bpf_map *map;
    bpf_object__for_each_map(map, object) bpf_map__set_pin_path(map, NULL);
    int loaded = bpf_object__load(object) == 0;
    bpf_object__close(object);
    return loaded;
}
#endif
