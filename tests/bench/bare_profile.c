/* A profiler's start and nothing else: the calls that have to be made before the first sample, from a plan (bare_plan.h) that
 * says which maps and which program. Maps, BTF, program; the ring mapped; a sideband event with its ring and a clock with the
 * program a CPU; epoll; the clocks switched on; then one byte to a descriptor. What the real thing takes more than this is its
 * own doing.
 *
 * Usage: bare-profile PLAN READY_FD
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bare_plan.h"

#define PSEUDO_MAP_FD 1
#define PSEUDO_MAP_VALUE 2

static int maps[64], map_count, ring = -1, program = -1, btf = -1;
static uint32_t ring_size;

static long must(long result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "bare-profile: %s: %s\n", what, strerror(errno));
        exit(1);
    }
    return result;
}

static long bpf(int command, union bpf_attr *attr) { return syscall(__NR_bpf, command, attr, sizeof *attr); }

static void do_step(uint32_t kind, char *body, uint32_t size) {
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    if (kind == kBareMap) {
        struct BareMap *map = (struct BareMap *)body;
        attr.map_type = map->type;
        attr.key_size = map->key_size;
        attr.value_size = map->value_size;
        attr.max_entries = map->max_entries;
        attr.map_flags = map->flags;
        if (map->inner) attr.inner_map_fd = (uint32_t)maps[map->inner - 1];
        if (map->value_type) {
            attr.btf_fd = (uint32_t)btf;
            attr.btf_key_type_id = map->key_type;
            attr.btf_value_type_id = map->value_type;
        }
        if (map_count == 64) exit(1);
        const int fd = (int)must(bpf(BPF_MAP_CREATE, &attr), "map");
        maps[map_count++] = fd;
        if (map->type == BPF_MAP_TYPE_RINGBUF) {
            ring = fd;
            ring_size = map->max_entries;
        }
    } else if (kind == kBareUpdate) {
        struct BareUpdate *update = (struct BareUpdate *)body;
        attr.map_fd = (uint32_t)maps[update->map];
        attr.key = (uint64_t)(update + 1);
        attr.value = (uint64_t)(update + 1) + update->key_size;
        attr.flags = update->flags;
        must(bpf(BPF_MAP_UPDATE_ELEM, &attr), "update");
    } else if (kind == kBareFreeze) {
        attr.map_fd = (uint32_t)maps[*(uint32_t *)body];
        must(bpf(BPF_MAP_FREEZE, &attr), "freeze");
    } else if (kind == kBareBtf) {
        attr.btf = (uint64_t)body;
        attr.btf_size = size;
        btf = (int)must(bpf(BPF_BTF_LOAD, &attr), "BTF");
    } else if (kind == kBareProgram) {
        struct BareProgram *head = (struct BareProgram *)body;
        struct bpf_insn *insns = (struct bpf_insn *)(head + 1);
        for (uint32_t i = 0; i < head->insns; ++i) {
            if (insns[i].code != 0x18) continue;
            if (insns[i].src_reg == PSEUDO_MAP_FD || insns[i].src_reg == PSEUDO_MAP_VALUE) insns[i].imm = maps[insns[i].imm];
            ++i;
        }
        attr.prog_type = head->type;
        attr.insns = (uint64_t)insns;
        attr.insn_cnt = head->insns;
        attr.license = (uint64_t) "Dual MIT/GPL";
        if (btf >= 0) {
            attr.prog_btf_fd = (uint32_t)btf;
            attr.func_info = (uint64_t)(insns + head->insns);
            attr.func_info_rec_size = head->func_info_rec_size;
            attr.func_info_cnt = head->func_info_cnt;
            attr.line_info = attr.func_info + (uint64_t)head->func_info_rec_size * head->func_info_cnt;
            attr.line_info_rec_size = head->line_info_rec_size;
            attr.line_info_cnt = head->line_info_cnt;
        }
        program = (int)must(bpf(BPF_PROG_LOAD, &attr), "program");
    }
}

static int event_open(struct perf_event_attr *attr, int cpu) {
    attr->size = sizeof *attr;
    return (int)must(syscall(__NR_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC), "perf_event_open");
}

static void watch(int epoll, int fd) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    must(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const int plan = (int)must(open(argv[1], O_RDONLY), "plan");
    struct stat st;
    must(fstat(plan, &st), "plan");
    char *at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, plan, 0), *end = at + st.st_size;
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    must(bpf(BPF_ENABLE_STATS, &attr), "stats");
    while (at < end) {
        const uint32_t *head = (const uint32_t *)at;
        do_step(head[0], at + 8, head[1]);
        at += 8 + (head[1] + 7) / 8 * 8;
    }
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const int epoll = (int)must(epoll_create1(EPOLL_CLOEXEC), "epoll");
    if (mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0) == MAP_FAILED ||
        mmap(NULL, page + 2 * (size_t)ring_size, PROT_READ, MAP_SHARED, ring, (off_t)page) == MAP_FAILED)
        must(-1, "ring");
    watch(epoll, ring);
    const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int *clocks = calloc((size_t)cpus, sizeof *clocks);
    for (int cpu = 0; cpu < cpus; ++cpu) {
        struct perf_event_attr sideband = {.type = PERF_TYPE_SOFTWARE,
                                           .config = PERF_COUNT_SW_DUMMY,
                                           .mmap = 1,
                                           .mmap2 = 1,
                                           .comm = 1,
                                           .comm_exec = 1,
                                           .task = 1,
                                           .sample_id_all = 1,
                                           .use_clockid = 1,
                                           .clockid = CLOCK_MONOTONIC,
                                           .watermark = 1,
                                           .wakeup_watermark = 65536,
                                           .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU};
        const int news = event_open(&sideband, cpu);
        if (mmap(NULL, page + 131072, PROT_READ | PROT_WRITE, MAP_SHARED, news, 0) == MAP_FAILED) must(-1, "sideband ring");
        watch(epoll, news);
        struct perf_event_attr clock = {
            .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .freq = 1, .sample_freq = 99, .disabled = 1};
        clocks[cpu] = event_open(&clock, cpu);
        must(ioctl(clocks[cpu], PERF_EVENT_IOC_SET_BPF, program), "attach");
    }
    for (int cpu = 0; cpu < cpus; ++cpu) must(ioctl(clocks[cpu], PERF_EVENT_IOC_ENABLE, 0), "enable");
    must(write(atoi(argv[2]), "", 1), "ready");
    return 0;
}
