// perf_event_open(2) by hand, so that the copies come from nothing of ours.
//
//      a record:  header 8 | pid tid | time | abi | registers (if abi) | size | stack bytes (size) | bytes of them that count
//                            u32 u32   u64    u64   u64 each             u64                          u64 (if size)
#include "tests/unwind/dumps.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rawbpf::unwind_test {
namespace {

constexpr uint64_t kRingBytes = 16 << 20;

/// The ring's bytes from an offset on, which may lie across its end.
class Reader {
  public:
    Reader(const unsigned char *data, uint64_t size, uint64_t at) : data_(data), size_(size), at_(at) {}
    void bytes(void *into, uint64_t n) {
        for (uint64_t done = 0; done < n;) {
            const uint64_t from = (at_ + done) % size_, part = std::min(n - done, size_ - from);
            memcpy(static_cast<unsigned char *>(into) + done, data_ + from, part);
            done += part;
        }
        at_ += n;
    }
    template <class T> T value() {
        T out;
        bytes(&out, sizeof out);
        return out;
    }
    void skip(uint64_t n) { at_ += n; }

  private:
    const unsigned char *data_;
    uint64_t size_, at_;
};

} // namespace

std::unique_ptr<DumpClock> DumpClock::on(int pid, uint64_t frequency, uint32_t stack_bytes, std::string &error) {
    std::unique_ptr<DumpClock> out(new DumpClock);
    const long cpus = sysconf(_SC_NPROCESSORS_CONF), page = sysconf(_SC_PAGESIZE);
    for (int cpu = 0; cpu < cpus; ++cpu) {
        perf_event_attr attr{};
        attr.size = sizeof attr;
        attr.type = PERF_TYPE_SOFTWARE;
        attr.config = PERF_COUNT_SW_CPU_CLOCK;
        attr.freq = 1;
        attr.sample_freq = frequency;
        attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr.sample_regs_user = register_mask();
        attr.sample_stack_user = stack_bytes;
        attr.disabled = 1;
        attr.enable_on_exec = 1;
        attr.inherit = 1;
        attr.use_clockid = 1;
        attr.clockid = CLOCK_MONOTONIC;
        const int fd = static_cast<int>(syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC));
        if (fd < 0 && errno == ENODEV) continue; // this CPU is offline
        if (fd < 0) {
            error = std::string("perf_event_open: ") + strerror(errno);
            return nullptr;
        }
        out->events_.push_back(fd);
        void *at = mmap(nullptr, kRingBytes + static_cast<uint64_t>(page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED) {
            error = std::string("mmap of the ring: ") + strerror(errno);
            return nullptr;
        }
        out->rings_.push_back({static_cast<unsigned char *>(at), kRingBytes});
    }
    return out;
}

DumpClock::~DumpClock() {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    for (const Ring &ring : rings_) munmap(ring.at, ring.size + page);
    for (int fd : events_) close(fd);
}

void DumpClock::read(const std::function<void(Dump &&)> &take) {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    for (const Ring &ring : rings_) {
        auto *head = reinterpret_cast<perf_event_mmap_page *>(ring.at);
        const uint64_t end = __atomic_load_n(&head->data_head, __ATOMIC_ACQUIRE);
        uint64_t at = head->data_tail;
        while (at != end) {
            Reader in(ring.at + page, ring.size, at);
            const auto header = in.value<perf_event_header>();
            at += header.size;
            if (header.type == PERF_RECORD_LOST) {
                in.skip(8);
                lost_ += in.value<uint64_t>();
            }
            if (header.type != PERF_RECORD_SAMPLE) continue;
            Dump dump;
            dump.pid = in.value<uint32_t>();
            dump.tid = in.value<uint32_t>();
            dump.t_ns = in.value<uint64_t>();
            if (in.value<uint64_t>() != PERF_SAMPLE_REGS_ABI_NONE) {
                dump.registers.resize(register_count());
                in.bytes(dump.registers.data(), dump.registers.size() * 8);
            }
            if (const auto room = in.value<uint64_t>()) {
                dump.stack.resize(room);
                in.bytes(dump.stack.data(), room);
                dump.stack.resize(std::min(room, in.value<uint64_t>()));
            }
            take(std::move(dump));
        }
        __atomic_store_n(&head->data_tail, end, __ATOMIC_RELEASE);
    }
}

} // namespace rawbpf::unwind_test
