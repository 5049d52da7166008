// A compiler may put the seldom parts of the evaluation function elsewhere, without a symbol (Debian's python3.11 has 13 KB of
// it). They are found by jumps: where the function jumps into the middle of code of its own entry in .eh_frame, that is a part of
// it. A jump to a beginning is a call in tail position. Debian's arm64 builds of 3.11 have no such part: no branch leaves the
// function.
#include "programs/languages/exports.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include <elf.h>

#include "runtime/unwind/functions.h"

namespace rawbpf::inline v0::languages {

namespace {

std::map<std::string_view, elf::Symbol> find(const elf::Elf &file, const std::vector<std::string_view> &names) {
    std::map<std::string_view, elf::Symbol> out;
    each_dynamic_symbol(file, [&](std::string_view name, const elf::Symbol &symbol, size_t) {
        const auto at = std::find(names.begin(), names.end(), name);
        if (at != names.end() && symbol.value != 0) out[*at] = symbol;
        return true;
    });
    return out;
}

std::vector<Interpreter::Range> cold_parts(const elf::Elf &file, Bytes bytes, uint64_t start, uint64_t end) {
    const auto from = file.file_offset(start);
    if (file.machine() != EM_X86_64 || !from || *from + (end - start) > bytes.size()) return {};
    std::vector<unwind::FunctionRange> functions = unwind::function_ranges(file);
    std::sort(functions.begin(), functions.end(),
              [](const unwind::FunctionRange &a, const unwind::FunctionRange &b) { return a.start < b.start; });
    std::map<uint64_t, std::pair<uint64_t, size_t>> parts; // by start: end, and jumps into it
    for (uint64_t at = start; at + 6 <= end; ++at) {
        const std::byte *code = bytes.data() + *from + (at - start);
        // jmp rel32; jcc rel32
        const size_t length = code[0] == std::byte{0xe9}                                                     ? 5
                              : code[0] == std::byte{0x0f} && (code[1] & std::byte{0xf0}) == std::byte{0x80} ? 6
                                                                                                             : 0;
        if (length == 0) continue;
        const uint64_t target = at + length + static_cast<uint64_t>(int64_t{load<int32_t>(code + length - 4)});
        if (target >= start && target < end) continue;
        const auto next = std::upper_bound(functions.begin(), functions.end(), target,
                                           [](uint64_t a, const unwind::FunctionRange &b) { return a < b.start; });
        if (next == functions.begin() || target >= (next - 1)->end || target == (next - 1)->start) continue;
        auto &part = parts[(next - 1)->start];
        part.first = (next - 1)->end;
        ++part.second;
    }
    constexpr size_t kLeastJumps = 8; // bytes that only look like jumps lead anywhere, seldom to the same place
    std::vector<Interpreter::Range> out;
    for (const auto &[begin, part] : parts)
        if (part.second >= kLeastJumps) out.push_back({begin, part.first});
    return out;
}

/// Where a function that evaluates, and its cold parts, lie in the file.
std::vector<Interpreter::Range> with_cold_parts(const elf::Elf &file, Bytes bytes, uint64_t start, uint64_t end) {
    std::vector<Interpreter::Range> ranges{{start, end}}, out;
    for (const Interpreter::Range &part : cold_parts(file, bytes, start, end)) ranges.push_back(part);
    for (const Interpreter::Range &range : ranges)
        if (const auto at = file.file_offset(range.start)) out.push_back({*at, *at + (range.end - range.start)});
    return out;
}

} // namespace

std::optional<bool> may_export(const elf::Elf &file, std::string_view name) {
    const elf::Section *hash = file.find_section(".gnu.hash");
    if (!hash || !file.is_64() || file.big_endian()) return std::nullopt;
    const Bytes bytes = file.contents(*hash);
    constexpr size_t kHead = 16;
    if (bytes.size() < kHead) return std::nullopt;
    const auto words = load<uint32_t>(bytes.data() + 8), shift = load<uint32_t>(bytes.data() + 12);
    if (words == 0 || words > (bytes.size() - kHead) / 8 || shift > 31) return std::nullopt;
    uint32_t h = 5381;
    for (const char c : name) h = h * 33 + static_cast<uint8_t>(c);
    const auto filter = load<uint64_t>(bytes.data() + kHead + size_t{h / 64 % words} * 8);
    return (filter >> (h % 64) & 1) && (filter >> ((h >> shift) % 64) & 1);
}

Interpreter exported(const elf::Elf &file, Bytes bytes, std::initializer_list<std::string_view> names,
                     std::string_view evaluates) {
    std::vector<std::string_view> wanted(names);
    wanted.push_back(evaluates);
    const auto symbols = find(file, wanted);
    Interpreter out;
    out.code = executable_segments(file);
    for (const auto &[name, symbol] : symbols) out.exports.emplace(name, symbol.value);
    if (const auto eval = symbols.find(evaluates); eval != symbols.end())
        out.evaluates = with_cold_parts(file, bytes, eval->second.value, eval->second.value + eval->second.size);
    return out;
}

std::vector<elf::Segment> executable_segments(const elf::Elf &file) {
    std::vector<elf::Segment> out;
    for (const elf::Segment &segment : file.segments())
        if (segment.type == PT_LOAD && (segment.flags & PF_X) != 0) out.push_back(segment);
    return out;
}

std::vector<Interpreter::Range> all_functions(const elf::Elf &file) {
    std::vector<Interpreter::Range> out;
    for (const unwind::FunctionRange &function : unwind::function_ranges(file))
        if (const auto at = file.file_offset(function.start)) out.push_back({*at, *at + (function.end - function.start)});
    std::sort(out.begin(), out.end(), [](const Interpreter::Range &a, const Interpreter::Range &b) { return a.start < b.start; });
    return out;
}

void only_largest_callee(const elf::Elf &file, Bytes bytes, Interpreter &of) {
    if (file.machine() != EM_X86_64 || of.evaluates.empty()) return;
    const Interpreter::Range own = of.evaluates.front();
    const std::vector<unwind::FunctionRange> functions = unwind::function_ranges(file);
    Interpreter::Range largest{0, 0};
    for (uint64_t at = own.start; at + 5 <= own.end && at + 5 <= bytes.size(); ++at) {
        if (bytes[at] != std::byte{0xe8}) continue; // call rel32
        const auto next = file.address_of(at + 5);
        if (!next) continue;
        const uint64_t target = *next + static_cast<uint64_t>(int64_t{load<int32_t>(bytes.data() + at + 1)});
        for (const unwind::FunctionRange &function : functions)
            if (function.start == target && function.end - function.start > largest.end - largest.start)
                largest = {function.start, function.end};
    }
    if (largest.end - largest.start <= own.end - own.start) return;
    of.enters = std::exchange(of.evaluates, with_cold_parts(file, bytes, largest.start, largest.end));
}

} // namespace rawbpf::inline v0::languages
