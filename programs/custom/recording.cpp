#include "programs/custom/recording.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/unwind/layout.h"

namespace rawbpf::inline v0::custom {

using recording::put;
using recording::put_reference;
using recording::put_signed;

namespace {

enum Chunk : uint8_t { kSettings = 32, kTrace, kWaits };

// The first bits of a trace are its origin; what else it says of itself is behind them.
constexpr uint32_t kUnwinds = static_cast<uint32_t>(UnwindBy::tables) + 1;
constexpr uint32_t kOrigin = 3, kMissed = 4, kTraceTruncated = 8, kCut = 16, kUnknown = 32, kUnguarded = 64, kWithCaller = 128;

uint32_t flags_of(const LocatedTrace &trace) {
    uint32_t out = static_cast<uint32_t>(trace.head.origin);
    const std::pair<bool, uint32_t> all[] = {{trace.missed, kMissed},
                                             {trace.truncated, kTraceTruncated},
                                             {trace.cut, kCut},
                                             {trace.unknown, kUnknown},
                                             {trace.head.flags & kPerCpu, kUnguarded},
                                             {trace.with_caller != processes::kNone, kWithCaller}};
    for (const auto &[has, bit] : all) out |= has ? bit : 0;
    return out;
}

// What a number has become since, as few bytes; and what it is after such a step.
template <class T> void put_step(std::string &out, T &before, T now) {
    put_signed(out, static_cast<int64_t>(uint64_t{now} - std::exchange(before, now)));
}
template <class T> Result<T> step(recording::Cursor &in, T &before) {
    return before = static_cast<T>(before + static_cast<uint64_t>(TRY(in.signed_number())));
}

} // namespace

void TraceWriter::settings(const Settings &settings) {
    std::string p;
    for (const bool flag : {settings.samples, settings.off_cpu, settings.guarded}) put(p, uint64_t{flag});
    put(p, uint64_t{static_cast<uint8_t>(settings.unwind)});
    writer_.chunk(kSettings, p);
}

void TraceWriter::trace(const LocatedTrace &trace) {
    const Record &head = trace.head;
    const uint32_t comm = writer_.comm(head.comm);
    std::string p;
    put(p, uint64_t{flags_of(trace)});
    writer_.put_time(p, head.t_ns);
    put(p, uint64_t{head.cpu});
    put(p, uint64_t{comm});
    put_step(p, before_.pid, head.pid);
    put_step(p, before_.tid, head.tid);
    put_step(p, before_.contexts[static_cast<size_t>(head.origin)], head.context);
    put_reference(p, trace.kernel);
    put_reference(p, trace.user);
    if (trace.with_caller != processes::kNone) put_reference(p, trace.with_caller);
    put(p, trace.ending == processes::kNoEnding ? 0 : uint64_t{trace.ending} + 1);
    writer_.chunk(kTrace, p);
}

void TraceWriter::waits(const recording::Counted &waits) {
    if (waits.empty()) return;
    std::string p;
    recording::put_counts(p, waits);
    writer_.chunk(kWaits, p);
}

Result<void> TraceReader::read_settings(recording::Cursor &in) {
    for (bool *flag : {&settings_.samples, &settings_.off_cpu, &settings_.guarded}) *flag = TRY(in.truth());
    settings_.unwind = static_cast<UnwindBy>(TRY(in.id(kUnwinds, "way to walk stacks")));
    begun_ = true;
    return {};
}

Result<void> TraceReader::read_trace(recording::Cursor &in) {
    LocatedTrace trace;
    Record &head = trace.head;
    const uint32_t flags = TRY(in.number_32());
    head.origin = static_cast<Origin>(flags & kOrigin);
    trace.missed = flags & kMissed;
    trace.truncated = flags & kTraceTruncated;
    trace.cut = flags & kCut;
    trace.unknown = flags & kUnknown;
    if (flags & kUnguarded) head.flags = kPerCpu;
    head.t_ns = TRY(reader_.time(in));
    head.cpu = TRY(in.number_32());
    const std::string_view comm = TRY(reader_.comm(in));
    std::memcpy(head.comm, comm.data(), std::min(comm.size(), sizeof head.comm - 1));
    head.pid = TRY(step(in, before_.pid));
    head.tid = TRY(step(in, before_.tid));
    head.context = TRY(step(in, before_.contexts[flags & kOrigin]));
    trace.kernel = TRY(reader_.node(in, "kernel stack"));
    trace.user = TRY(reader_.node(in, "user stack"));
    if (flags & kWithCaller) trace.with_caller = TRY(reader_.node(in, "user stack"));
    trace.labels = reader_.labels();
    const uint32_t ending = TRY(in.id(UNWIND_ENDINGS + 1, "ending"));
    trace.ending = ending == 0 ? processes::kNoEnding : static_cast<uint8_t>(ending - 1);
    reader_.count();
    return see_ ? see_(trace) : Result<void>();
}

Result<bool> TraceReader::chunk(uint8_t type, recording::Cursor &in) {
    if (type < kSettings || type > kWaits) return false;
    if (begun_ != (type != kSettings))
        return Unexpected(in.in.error_at(0, begun_ ? "settings for a second time" : "a trace before the settings"));
    if (type == kSettings) TRY(read_settings(in));
    if (type == kTrace) TRY(read_trace(in));
    if (type == kWaits) waits_ = TRY(in.counts());
    return true;
}

} // namespace rawbpf::inline v0::custom
