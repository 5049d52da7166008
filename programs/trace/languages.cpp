// An interrupt within the program may send frames of the same thread in between: the number tells whose they are.
#include "programs/trace/languages.h"

#include <cstddef>
#include <cstring>

namespace rawbpf::inline v0::trace {
namespace {

constexpr size_t kMostThreads = 4096; // then those that have ended are forgotten, with all others

} // namespace

bool Languages::take(Bytes record) {
    const uint32_t kind = language_record(record);
    if (kind == LANGUAGE_IS_CODE && codes_) codes_(record);
    if (kind == LANGUAGE_IS_FRAMES && record.size() >= offsetof(LanguageFrames, words)) {
        if (frames_.size() >= kMostThreads) frames_.clear();
        const Bytes numbers = record.subspan(offsetof(LanguageFrames, number));
        std::vector<uint64_t> &to = frames_[load<RecordHead>(record.data()).tid];
        to.resize(numbers.size() / sizeof(uint64_t));
        std::memcpy(to.data(), numbers.data(), to.size() * sizeof(uint64_t));
    }
    return kind != 0;
}

bool Languages::take_lost(Bytes record) const {
    if (is_language_code(record) && lost_) lost_(record);
    return language_record(record) != 0;
}

std::span<const uint64_t> Languages::of(const Event &event) const {
    const uint64_t number = event.language_number();
    const auto at = number == 0 ? frames_.end() : frames_.find(event.header.tid);
    if (at == frames_.end() || at->second.front() != number) return {};
    return std::span(at->second).subspan(1);
}

} // namespace rawbpf::inline v0::trace
