// What was meant by a section name that nobody knows: guesses, which the core does without (core/words.cpp).
#include <algorithm>
#include <array>
#include <utility>

#include "runtime/base/format.h"
#include "runtime/object/sections.h"

namespace rawbpf::inline v0 {

namespace {

using T = SectionTarget;

// Levenshtein distance, for words as short as section names.
size_t distance(std::string_view a, std::string_view b) {
    std::array<size_t, 65> row;
    if (b.size() >= row.size()) return row.size();
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = std::exchange(row[0], i);
        for (size_t j = 1; j <= b.size(); ++j) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

} // namespace

std::string explain_unknown_section(std::string_view section) {
    section = section.substr(section.starts_with('?') ? 1 : 0, 64);
    const std::string_view word = section.substr(0, section.find('/'));
    auto shown = [](const SectionKind &kind) { return format("{}{}", kind.name, kind.target == T::none ? "" : "/..."); };
    const std::string unknown = format("section name \"{}\" doesn't say which type of program it holds", section);
    // "xdp_router": a known name with more behind it, which is how programs are named, not sections.
    const SectionKind *begun = nullptr;
    for (const SectionKind &kind : section_kinds())
        if (word.size() > kind.name.size() && word.starts_with(kind.name) && (!begun || kind.name.size() > begun->name.size()))
            begun = &kind;
    if (begun) return format("{}; \"{}\" does: SEC(\"{}\")", unknown, begun->name, shown(*begun));
    const SectionKind *best[2] = {};
    size_t score[2] = {SIZE_MAX, SIZE_MAX};
    constexpr size_t kAnotherWord = 8; // what begins with the same word is nearer than what only looks alike
    const size_t near = std::max<size_t>(2, word.size() / 3);
    for (const SectionKind &kind : section_kinds()) {
        const size_t apart = std::min(distance(section, kind.name), distance(word, kind.name));
        const bool same_word = kind.name.substr(0, kind.name.find('/')) == word;
        if (!same_word && apart > near) continue;
        const size_t d = apart + (same_word ? 0 : kAnotherWord);
        if (d < score[0]) {
            best[1] = std::exchange(best[0], &kind);
            score[1] = std::exchange(score[0], d);
        } else if (d < score[1]) {
            best[1] = &kind;
            score[1] = d;
        }
    }
    if (!best[0])
        return format(
            "{}, and no known name is similar. Sections are named after what their programs do: kprobe/..., tracepoint/..., "
            "uprobe/..., fentry/..., xdp, tc, socket, cgroup_skb/egress, perf_event, iter/..., lsm/..., syscall",
            unknown);
    if (!best[1]) return format("{}; the nearest known is \"{}\"", unknown, shown(*best[0]));
    return format("{}; the nearest known are \"{}\" and \"{}\"", unknown, shown(*best[0]), shown(*best[1]));
}

} // namespace rawbpf::inline v0
