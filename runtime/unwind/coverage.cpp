// The table's rows, section by section; and what lies between them.
//
//      .text   | rows ... | hole | rows ............ | hole               |
//                            '-- a few bytes:           '-- push rbp; mov rbp, rsp ... push rbp; mov rbp, rsp ...
//                                padding                    one for each two kilobytes at least: it keeps frame pointers
//
// A walk tries the frame pointers of every hole and looks where they lead. What is told here is what it will find: a function
// that sets up a frame pointer begins with two instructions that nothing else looks like.
#include "runtime/unwind/coverage.h"

#include <algorithm>
#include <elf.h>
#include <optional>

#include "runtime/unwind/machines.h"

namespace rawbpf::inline v0::unwind {
namespace {

constexpr uint64_t kPage = uint64_t{1} << UNWIND_PAGE_BITS;
constexpr uint64_t kSmall = 256;           // bytes: padding, and what the C library puts into every program
constexpr uint64_t kBytesAPrologue = 2048; // V8's built-in functions have one for each 700, g++ -O2 for each 150

// riscv64's instructions have two bytes or four: calls `each` with them.
template <class Each> void riscv_instructions(Bytes code, const Each &each) {
    for (size_t at = 0; at + 2 <= code.size();) {
        const auto half = load<uint16_t>(code.data() + at);
        const bool wide = (half & 3) == 3;
        if (wide && at + 4 > code.size()) return;
        each(wide ? load<uint32_t>(code.data() + at) : half);
        at += wide ? 4 : 2;
    }
}
bool riscv_saves_s0(uint32_t is) {
    return (is & 0x01f0'707f) == 0x0080'3023 || (is >> 16 == 0 && (is & 0xe07f) == 0xe022);
} // sd s0

uint64_t riscv_prologues(Bytes code) {
    constexpr int kSoon = 14; // as many registers are saved behind it
    uint64_t prologues = 0;
    int since = kSoon;
    riscv_instructions(code, [&](uint32_t is) {
        const bool narrow = is >> 16 == 0 && is != 0 && (is & 0xe01f) == 0;
        if ((is & 0xf'ffff) == 0x1'0413 || narrow) prologues += since < kSoon; // addi s0, sp, n
        since = riscv_saves_s0(is) ? 0 : since + 1;
    });
    return prologues;
}

bool keeps_pointers(Bytes code, Arch arch) {
    uint64_t prologues = 0;
    if (arch == Arch::riscv64) {
        prologues = riscv_prologues(code);
    } else if (arch == Arch::arm64) {
        for (size_t at = 0; at + 4 <= code.size(); at += 4)
            prologues += (load<uint32_t>(code.data() + at) & 0xffc0'7fff) == 0xa980'7bfd; // stp x29, x30, [sp, #-n]!
    } else {
        for (size_t at = 0; at + 4 <= code.size(); ++at) {
            if (code[at] != std::byte{0x55}) continue;
            const auto four = load<uint32_t>(code.data() + at);
            prologues += four == 0xe589'4855 || four == 0xec8b'4855; // push rbp; mov rbp, rsp
        }
    }
    return prologues > 0 && prologues >= code.size() / kBytesAPrologue;
}

// It may look like more: a byte of a constant that happens to be the instruction's.
bool saves_pointer(Bytes code, Arch arch) {
    if (arch == Arch::riscv64) {
        bool saves = false;
        riscv_instructions(code, [&](uint32_t is) { saves |= riscv_saves_s0(is); });
        return saves;
    }
    if (arch == Arch::arm64) {
        for (size_t at = 0; at + 4 <= code.size(); at += 4) {
            const auto word = load<uint32_t>(code.data() + at);
            const bool pair = (word & 0xfc40'0000) == 0xa800'0000, first = (word & 31) == 29, second = (word >> 10 & 31) == 29;
            const bool one = (word & 0xffc0'0000) == 0xf900'0000 || (word & 0xffe0'0000) == 0xf800'0000;
            if ((pair && (first || second)) || (one && first)) return true; // stp, str
        }
        return false;
    }
    for (size_t at = 0; at < code.size(); ++at) {
        if (code[at] == std::byte{0x55}) return true; // push rbp
        if (at + 3 > code.size() || (code[at] & std::byte{0xfc}) != std::byte{0x48} || code[at + 1] != std::byte{0x89}) continue;
        if ((code[at + 2] & std::byte{0x38}) == std::byte{0x28}) return true; // mov anywhere, rbp
    }
    return false;
}

bool mostly_keeps_pointers(const TableStats &stats) {
    return stats.framed != 0 && uint64_t{stats.frame_pointers} * 100 >= uint64_t{stats.framed} * 95;
}

// What linkers and compilers fill up with, but for nops of several bytes.
Bytes without_padding(Bytes code) {
    const auto pads = [](std::byte byte) { return byte == std::byte{0} || byte == std::byte{0x90} || byte == std::byte{0xcc}; };
    while (!code.empty() && pads(code.front())) code = code.subspan(1);
    while (!code.empty() && pads(code.back())) code = code.first(code.size() - 1);
    return code;
}

// Up to where the rule at an address is true, and which one; nullopt: there is no row.
struct Stretch {
    uint64_t end;
    std::optional<UnwindRule> rule;
};
Stretch stretch_at(const Table &table, uint64_t address) {
    if (address < table.base) return {table.base, std::nullopt};
    const uint64_t page = (address - table.base) / kPage, begin = table.base + page * kPage;
    if (page >= table.pages.size()) return {UINT64_MAX, std::nullopt};
    const TablePage &rows = table.pages[page];
    if (rows.rows == 0) return {begin + kPage, std::nullopt};
    const auto first = table.rows.begin() + rows.first, last = first + rows.rows;
    const auto after = std::upper_bound(first, last, UNWIND_ROW(address & 0xffff, 0xffff));
    const uint64_t end = after == last ? begin + kPage : begin + UNWIND_ROW_LOW(*after);
    return {end, table.rules[UNWIND_ROW_RULE(*(after - 1))]};
}

} // namespace

Coverage coverage(const elf::Elf &file, const Table &table) {
    Coverage out;
    const Machine *machine = machine_of_elf(file.machine());
    const Arch arch = machine ? machine->arch : Arch::other;
    const bool callers_keep = mostly_keeps_pointers(table.stats);
    for (const elf::Section &section : file.sections()) {
        if (!(section.flags & SHF_EXECINSTR) || section.type != SHT_PROGBITS) continue;
        const Bytes bytes = file.contents(section);
        const uint64_t end = section.address + bytes.size();
        if (end < section.address) continue;
        uint64_t hole = section.address; // where the one that may be going on began
        const auto close = [&](uint64_t to) {
            const Bytes code = without_padding(bytes.subspan(hole - section.address, to - hole));
            if (code.size() < kSmall) return;
            const bool kept = keeps_pointers(code, arch) || (callers_keep && !saves_pointer(code, arch));
            (kept ? out.by_pointers : out.by_neither) += code.size();
        };
        for (uint64_t at = section.address; at < end;) {
            const Stretch stretch = stretch_at(table, at);
            const uint64_t to = std::min(stretch.end, end);
            if (stretch.rule && stretch.rule->kind != UNWIND_NONE) {
                close(at);
                hole = to;
                (stretch.rule->kind == UNWIND_ODD ? out.by_neither : out.by_table) += to - at;
            }
            at = to;
        }
        close(end);
    }
    return out;
}

} // namespace rawbpf::inline v0::unwind
