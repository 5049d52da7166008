// perf_event_open(2): an event as a descriptor.
//
// struct perf_event_attr carries its own size. The kernel takes any size as long as what it doesn't know is zero; else it says
// E2BIG and writes the size that it does know into attr.size (kernel/events/core.c, perf_copy_attr). So the size passed is the
// shortest published one (64, 72, 80, 96, 104, 112, 120, 128, 136) that holds all that is set, and after E2BIG the kernel's own
// size is used, if nothing is lost by it.
#include "runtime/sys/perf.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/syscall.h>

#include "runtime/base/fail.h"
#include "runtime/sys/hints.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {
namespace {

constexpr uint32_t kPublished[] = {64, 72, 80, 96, 104, 112, 120, 128, 136};

// One past the last byte that isn't zero.
uint32_t used(const PerfEventAttr &attr) {
    const auto *bytes = reinterpret_cast<const unsigned char *>(&attr);
    uint32_t size = sizeof attr;
    while (size > 0 && bytes[size - 1] == 0) --size;
    return size;
}

long ioctl(int fd, uint64_t request, uint64_t argument) {
    for (;;) {
        long result = invoke(__NR_ioctl, static_cast<uint64_t>(fd), request, argument);
        if (result != -EINTR) return result;
    }
}

Result<void> control(int fd, uint64_t request, uint64_t argument, std::string_view what) {
    long result = ioctl(fd, request, argument);
    if (result < 0) return fail_os(static_cast<int>(-result), "{}", what);
    return {};
}

// Sets attr.size: the bytes that are in use.
uint32_t set_size(PerfEventAttr &attr) {
    attr.size = 0;
    const uint32_t needed = used(attr);
    for (uint32_t size : kPublished) {
        attr.size = size;
        if (size >= needed && size >= 112) break; // 112 is what 5.10 and everything since 4.1 knows
    }
    return needed;
}

} // namespace

Result<BlockingCall> perf_event_open_in_copy(const PerfEventAttr &wanted, int pid, int cpu, int keep) {
    PerfEventAttr attr = wanted; // the copy has its own
    (void)set_size(attr);
    constexpr uint64_t kNoGroup = ~uint64_t{0};
    return BlockingCall::call(
        __NR_perf_event_open,
        {reg(&attr), static_cast<uint64_t>(pid), static_cast<uint64_t>(cpu), kNoGroup, PERF_FLAG_FD_CLOEXEC, 0}, keep);
}

Result<Fd> perf_event_open(const PerfEventAttr &wanted, int pid, int cpu, int group_fd, uint64_t flags) {
    PerfEventAttr attr = wanted;
    const uint32_t needed = set_size(attr);
    const uint32_t asked = attr.size; // the kernel writes its own size there when it refuses
    bool shortened = false;
    for (;;) {
        long result = invoke(__NR_perf_event_open, reg(&attr), static_cast<uint64_t>(pid), static_cast<uint64_t>(cpu),
                             static_cast<uint64_t>(group_fd), flags | PERF_FLAG_FD_CLOEXEC);
        if (result >= 0) return Fd(static_cast<int>(result));
        if (result == -EINTR) continue;
        if (result == -E2BIG && !shortened && attr.size >= needed && attr.size < sizeof attr) {
            shortened = true;
            continue;
        }
        int os = static_cast<int>(-result);
        if (os == E2BIG)
            return Unexpected(make_error(
                Errc::unsupported,
                format("perf_event_open: this kernel's perf_event_attr has {} bytes, the event needs {}", attr.size, asked)));
        return Unexpected(os_error(os, "perf_event_open", perf_hint(os)));
    }
}

Result<void> perf_event_enable(int fd) { return control(fd, PERF_EVENT_IOC_ENABLE, 0, "PERF_EVENT_IOC_ENABLE"); }
Result<void> perf_event_disable(int fd) { return control(fd, PERF_EVENT_IOC_DISABLE, 0, "PERF_EVENT_IOC_DISABLE"); }
Result<void> perf_event_reset(int fd) { return control(fd, PERF_EVENT_IOC_RESET, 0, "PERF_EVENT_IOC_RESET"); }

Result<void> perf_set_period(int fd, uint64_t period) {
    return control(fd, PERF_EVENT_IOC_PERIOD, reg(&period), "PERF_EVENT_IOC_PERIOD");
}

Result<void> perf_set_bpf(int fd, int prog_fd) {
    return control(fd, PERF_EVENT_IOC_SET_BPF, static_cast<uint64_t>(prog_fd), "PERF_EVENT_IOC_SET_BPF");
}

Result<void> perf_set_output(int fd, int other_fd) {
    return control(fd, PERF_EVENT_IOC_SET_OUTPUT, static_cast<uint64_t>(other_fd), "PERF_EVENT_IOC_SET_OUTPUT");
}

Result<uint64_t> perf_id(int fd) {
    uint64_t id = 0;
    TRY(control(fd, PERF_EVENT_IOC_ID, reg(&id), "PERF_EVENT_IOC_ID"));
    return id;
}

bool has_uprobe_call() {
#if defined(__x86_64__)
    constexpr long kUprobe = 336;      // __NR_uprobe
    return invoke(kUprobe) == -EPROTO; // ENXIO: of the 5-byte kind
#else
    return false;
#endif
}

} // namespace rawbpf::inline v0::sys
