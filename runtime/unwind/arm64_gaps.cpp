// Padding is left out, so most files have a few hundred bytes to look at: what the compiler puts at a program's start and end.
// The nop that .init and .fini begin with isn't padding: it leaves room for what signs return addresses.
#include "runtime/unwind/arm64_gaps.h"

#include <algorithm>
#include <elf.h>

#include "runtime/base/stable_sort.h"
#include "runtime/unwind/arm64_code.h"

namespace rawbpf::inline v0::unwind {
namespace {

constexpr uint64_t kMost = 2 << 20;     // bytes in gaps
constexpr uint64_t kStartAndEnd = 1024; // of less it isn't worth a search for who calls it
constexpr UnwindRule kNone = {UNWIND_NONE, 0, 0, 0, 0};

// Of [from, to) what lies in this section.
Arm64Code code_in(const elf::Elf &file, const elf::Section &section, uint64_t from, uint64_t to) {
    const Bytes all = file.contents(section);
    const uint64_t first = (std::max(from, section.address) - section.address + 3) & ~uint64_t{3};
    const uint64_t last = std::min<uint64_t>(std::max(to, section.address) - section.address, all.size());
    return first < last ? Arm64Code{section.address + first, all.subspan(first, last - first)} : Arm64Code{};
}

Arm64Code code_of(const elf::Elf &file, std::span<const elf::Section *const> text, FunctionRange function) {
    for (const elf::Section *section : text)
        if (const Arm64Code code = code_in(file, *section, function.start, function.end); !code.bytes.empty()) return code;
    return {};
}

// .init and .fini are a function each, made of pieces of several object files: no entry and, in a stripped file, no symbol tells
// of it.
bool is_function(const elf::Section &section) { return section.name == ".init" || section.name == ".fini"; }

Arm64Code without_padding(Arm64Code code) {
    while (code.bytes.size() >= 4 && is_arm64_padding(load<uint32_t>(code.bytes.data())))
        code = {code.address + 4, code.bytes.subspan(4)};
    return code.bytes.size() < 4 ? Arm64Code{} : code;
}

// Ascending, and none reaches into another: sections of a damaged file may.
std::vector<Arm64Code> gaps_between(const elf::Elf &file, std::span<const elf::Section *const> text,
                                    std::span<const Function> functions) {
    std::vector<Arm64Code> gaps;
    for (const elf::Section *section : text) {
        const auto add = [&](uint64_t from, uint64_t to) {
            Arm64Code code = from < to ? code_in(file, *section, from, to) : Arm64Code{};
            if (from != section->address || !is_function(*section)) code = without_padding(code);
            if (!code.bytes.empty() && code.end() > code.address) gaps.push_back(code);
        };
        uint64_t end = section->address;
        for (const Function &function : functions) {
            add(end, function.start);
            end = std::max(end, function.end);
        }
        add(end, UINT64_MAX);
    }
    stable_sort(gaps, [](const Arm64Code &a, const Arm64Code &b) { return a.address < b.address; });
    uint64_t end = 0;
    std::erase_if(gaps, [&](const Arm64Code &gap) {
        const bool inside = gap.address < end;
        if (!inside) end = gap.end();
        return inside;
    });
    return gaps;
}

// Which of the gaps' instructions are known to begin a function: each once, however often a file says so.
class Entries {
  public:
    explicit Entries(std::span<const Arm64Code> gaps) : gaps_(gaps) {
        for (const Arm64Code &gap : gaps) {
            first_.push_back(begins_.size());
            begins_.resize(begins_.size() + gap.bytes.size() / 4);
        }
    }
    void add(uint64_t address) {
        const auto after = std::upper_bound(gaps_.begin(), gaps_.end(), address,
                                            [](uint64_t at, const Arm64Code &gap) { return at < gap.address; });
        if (after == gaps_.begin() || address % 4 != 0) return;
        const uint64_t word = (address - (after - 1)->address) / 4;
        if (word < (after - 1)->bytes.size() / 4) begins_[first_[static_cast<size_t>(after - 1 - gaps_.begin())] + word] = true;
    }
    [[nodiscard]] std::vector<uint64_t> list() const {
        std::vector<uint64_t> out;
        for (size_t i = 0; i < gaps_.size(); ++i)
            for (uint64_t word = 0; word < gaps_[i].bytes.size() / 4; ++word)
                if (begins_[first_[i] + word]) out.push_back(gaps_[i].address + word * 4);
        return out;
    }

  private:
    std::span<const Arm64Code> gaps_;
    std::vector<size_t> first_; // of each gap, among all instructions
    std::vector<bool> begins_;  // by instruction
};

} // namespace

std::vector<Change> read_arm64_gaps(const elf::Elf &file, std::span<const elf::Section *const> text,
                                    std::span<const Function> functions) {
    const std::vector<Arm64Code> gaps = gaps_between(file, text, functions);
    uint64_t bytes = 0;
    for (const Arm64Code &gap : gaps) bytes += gap.bytes.size();
    if (gaps.empty() || bytes > kMost) return {};
    Entries entries(gaps);
    std::vector<uint64_t> calls; // of one function
    // Of functions only: what else lies in such a section may look like a call. One that another begins in ends there.
    for (size_t i = 0; bytes > kStartAndEnd && i < functions.size(); ++i) {
        const uint64_t end = i + 1 < functions.size() ? std::min(functions[i].end, functions[i + 1].start) : functions[i].end;
        calls.clear();
        find_arm64_calls(code_of(file, text, {functions[i].start, end}), calls);
        for (uint64_t target : calls) entries.add(target);
    }
    for (const elf::Section *section : text)
        if (is_function(*section)) entries.add(section->address);
    for (const elf::SymbolTable &symbols : symbol_tables(file))
        for (size_t i = 0; i < symbols.size(); ++i)
            if (const elf::Symbol symbol = symbols.at(i); symbol.type == STT_FUNC) entries.add(symbol.value);
    return arm64_rules(gaps, entries.list());
}

void correct_arm64_function(const elf::Elf &file, std::span<const elf::Section *const> text, FunctionRange function,
                            std::vector<Change> &changes) {
    const auto takes_away = [](const Change &change) { return change.rule.kind == UNWIND_SP && change.rule.cfa == 0; };
    if (!takes_away(changes.front())) return; // a part that the function jumps to, with its frame
    if (takes_away(changes.back()) || std::any_of(changes.begin() + 1, changes.end(), takes_away)) return;
    if (function.end - function.start > kMost) return;
    const std::vector<Change> read = arm64_function_rules(code_of(file, text, function));
    const auto in_register = [](const UnwindRule &rule) { return (rule.flags & UNWIND_RA_IN_LR) != 0; };
    const bool saves = std::any_of(read.begin(), read.end(), [](const Change &change) { return change.rule.ra != 0; });
    std::vector<Change> both;
    for (size_t i = 0, j = 0; i < changes.size() || j < read.size();) {
        const uint64_t next_said = i < changes.size() ? changes[i].address : UINT64_MAX;
        const uint64_t next_read = j < read.size() ? read[j].address : UINT64_MAX;
        i += next_said <= next_read, j += next_read <= next_said;
        const UnwindRule said = i > 0 ? changes[i - 1].rule : kNone, rule = j > 0 ? read[j - 1].rule : kNone;
        const bool better = rule.kind != UNWIND_NONE && (said.kind == UNWIND_SP || said.kind == UNWIND_FP) &&
                            (!same_cfa(said, rule) || (saves && in_register(rule) && !in_register(said)));
        both.push_back({std::min(next_said, next_read), better ? rule : said});
    }
    changes = std::move(both);
}

} // namespace rawbpf::inline v0::unwind
