/* Attaches the programs of a bundle. Three ways lead into the kernel:
 *
 *      BPF_LINK_CREATE                 cgroups, interfaces, network namespaces, iterators
 *      BPF_RAW_TRACEPOINT_OPEN         raw tracepoints by name; trampolines, whose place was decided at load time, without one
 *      perf_event_open(2) and ioctl    kprobes, uprobes, tracepoints; the event lives as long as its descriptor
 *
 * Dynamic probes are perf events of PMUs called "kprobe" and "uprobe" (4.17), whose type, and the bit that means "at the return",
 * stand in sysfs; a tracepoint's number stands in tracefs. */
#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

enum { PATH_SIZE = 256 };

#if defined(__x86_64__)
static const char kSyscallPrefix[] = "__x64_sys_";
#elif defined(__aarch64__)
static const char kSyscallPrefix[] = "__arm64_sys_";
#elif defined(__riscv)
static const char kSyscallPrefix[] = "__riscv_sys_";
#else
static const char kSyscallPrefix[] = "sys_";
#endif

struct attaching {
    const struct rawbpf_bundle_program *program;
    int fd; /* the program's */
    const struct rawbpf_place *place;
    const char *target;
    struct rawbpf_error *error;
};

static int missing(const struct attaching *a, const char *what) {
    return rawbpf_part_fail(a->error, RAWBPF_INVALID_ARGUMENT, 0, "attaching program ", a->program->name, what);
}

static int failed(const struct attaching *a, int os) {
    return rawbpf_part_refused(a->error, os, "attaching program ", a->program->name);
}

/* The number after `prefix` in a small file of the kernel's; -1: there is none. */
static long number_in(const char *path, const char *prefix) {
    char text[64];
    ssize_t got;
    char *end;
    long number;
    const size_t skip = strlen(prefix);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0) return -1;
    text[got] = 0;
    if (strncmp(text, prefix, skip) != 0) return -1;
    number = strtol(text + skip, &end, 10);
    return end == text + skip ? -1 : number;
}

static int open_event(struct perf_event_attr *attr, int pid) {
    /* One CPU's event sees probes on all CPUs when it is for all processes. */
    return (int)syscall(SYS_perf_event_open, attr, pid > 0 ? pid : -1, pid > 0 ? -1 : 0, -1, PERF_FLAG_FD_CLOEXEC);
}

static int enable(const struct attaching *a, int event, int result) {
    int os;
    if (ioctl(event, PERF_EVENT_IOC_ENABLE, 0) == 0) return result;
    os = errno;
    close(result);
    return failed(a, os);
}

/* Runs the program where the event happens: as a link, which holds the event (5.15); before, by ioctl, until the event is closed.
 */
static int run_on(const struct attaching *a, int event) {
    union bpf_attr attr;
    int link, copy;
    memset(&attr, 0, sizeof attr);
    attr.link_create.prog_fd = (uint32_t)a->fd;
    attr.link_create.target_fd = (uint32_t)event;
    attr.link_create.attach_type = BPF_PERF_EVENT;
    attr.link_create.perf_event.bpf_cookie = a->place->cookie;
    link = rawbpf_part_bpf(BPF_LINK_CREATE, &attr);
    if (link >= 0) return enable(a, event, link);
    if (errno != EINVAL) return failed(a, errno);
    if (a->place->cookie != 0)
        return rawbpf_part_fail(a->error, RAWBPF_UNSUPPORTED, EINVAL, "attaching program ", a->program->name,
                                "a cookie needs Linux 5.15");
    copy = fcntl(event, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) return failed(a, errno);
    if (ioctl(event, PERF_EVENT_IOC_SET_BPF, a->fd) == 0) return enable(a, event, copy);
    link = errno;
    close(copy);
    return failed(a, link);
}

/* The same with an event that was opened for it. */
static int run_on_own(const struct attaching *a, int event) {
    int result;
    if (event < 0) return failed(a, errno);
    result = run_on(a, event);
    close(event);
    return result;
}

/* "NAME+0x10": cuts the offset off. */
static uint64_t cut_offset(char *target, char before) {
    char *const at = strrchr(target, before);
    char *end;
    uint64_t offset;
    if (at == NULL) return 0;
    offset = strtoull(at + 1, &end, 0);
    if (end == at + 1 || *end != 0) return 0;
    *at = 0;
    return offset;
}

static int attach_probe(const struct attaching *a, const char *pmu, const char *prefix, int at_return) {
    char name[PATH_SIZE], path[PATH_SIZE];
    struct perf_event_attr attr;
    const int user = pmu[0] == 'u';
    uint64_t offset;
    long type, bit;
    if (a->target == NULL) return missing(a, "say where: rawbpf_place::target");
    name[0] = path[0] = 0;
    if (strlen(prefix) + strlen(a->target) >= sizeof name) return missing(a, "the name of its target is too long");
    rawbpf_part_append(name, sizeof name, prefix);
    rawbpf_part_append(name, sizeof name, a->target);
    offset = cut_offset(name, user ? ':' : '+');
    if (user && offset == 0) {
        rawbpf_part_fail(a->error, RAWBPF_UNSUPPORTED, 0, "attaching program ", a->program->name,
                         "its target is a function by name");
        rawbpf_part_hint(a->error,
                         "a bundle reads no symbols: give \"PATH:0xOFFSET\", the offset in the file, or use <rawbpf/core.h>");
        return RAWBPF_UNSUPPORTED;
    }
    rawbpf_part_append(path, sizeof path, "/sys/bus/event_source/devices/");
    rawbpf_part_append(path, sizeof path, pmu);
    rawbpf_part_append(path, sizeof path, "/type");
    type = number_in(path, "");
    path[strlen(path) - 4] = 0;
    rawbpf_part_append(path, sizeof path, "format/retprobe");
    bit = number_in(path, "config:");
    if (type < 0 || (at_return && (bit < 0 || bit > 63)))
        return rawbpf_part_fail(a->error, RAWBPF_UNSUPPORTED, 0, "attaching program ", a->program->name,
                                "this kernel has no such probes, or /sys isn't mounted");
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = (uint32_t)type;
    attr.config = at_return ? UINT64_C(1) << bit : 0;
    attr.config1 = rawbpf_part_address(name);
    attr.config2 = offset;
    return run_on_own(a, open_event(&attr, user ? a->place->pid : -1));
}

static int attach_tracepoint(const struct attaching *a) {
    static const char *const kPlaces[] = {"/sys/kernel/tracing/events/", "/sys/kernel/debug/tracing/events/"};
    struct perf_event_attr attr;
    char path[PATH_SIZE];
    long id = -1;
    size_t i;
    if (a->target == NULL) return missing(a, "say which tracepoint: rawbpf_place::target, \"sched/sched_switch\"");
    if (strlen(a->target) > sizeof path - 64) return missing(a, "the name of its target is too long");
    for (i = 0; id < 0 && i < 2; i++) {
        path[0] = 0;
        rawbpf_part_append(path, sizeof path, kPlaces[i]);
        rawbpf_part_append(path, sizeof path, a->target);
        rawbpf_part_append(path, sizeof path, "/id");
        id = number_in(path, "");
    }
    if (id < 0) {
        rawbpf_part_fail(a->error, RAWBPF_NOT_FOUND, 0, "attaching program ", a->program->name, "no tracepoint ");
        if (a->error != NULL) rawbpf_part_append(a->error->text, sizeof a->error->text, a->target);
        rawbpf_part_hint(a->error, "is tracefs mounted? mount -t tracefs tracefs /sys/kernel/tracing");
        return RAWBPF_NOT_FOUND;
    }
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = (uint64_t)id;
    attr.sample_period = 1;
    return run_on_own(a, open_event(&attr, -1));
}

static int attach_raw(const struct attaching *a, const char *name) {
    union bpf_attr attr;
    int fd;
    memset(&attr, 0, sizeof attr);
    attr.raw_tracepoint.name = rawbpf_part_address(name);
    attr.raw_tracepoint.prog_fd = (uint32_t)a->fd;
    fd = rawbpf_part_bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
    return fd >= 0 ? fd : failed(a, errno);
}

static int attach_link(const struct attaching *a, uint32_t target) {
    union bpf_attr attr;
    int fd;
    memset(&attr, 0, sizeof attr);
    attr.link_create.prog_fd = (uint32_t)a->fd;
    attr.link_create.target_fd = target; /* or target_ifindex */
    attr.link_create.attach_type = a->program->attach_type;
    fd = rawbpf_part_bpf(BPF_LINK_CREATE, &attr);
    if (fd < 0 && errno == EINVAL && a->program->way == RAWBPF_TCX)
        return rawbpf_part_fail(a->error, RAWBPF_UNSUPPORTED, EINVAL, "attaching program ", a->program->name,
                                "tcx needs Linux 6.6");
    return fd >= 0 ? fd : failed(a, errno);
}

static int attach_by_fd(const struct attaching *a, const char *what) {
    return a->place->fd < 0 ? missing(a, what) : attach_link(a, (uint32_t)a->place->fd);
}

static int attach_to_event(const struct attaching *a) {
    return a->place->fd < 0 ? missing(a, "say which perf event: rawbpf_place::fd") : run_on(a, a->place->fd);
}

static int takes_cookie(enum rawbpf_bundle_way way) { return way <= RAWBPF_TRACEPOINT || way == RAWBPF_PERF_EVENT; }

int rawbpf_bundle_link(const struct rawbpf_bundle *bundle, uint32_t program, const struct rawbpf_place *place,
                       struct rawbpf_error *error) {
    static const struct rawbpf_place kNowhere = RAWBPF_PLACE_INIT;
    struct attaching a;
    if (program >= bundle->program_count)
        return rawbpf_part_fail(error, RAWBPF_INVALID_ARGUMENT, 0, "bundle ", bundle->name, "it has no program of that number");
    a.program = &bundle->programs[program];
    a.fd = rawbpf_bundle_program_fd(bundle, program);
    a.place = place != NULL ? place : &kNowhere;
    a.target = a.place->target != NULL ? a.place->target : a.program->target;
    a.error = error;
    if (a.fd < 0) return missing(&a, "it isn't loaded");
    if (a.place->cookie != 0 && !takes_cookie(a.program->way))
        return rawbpf_part_fail(error, RAWBPF_UNSUPPORTED, 0, "attaching program ", a.program->name, "bundles give it no cookie");
    switch (a.program->way) {
    case RAWBPF_KPROBE: return attach_probe(&a, "kprobe", "", 0);
    case RAWBPF_KRETPROBE: return attach_probe(&a, "kprobe", "", 1);
    case RAWBPF_SYSCALL: return attach_probe(&a, "kprobe", kSyscallPrefix, 0);
    case RAWBPF_RETSYSCALL: return attach_probe(&a, "kprobe", kSyscallPrefix, 1);
    case RAWBPF_UPROBE: return attach_probe(&a, "uprobe", "", 0);
    case RAWBPF_URETPROBE: return attach_probe(&a, "uprobe", "", 1);
    case RAWBPF_TRACEPOINT: return attach_tracepoint(&a);
    case RAWBPF_RAW_TRACEPOINT:
        return a.target != NULL ? attach_raw(&a, a.target) : missing(&a, "say which tracepoint: rawbpf_place::target");
    case RAWBPF_TRAMPOLINE: return attach_raw(&a, NULL);
    case RAWBPF_ITERATOR: return attach_link(&a, 0);
    case RAWBPF_PERF_EVENT: return attach_to_event(&a);
    case RAWBPF_CGROUP: return attach_by_fd(&a, "say which cgroup: rawbpf_place::fd, its directory");
    case RAWBPF_NETNS: return attach_by_fd(&a, "say which network namespace: rawbpf_place::fd");
    case RAWBPF_XDP:
    case RAWBPF_TCX:
        return a.place->interface == 0 ? missing(&a, "say which interface: rawbpf_place::interface")
                                       : attach_link(&a, a.place->interface);
    case RAWBPF_BY_HAND: break;
    }
    rawbpf_part_fail(error, RAWBPF_UNSUPPORTED, 0, "attaching program ", a.program->name,
                     "bundles don't attach programs of its section");
    rawbpf_part_hint(error, "attach rawbpf_bundle_program_fd() by hand, or use <rawbpf/core.h>");
    return RAWBPF_UNSUPPORTED;
}

int rawbpf_bundle_attach_program(const struct rawbpf_bundle *bundle, uint32_t program, const struct rawbpf_place *place,
                                 struct rawbpf_error *error) {
    int fd;
    if (program < bundle->program_count && rawbpf_part_link_fds(bundle)[program] >= 0)
        return rawbpf_part_fail(error, RAWBPF_INVALID_ARGUMENT, 0, "attaching program ", bundle->programs[program].name,
                                "it is attached already; rawbpf_bundle_link() attaches it once more");
    fd = rawbpf_bundle_link(bundle, program, place, error);
    if (fd < 0) return fd;
    rawbpf_part_link_fds(bundle)[program] = fd;
    return RAWBPF_OK;
}

static int says_where(const struct rawbpf_bundle_program *program) {
    switch (program->way) {
    case RAWBPF_TRAMPOLINE:
    case RAWBPF_ITERATOR: return 1;
    case RAWBPF_BY_HAND:
    case RAWBPF_PERF_EVENT:
    case RAWBPF_CGROUP:
    case RAWBPF_NETNS:
    case RAWBPF_XDP:
    case RAWBPF_TCX: return 0;
    default: return program->target != NULL;
    }
}

int rawbpf_bundle_attach(const struct rawbpf_bundle *bundle, struct rawbpf_error *error) {
    struct rawbpf_part_set here;
    int *const links = rawbpf_part_link_fds(bundle);
    int count = 0, result;
    uint32_t i, j;
    memset(&here, 0, sizeof here);
    for (i = 0; i < bundle->program_count && i < RAWBPF_BUNDLE_MOST; i++) {
        if (!says_where(&bundle->programs[i]) || rawbpf_bundle_program_fd(bundle, i) < 0 || links[i] >= 0) continue;
        result = rawbpf_bundle_attach_program(bundle, i, NULL, error);
        if (result >= 0) {
            rawbpf_part_put(&here, i);
            count++;
            continue;
        }
        for (j = 0; j < i; j++) {
            if (!rawbpf_part_has(&here, j)) continue;
            close(links[j]);
            links[j] = -1;
        }
        return result;
    }
    return count;
}
