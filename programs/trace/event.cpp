// An event's record, taken apart: who called, names and types of its columns, its stacks.
#include "programs/trace/tracer.h"

#include <algorithm>

#include "programs/trace/decode.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::trace {

uint64_t Event::caller() const {
    if (!layout->goroutine) return header.tid;
    // Processes have theirs at the same addresses.
    return uint64_t{1} << 63 | (uint64_t{header.pid} << 41 ^ goroutine()) >> 1;
}
uint32_t Event::thread_of(uint64_t caller) { return static_cast<uint32_t>(caller >> 63 ? caller << 1 >> 41 : caller); }
const Type &ProbeSite::result_type() const {
    static const Type unknown{"long", Show::integer, 8, true};
    return signature.known ? signature.returns : unknown;
}
const Type &Event::result_type() const { return place->result_type(); }
std::string Event::name(size_t index) const {
    const Column &column = layout->columns[index];
    return column.name.empty() ? parameter_name(place->signature, column.value.argument) : column.name;
}
Type Event::type(size_t index) const {
    const Column &column = layout->columns[index];
    return column.name.empty() ? parameter_type(place->signature, column.value.argument) : column.value.type;
}
namespace {
Event::Stack read_stack(const Event &event, bool user) {
    Event::Stack out;
    if (event.layout->stack == 0) return out;
    const std::byte *at = event.record.data() + event.layout->stack;
    const auto head = load<StackHead>(at);
    const int32_t bytes = user ? head.user_bytes : head.kernel_bytes;
    if (user) out.ending = head.ending;
    if (bytes < 0) {
        out.error = bytes;
        return out;
    }
    at += sizeof head + (user ? kMostFrames * 8 : 0);
    const uint32_t most = user ? event.layout->user_frames : kMostFrames;
    for (uint32_t i = 0; i < std::min(static_cast<uint32_t>(bytes) / 8, most); ++i)
        out.frames.push_back(load<uint64_t>(at + 8 * i));
    return out;
}
} // namespace
Event::Stack Event::kernel_stack() const { return read_stack(*this, false); }
Event::Stack Event::user_stack() const { return read_stack(*this, true); }
uint64_t Event::language_number() const {
    return layout->stack == 0 ? 0 : load<StackHead>(record.data() + layout->stack).language;
}

Bytes Event::labels() const {
    if (layout->labels == 0) return {};
    const Bytes all = record.subspan(layout->labels + sizeof(uint64_t));
    return all.first(std::min<uint64_t>(load<uint64_t>(record.data() + layout->labels), all.size()));
}

Bytes Event::copied_stack() const {
    if (layout->stack == 0) return {};
    const auto head = load<StackHead>(record.data() + layout->stack);
    const auto from = static_cast<uint32_t>(std::max(head.user_bytes, 0));
    if (!(head.ending & UNWIND_COPIED) || from > head.copied_to) return {};
    const Bytes frames = record.subspan(layout->stack + sizeof(StackHead) + kMostFrames * 8);
    return head.copied_to > frames.size() ? Bytes{} : frames.subspan(from, head.copied_to - from);
}

} // namespace rawbpf::inline v0::trace
