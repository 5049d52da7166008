// What the tests of unwinding share: the words for a walk's end, and a process's mappings as the walker is told of them.
#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

#include "programs/unwind/live_tables.h"
#include "runtime/symbols/maps.h"

namespace rawbpf::test {

inline constexpr const char *kEndings[] = {"root",       "no process", "no mapping", "no table",     "no rule",        "odd rule",
                                           "unreadable", "stuck",      "depth",      "no registers", "callers in heap"};
static_assert(std::size(kEndings) == UNWIND_ENDINGS);

/// The regions of a process, each file by the number that `number_of(region)` gives it.
template <class NumberOf>
std::vector<unwind::CodeMapping> code_mappings(const std::vector<symbols::Region> &regions, const NumberOf &number_of) {
    using Kind = unwind::CodeMapping::Kind;
    std::vector<unwind::CodeMapping> out;
    for (const symbols::Region &region : regions) {
        const symbols::RegionKind kind = region.kind();
        unwind::CodeMapping &mapping = out.emplace_back();
        mapping.kind = kind == symbols::RegionKind::vdso                                           ? Kind::vdso
                       : kind == symbols::RegionKind::file || kind == symbols::RegionKind::deleted ? Kind::file
                                                                                                   : Kind::other;
        mapping.start = region.start;
        mapping.end = region.end;
        mapping.file_offset = region.file_offset;
        if (mapping.kind == Kind::file) mapping.module = number_of(region);
    }
    return out;
}

} // namespace rawbpf::test
