// Reads the ring of a perf event that reports what processes do. Layout: struct perf_event_mmap_page in <linux/perf_event.h>;
// the kernel's side is kernel/events/ring_buffer.c.
//
// The event is PERF_COUNT_SW_DUMMY: it never counts and never samples, it only carries the request for side-band records. The
// kernel writes them synchronously where it makes a mapping or a task, so none are missed, unlike with polling of /proc. The
// time is CLOCK_MONOTONIC (use_clockid), which is the clock of bpf_ktime_get_ns(), so that records and samples of a BPF
// program can be sorted together.
//
// Both positions only grow; `position & mask` is the offset in the ring. The kernel publishes data_head after the records
// (loaded here with acquire), and doesn't overwrite what is behind data_tail (stored here with release, after reading). A
// record may wrap around the end: unlike the BPF ring this one is mapped once, so such a record is copied into a buffer. Its
// size field has 16 bits: 64 KiB suffice.
#include "runtime/events/perf_ring.h"

#include <cerrno>
#include <ctime>
#include <linux/perf_event.h>
#include <sys/mman.h>

#include "runtime/base/fail.h"
#include "runtime/sys/perf.h"

namespace rawbpf::inline v0 {

namespace {

sys::PerfEventAttr attributes_of(const SidebandOptions &options, size_t ring_bytes) {
    sys::PerfEventAttr a;
    a.type = PERF_TYPE_SOFTWARE;
    a.config = PERF_COUNT_SW_DUMMY;
    a.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    a.bits = sys::kPerfMmap | sys::kPerfMmap2 | sys::kPerfComm | sys::kPerfCommExec | sys::kPerfTask | sys::kPerfSampleIdAll |
             sys::kPerfUseClockid | sys::kPerfWatermark;
    // Excluding says nothing about what is reported, but lets users without privileges watch their own processes.
    a.bits |= sys::kPerfExcludeKernel | sys::kPerfExcludeHv;
    if (options.build_ids) a.bits |= sys::kPerfBuildId;
    if (options.inherit) a.bits |= sys::kPerfInherit;
    if (options.enable_on_exec) a.bits |= sys::kPerfDisabled | sys::kPerfEnableOnExec;
    a.clockid = CLOCK_MONOTONIC;
    a.wakeup_events = static_cast<uint32_t>(options.wakeup_bytes ? options.wakeup_bytes : ring_bytes / 2);
    return a;
}

} // namespace

Result<SidebandRing> SidebandRing::open(const SidebandOptions &options) {
    if (options.cpu < 0 && (options.pid < 0 || options.inherit))
        return fail(Errc::invalid_argument, "sideband ring: {} needs a CPU", options.inherit ? "inherit" : "watching all tasks");
    if (options.bytes > size_t{1} << 30)
        return fail(Errc::invalid_argument, "sideband ring: {} bytes are more than 1 GiB", options.bytes);
    size_t size = sys::page_size();
    while (size < options.bytes) size *= 2;

    sys::PerfEventAttr attributes = attributes_of(options, size);
    auto event = sys::perf_event_open(attributes, options.pid, options.cpu);
    if (!event && event.error().os == EINVAL && (attributes.bits & sys::kPerfBuildId)) { // before 5.12 the bit is a reserved one
        attributes.bits &= ~sys::kPerfBuildId;
        event = sys::perf_event_open(attributes, options.pid, options.cpu);
    }
    if (!event)
        return Unexpected(
            in_context(std::move(event).error(), format("sideband of thread {} on CPU {}", options.pid, options.cpu)));
    sys::Mapping pages = TRY_IN(sys::map(event->get(), 0, sys::page_size() + size, PROT_READ | PROT_WRITE, MAP_SHARED),
                                "sideband ring of {} bytes", size);
    SidebandRing ring = TRY(over(std::move(pages)));
    ring.event_ = std::move(*event);
    ring.build_ids_ = (attributes.bits & sys::kPerfBuildId) != 0;
    return ring;
}

Result<SidebandRing> SidebandRing::over(sys::Mapping pages) {
    const size_t page = sys::page_size();
    if (pages.size() <= page || ((pages.size() - page) & (pages.size() - page - 1)) != 0)
        return fail(Errc::invalid_argument, "sideband ring: {} bytes are no page and a power of two", pages.size());
    SidebandRing ring;
    ring.mask_ = pages.size() - page - 1;
    ring.ring_ = std::move(pages);
    ring.tail_ = reinterpret_cast<const perf_event_mmap_page *>(ring.ring_.data())->data_tail;
    return ring;
}

uint64_t SidebandRing::head() const {
    return __atomic_load_n(&reinterpret_cast<const perf_event_mmap_page *>(ring_.data())->data_head, __ATOMIC_ACQUIRE);
}

void SidebandRing::give_back(uint64_t position) {
    tail_ = position;
    __atomic_store_n(&reinterpret_cast<perf_event_mmap_page *>(ring_.data())->data_tail, position, __ATOMIC_RELEASE);
}

/// The record at a position, contiguous; empty when what is there can't be one (then all up to `end` is passed over).
Bytes SidebandRing::record_at(uint64_t at, uint64_t end) {
    const std::byte *data = ring_.data() + (ring_.size() - (mask_ + 1));
    const uint64_t left = end - at;
    // Records are 8-byte aligned and so is the ring: a header never wraps.
    const size_t place = at & mask_;
    if (left > mask_ + 1 || left < sizeof(perf_event_header) || place % 8 != 0) return ++malformed_, Bytes{};
    const size_t size = load<perf_event_header>(data + place).size;
    if (size < sizeof(perf_event_header) || size % 8 != 0 || size > left) return ++malformed_, Bytes{};
    const size_t before_end = mask_ + 1 - place;
    if (size <= before_end) return {data + place, size};
    if (!wrapped_) wrapped_ = std::make_unique<std::byte[]>(size_t{1} << 16);
    std::memcpy(wrapped_.get(), data + place, before_end);
    std::memcpy(wrapped_.get() + before_end, data, size - before_end);
    return {wrapped_.get(), size};
}

Result<void> SidebandRing::enable() const { return sys::perf_event_enable(event_.get()); }
Result<void> SidebandRing::disable() const { return sys::perf_event_disable(event_.get()); }

} // namespace rawbpf::inline v0
