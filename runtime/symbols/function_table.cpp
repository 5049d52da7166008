// A symbol table made searchable.
//
// ELF's table is in the linker's order, and says the same address several times, or in ways that don't help a reader:
//
//     value   size  type    bind    name
//     1f3a0    113  FUNC    LOCAL   __GI___libc_malloc     three names for one function
//     1f3a0    113  FUNC    GLOBAL  __libc_malloc
//     1f3a0    113  FUNC    GLOBAL  malloc                 <- this one is shown
//     1f3c4      0  NOTYPE  LOCAL   retry                  a label inside it: not a function
//     1f500      0  NOTYPE  GLOBAL  _start                 assembly without .size: lasts up to the next symbol
//     1f3a0      0  NOTYPE  LOCAL   $x                     arm64's "code from here on": noise
//
// The rules (near to what perf and addr2line do, but always the same answer for the same file):
// - Functions are STT_FUNC and STT_GNU_IFUNC; an STT_NOTYPE in an executable section counts where no function covers it.
// - A size is believed: an address behind the end of a sized function is not in it. Size 0 lasts to the next symbol or to the
//   section's end.
// - Of several names: one with a size, a real function, an exported name, fewer leading underscores, global before weak, then
//   the shorter and the alphabetically first. The longest of their sizes is taken.
// - Functions can overlap (assembly with several entries, folded code): the innermost wins.
//
// An entry is 12 bytes: its offset from the first function, its size and the name's offset, 32 bits each. libLLVM's 50,000
// symbols take 0.6 MB; the names stay in the file.
#include "runtime/symbols/function_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include <elf.h>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0::symbols {
namespace {

constexpr uint32_t kMaxSize = (1u << 31) - 1;
constexpr size_t kReserved = 1 << 20;
constexpr int kMaxNested = 4096;     // how far find() looks back for an enclosing function, whatever the file claims
constexpr size_t kMaxCompared = 512; // bytes of a name that are looked at: a hostile table may share one endless name

struct Candidate {
    uint64_t start;
    uint32_t size;
    uint32_t index; // in the symbol table
    uint32_t section;
};

// arm64's and riscv's "$x", "$d", "$x.42" and the assembler's local labels.
bool is_noise(std::string_view name) {
    if (name.starts_with(".L")) return true;
    return name.size() >= 2 && name[0] == '$' && (name.size() == 2 || name[2] == '.');
}

// The beginning of a name, which is all that choosing needs; empty where it lies outside the string table.
class Names {
  public:
    Names(const elf::Elf &elf, const elf::SymbolTable &table, const elf::Section &section) : table_(table) {
        if (section.link < elf.sections().size()) strings_ = elf.contents(elf.sections()[section.link]);
    }
    [[nodiscard]] std::string_view operator()(size_t index) const {
        uint32_t offset = table_.name_offset(index);
        if (offset >= strings_.size()) return {};
        const char *text = reinterpret_cast<const char *>(strings_.data()) + offset;
        return {text, strnlen(text, std::min(strings_.size() - offset, kMaxCompared))};
    }

  private:
    const elf::SymbolTable &table_;
    Bytes strings_;
};

// Smaller is better; what its fields mean is in the essay above.
struct Preference {
    bool unsized, not_function, local;
    size_t underscores;
    bool weak;
    size_t length;
    std::string_view name;
    // clang-tidy 14 sees the 0 that the compiler's own code compares with. NOLINTNEXTLINE(modernize-use-nullptr)
    auto operator<=>(const Preference &) const = default;
};

Preference preference(const elf::Symbol &symbol, std::string_view name) {
    size_t underscores = std::min(name.find_first_not_of('_'), name.size());
    return {symbol.size == 0,
            symbol.type == STT_NOTYPE,
            symbol.binding == STB_LOCAL,
            underscores,
            symbol.binding == STB_WEAK,
            name.size(),
            name};
}

} // namespace

Result<FunctionTable> FunctionTable::build(const elf::Elf &elf, const elf::Section &section) {
    elf::SymbolTable table = TRY(elf.symbol_table(section));
    const std::vector<elf::Section> &sections = elf.sections();
    const Names names(elf, table, section);

    std::vector<Candidate> found;
    found.reserve(std::min(table.size(), kReserved)); // the size is a claim, and of a file with holes it costs nothing to make
    for (size_t i = 0; i < table.size() && i < UINT32_MAX; ++i) {
        elf::Symbol symbol = table.at(i);
        bool function = symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC;
        if (!function && symbol.type != STT_NOTYPE) continue;
        if (symbol.section == SHN_UNDEF || symbol.section >= sections.size()) continue; // SHN_ABS and the like too
        const elf::Section &home = sections[symbol.section];
        if (!(home.flags & SHF_EXECINSTR) || symbol.value < home.address || symbol.value - home.address >= home.size) continue;
        if (symbol.type == STT_NOTYPE) {
            std::string_view name = names(i);
            if (name.empty() || is_noise(name)) continue;
        }
        found.push_back({symbol.value, static_cast<uint32_t>(std::min<uint64_t>(symbol.size, kMaxSize)), static_cast<uint32_t>(i),
                         symbol.section});
    }
    std::sort(found.begin(), found.end(),
              [](const Candidate &a, const Candidate &b) { return a.start != b.start ? a.start < b.start : a.index < b.index; });

    // One entry for each address: the best of its names, the longest of its sizes.
    auto out = found.begin();
    for (auto at = found.begin(); at != found.end();) {
        auto next = std::find_if(at, found.end(), [&](const Candidate &c) { return c.start != at->start; });
        Candidate chosen = *at;
        if (next - at > 1) {
            std::optional<Preference> best;
            uint32_t size = 0;
            for (auto it = at; it != next; ++it) {
                Preference its = preference(table.at(it->index), names(it->index));
                if (!best || its < *best) {
                    best = its;
                    chosen = *it;
                }
                size = std::max(size, it->size);
            }
            chosen.size = size;
        }
        *out++ = chosen;
        at = next;
    }
    found.erase(out, found.end());

    // Unsized symbols: nothing where a sized function covers them, else up to the next symbol.
    out = found.begin();
    uint64_t reach = 0; // the furthest end of a sized function so far
    for (auto at = found.begin(); at != found.end(); ++at) {
        Candidate entry = *at;
        if (entry.size == 0) {
            if (entry.start < reach) continue;
            const elf::Section &home = sections[entry.section];
            uint64_t end = home.address + home.size;
            if (auto next = std::next(at); next != found.end()) end = std::min(end, next->start);
            entry.size = static_cast<uint32_t>(std::min<uint64_t>(end - entry.start, kMaxSize));
        } else {
            uint64_t end = 0;
            if (__builtin_add_overflow(entry.start, uint64_t{entry.size}, &end)) continue;
            reach = std::max(reach, end);
        }
        *out++ = entry;
    }
    found.erase(out, found.end());

    FunctionTable functions;
    functions.entries_.reserve(found.size());
    functions.base_ = found.empty() ? 0 : found.front().start;
    reach = 0;
    for (const Candidate &entry : found) {
        uint64_t start = entry.start - functions.base_;
        if (start > UINT32_MAX) break; // no text segment is larger than 4 GiB
        uint64_t end = start + entry.size;
        functions.entries_.push_back({static_cast<uint32_t>(start), entry.size, reach > end, table.name_offset(entry.index)});
        reach = std::max(reach, end);
    }
    return functions;
}

FunctionTable FunctionTable::of(std::vector<Hit> ranges) {
    stable_sort(ranges, [](const Hit &a, const Hit &b) { return a.start != b.start ? a.start < b.start : a.name < b.name; });
    FunctionTable functions;
    functions.base_ = ranges.empty() ? 0 : ranges.front().start;
    functions.entries_.reserve(ranges.size());
    uint64_t reach = 0;
    for (const Hit &range : ranges) {
        uint64_t start = range.start - functions.base_;
        if (start > UINT32_MAX) break;
        if (!functions.entries_.empty() && functions.entries_.back().start == start) continue;
        uint32_t size = std::min(range.size, kMaxSize);
        functions.entries_.push_back({static_cast<uint32_t>(start), size, reach > start + size, range.name});
        reach = std::max(reach, start + size);
    }
    return functions;
}

std::optional<FunctionTable::Hit> FunctionTable::find(uint64_t address) const {
    if (address < base_ || address - base_ > UINT32_MAX) return std::nullopt;
    auto wanted = static_cast<uint32_t>(address - base_);
    auto at = std::upper_bound(entries_.begin(), entries_.end(), wanted, [](uint32_t a, const Entry &e) { return a < e.start; });
    for (int looked = 0; at != entries_.begin() && looked < kMaxNested; ++looked) {
        --at;
        if (wanted - at->start < at->size) return Hit{base_ + at->start, at->size, at->name};
        if (!at->covered) break;
    }
    return std::nullopt;
}

} // namespace rawbpf::inline v0::symbols
