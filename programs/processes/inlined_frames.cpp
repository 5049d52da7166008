#include "programs/processes/inlined_frames.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "programs/processes/id_index.h"

namespace rawbpf::inline v0::processes {
namespace {

constexpr size_t kMost = 1 << 18;

} // namespace

size_t InlinedFrames::Hash::operator()(const Entry &entry) const {
    uint64_t hash = mix(entry.layer.value_or(UINT64_MAX));
    for (const Frame &frame : entry.frames)
        hash = mix(hash ^ mix((uint64_t{frame.name} << 32 | frame.file) + 31 * (uint64_t{frame.column} << 32 | frame.line)));
    return hash;
}

bool InlinedFrames::Same::operator()(const Entry &a, const Entry &b) const { return a.layer == b.layer && a.frames == b.frames; }

uint32_t InlinedFrames::text(std::string_view text) {
    const auto [at, fresh] = text_numbers_.try_emplace(std::string(text), static_cast<uint32_t>(texts_.size()));
    if (fresh) texts_.push_back(&at->first);
    return at->second;
}

uint64_t InlinedFrames::number(Entry &&entry) {
    if (const auto known = numbers_.find(entry); known != numbers_.end()) return known->second;
    if (entries_.size() >= kMost) return 0;
    entry.frames.shrink_to_fit();
    const uint64_t number = first_ + entries_.size();
    entries_.push_back(&numbers_.emplace(std::move(entry), number).first->first);
    return number;
}

std::vector<SourceFrame> InlinedFrames::source(uint64_t number) const {
    std::vector<SourceFrame> out;
    if (const Entry *entry = find(number))
        for (const Frame &frame : entry->frames)
            out.push_back({*texts_[frame.name], *texts_[frame.file], frame.line, frame.column});
    return out;
}

} // namespace rawbpf::inline v0::processes
