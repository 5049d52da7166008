#include "programs/custom/tally.h"

#include <cstddef>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::custom {

void Tally::add(const LocatedTrace &trace) {
    const Record &head = trace.head;
    ++shown_;
    ++by_origin_[static_cast<size_t>(head.origin)];
    ends_.add(trace.ending);
    const bool in_kernel = head.origin == Origin::sampling && trace.kernel != processes::kNone; // kernel threads have no other
    if (trace.missed && !in_kernel) ++unreadable_;
    if (trace.truncated) ++truncated_;
    if ((head.flags & kPerCpu) && !guarded_) ++unchecked_;
    if (trace.unknown) ++unknown_;
}

std::vector<std::pair<std::string, uint64_t>> Tally::degraded() const {
    std::vector<std::pair<std::string, uint64_t>> out;
    if (unreadable_) out.emplace_back("user_stack_unreadable", unreadable_);
    if (truncated_) out.emplace_back("stack_truncated", truncated_);
    if (unchecked_) out.emplace_back("context_unchecked", unchecked_);
    if (unknown_) out.emplace_back("process_unknown", unknown_);
    return out;
}

std::string Tally::totals() const {
    const auto of = [this](Origin origin) { return by_origin_[static_cast<size_t>(origin)]; };
    std::string out = format("Traces - Total: {}, Custom: {}, Sampling: {}", shown_, of(Origin::custom), of(Origin::sampling));
    if (off_cpu_) append(out, ", Off-CPU: {}", of(Origin::off_cpu));
    return out;
}

} // namespace rawbpf::inline v0::custom
