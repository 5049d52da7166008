// The functions of a file, sorted, their programs run, and the rows packed.
//
//      .eh_frame ---+--> functions, by start --> run --> address, rule (8 bytes)  --> 64 KiB pages of rows: low 16 bits | rule's number
//      .debug_frame-'     where two begin at                    |
//                         one address the first;                '--> rules, each once: a hash with open addressing
//                         one ends where the next begins
//
// Between two functions lies a row with rule 0, "nothing is known": padding, or assembly that says nothing of itself. Of arm64's
// the instructions say something (arm64_gaps.h). Of any, one thing is looked for: the code that signal handlers return to.
// arm64's vdso (since Linux 5.8) and musl have no entry for it. As with those who have one, its row begins one byte early: a
// lookup of a return address uses the byte before it. Rows that say what the row before says are left out, also across functions.
//
// Some code that has no entry is known all the same: a program's entry point and the code that a thread begins with, where stacks
// end; and the PLT of arm64 and riscv64. It stands among the functions, marked (UNWIND_ADDED), where no function covers it.
//
//      arm64's PLT:   stp x16, x30, [sp, #-16]!   adrp   ldr   add   br   ...    32 bytes: from the second instruction on sp + 16
//                     adrp x16   ldr x17   add x16   br x17                      of each function: nothing has changed yet
//
// A Go program has a table of its own (go_frames.h). Both sections are read: what was built with -fno-asynchronous-unwind-tables
// and -g has only the C library's own start code in .eh_frame. Addresses that lie in no executable segment belong to functions
// that the linker dropped.
#include "runtime/unwind/table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <elf.h>
#include <span>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/elf/compressed.h"
#include "runtime/elf/go_table.h"
#include "runtime/unwind/arm64_gaps.h"
#include "runtime/unwind/cfi.h"
#include "runtime/unwind/functions.h"
#include "runtime/unwind/go_frames.h"

namespace rawbpf::inline v0::unwind {
namespace {

constexpr uint64_t kMaxPages = UINT16_MAX;  // UnwindMapping.page_count
constexpr size_t kMaxSegments = 64;         // executable ones; there are one or two
constexpr uint64_t kMaxSearched = 16 << 20; // a program with more code than that isn't read for a trampoline
constexpr uint64_t kMaxVdso = 32 << 10;
constexpr uint64_t kEntryBytes = 64;     // of an entry point whose size nobody says
constexpr size_t kMaxSymbols = 1 << 14;  // in a table that is searched for where threads begin: a C library's
constexpr uint64_t kPltHeaderBytes = 32; // arm64's
constexpr uint32_t kAdded = 2;           // Function::frames of what no section says
constexpr uint32_t kGo = 3;              // and of what Go's table says; Function::cie numbers its functions
constexpr size_t kHashSize = size_t{2} * UNWIND_RULES;
constexpr UnwindRule kNone = {UNWIND_NONE, 0, 0, 0, 0}, kOdd = {UNWIND_ODD, 0, 0, 0, 0};

uint64_t bits(const UnwindRule &rule) { return std::bit_cast<uint64_t>(rule); }

uint64_t page_of(uint64_t address) { return address >> UNWIND_PAGE_BITS; }

class Builder {
  public:
    explicit Builder(const elf::Elf &file) : file_(file), numbers_(kHashSize) { (void)number(kNone); }

    Result<Table> build() {
        find_code();
        read_go();
        for (const bool eh : {true, false}) TRY(read_section(eh));
        sort();
        if (!functions_.empty()) {
            add_known();
            sort();
        }
        // Of arm64's vdso, which says nothing of any function, sigreturn is known. (Another file that says nothing goes by frame
        // pointers, so it has no table.)
        const bool known = !functions_.empty() || (segments_ == 1 && code_[0]->memory_size <= kMaxVdso &&
                                                   find_trampoline(table_.base, end_).from < end_);
        if (known && searched_ && arm64_) by_instructions_ = read_arm64_gaps(file_, text(), functions_);
        if (known) gap(table_.base, functions_.empty() ? end_ : functions_.front().start);
        for (size_t i = 0, next = 0; i < functions_.size(); i = next) {
            for (next = i + 1; next < functions_.size() && functions_[next].start == functions_[i].start;) ++next;
            add(functions_[i], next < functions_.size() ? functions_[next].start : end_);
        }
        for (size_t i = 0; i < table_.pages.size(); ++i)
            table_.pages[i].rows =
                (i + 1 < table_.pages.size() ? table_.pages[i + 1].first : static_cast<uint32_t>(table_.rows.size())) -
                table_.pages[i].first;
        table_.rows.shrink_to_fit();
        return std::move(table_);
    }

  private:
    void sort() {
        stable_sort(functions_, [](const Function &a, const Function &b) { return a.start < b.start; });
    }

    // --- What no entry says, among functions that are sorted. Function::cie is a Known.

    enum Known : uint32_t { kStart, kPlt, kPltHeader };
    void add_known() {
        const size_t said = functions_.size();
        const auto add = [&](uint64_t start, uint64_t size, Known what) {
            const uint64_t end = start + size;
            if (start == 0 || end < start || !is_code(start, std::min(end, start + 1))) return;
            const auto all = std::span(functions_).first(said);
            const auto after = std::upper_bound(all.begin(), all.end(), start,
                                                [](uint64_t at, const Function &function) { return at < function.start; });
            if (after != all.begin() && (after - 1)->end > start) return;
            Function function;
            function.start = start, function.end = end, function.cie = what, function.frames = kAdded;
            functions_.push_back(function);
        };
        add(file_.entry(), kEntryBytes, kStart);
        for (const elf::SymbolTable &symbols : symbol_tables(file_)) {
            for (size_t i = 0; i < symbols.size() && symbols.size() <= kMaxSymbols; ++i) {
                const elf::Symbol symbol = symbols.at(i);
                if ((symbol.type != STT_FUNC && symbol.type != STT_NOTYPE) || symbol.section == SHN_UNDEF) continue;
                const std::string_view name = symbols.name(i).value_or(std::string_view());
                if (name == "clone" || name == "__clone")
                    add(symbol.value, symbol.size != 0 && symbol.size < 4096 ? symbol.size : kEntryBytes, kStart);
            }
        }
        for (const elf::Section &section : file_.sections()) {
            if (!machine_.described_plt && section.flags & SHF_EXECINSTR && section.name.starts_with(".plt")) {
                const Bytes bytes = file_.contents(section);
                constexpr uint32_t kPush = 0xa9bf7bf0; // stp x16, x30, [sp, #-16]!
                const bool header = arm64_ && bytes.size() >= kPltHeaderBytes;
                const bool pushes = header && load<uint32_t>(bytes.data()) == kPush;
                const bool lands = header && load<uint32_t>(bytes.data() + 4) == kPush; // behind bti
                const uint64_t push = section.address + (lands ? 4 : 0);
                if (!pushes && !lands) {
                    add(section.address, section.size, kPlt);
                    continue;
                }
                add(section.address, push + 4 - section.address, kPlt);
                add(push + 4, section.address + kPltHeaderBytes - push - 4, kPltHeader);
                add(section.address + kPltHeaderBytes, section.size - kPltHeaderBytes, kPlt);
            }
        }
    }
    void put_known(const Function &function) {
        constexpr UnwindRule kRules[] = {{UNWIND_END, UNWIND_ADDED, 0, 0, 0},
                                         {UNWIND_SP, UNWIND_ADDED | UNWIND_RA_IN_LR, 0, 0, 0},
                                         {UNWIND_SP, UNWIND_ADDED, 2, 0, -1}};
        put(function.start, number(kRules[function.cie]));
    }

    void find_code() {
        uint64_t first = UINT64_MAX;
        for (const elf::Segment &segment : file_.segments())
            if (segment.type == PT_LOAD && segment.flags & PF_X && segments_ < kMaxSegments &&
                segment.address + segment.memory_size > segment.address) {
                code_[segments_++] = &segment;
                first = std::min(first, segment.address);
                end_ = std::max(end_, segment.address + segment.memory_size);
            }
        if (segments_ == 0) return;
        table_.base = page_of(first) << UNWIND_PAGE_BITS;
        end_ = std::min(end_, table_.base + (kMaxPages << UNWIND_PAGE_BITS) - 1);
        uint64_t bytes = 0;
        for (const elf::Section &section : file_.sections())
            if (section.flags & SHF_EXECINSTR && sections_ < kMaxSegments) {
                text_[sections_++] = &section;
                bytes += section.size;
            }
        searched_ = bytes <= kMaxSearched;
    }

    [[nodiscard]] std::span<const elf::Section *const> text() const { return std::span(text_).first(sections_); }

    [[nodiscard]] bool is_code(uint64_t start, uint64_t end) const {
        return std::any_of(code_.begin(), code_.begin() + segments_, [&](const elf::Segment *s) {
            return start >= s->address && end <= s->address + s->memory_size && end <= end_;
        });
    }

    // Before all others: it knows where stacks begin, which .debug_frame of the same functions doesn't.
    void read_go() {
        if (auto table = elf::read_go_table(file_)) go_ = std::move(*table);
        for (uint32_t i = 0; i < go_.functions.size(); ++i) {
            const elf::GoFunction &is = go_.functions[i];
            if (!is_code(is.start, is.end)) continue;
            Function function;
            function.start = is.start, function.end = is.end, function.cie = i, function.frames = kGo;
            if (go_kind(go_, is) == GoKind::signal) --function.start; // as where nobody describes such code: see above
            functions_.push_back(function);
        }
    }

    Result<void> read_section(bool eh) {
        const elf::Section *section = file_.find_section(eh ? ".eh_frame" : ".debug_frame");
        if (!section && !eh) section = file_.find_section(".zdebug_frame");
        if (!section || (!eh && !go_.functions.empty())) return {}; // Go's is made of its table
        Frames &frames = frames_[eh ? 0 : 1];
        frames = frames_of(file_, *section, eh);
        if (auto plain = elf::decompressed(file_, *section, kMostFrameBytes); !plain) {
            bad(frames, 0, plain.error().message());
            return {};
        } else if (*plain) {
            unpacked_ = std::move(**plain);
            frames.bytes = Bytes(reinterpret_cast<const std::byte *>(unpacked_.data()), unpacked_.size());
        }
        if (frames.bytes.size() > kMostFrameBytes)
            return fail(Errc::unsupported, "{}: {} has more than {} MiB, the most that rawbpf reads", file_.name(), section->name,
                        kMostFrameBytes >> 20);
        table_.rows.reserve(table_.rows.capacity() + frames.bytes.size() / 4);
        functions_.reserve(functions_.size() + frames.bytes.size() / 64);

        Entry entry;
        for (uint64_t at = 0; entry = read_entry(frames, at), entry.kind != Entry::end; at = entry.next) {
            if (entry.kind == Entry::bad) bad(frames, at, "it doesn't fit into its section");
            if (entry.kind != Entry::fde) continue;
            Function function;
            const char *problem = use_cie(frames, entry.cie_at);
            if (!problem) problem = read_fde(frames, cie_, entry.rest, function);
            if (problem) {
                bad(frames, at, problem);
                continue;
            }
            if (function.start == function.end) continue;
            if (!is_code(function.start, function.end)) {
                // 0, and LLVM's -1 and -2: of a function that the linker left out.
                if (function.start != 0 && function.start < UINT64_MAX - 1)
                    bad(frames, at, "its function isn't in executable memory");
                continue;
            }
            function.cie = static_cast<uint32_t>(entry.cie_at);
            function.frames = eh ? 0 : 1;
            // riscv64's vdso: its entry begins with the instruction that signal handlers return to. Whoever looks for a return
            // address looks one byte before it.
            if (cie_.signal && function.start > 0 && code_begins(function.start, machine_.sigreturn)) --function.start;
            functions_.push_back(function);
        }
        return {};
    }

    // Neighbours mostly have the same CIE.
    const char *use_cie(const Frames &frames, uint64_t at) {
        if (cie_.at == at && cie_frames_ == &frames) return nullptr;
        cie_frames_ = &frames;
        cie_.at = UINT64_MAX;
        return read_cie(frames, at, cie_);
    }

    void bad(const Frames &frames, uint64_t at, std::string_view problem) {
        if (table_.stats.bad_entries++ == 0)
            table_.stats.first_bad =
                format("{}: {}: offset {:#x}: {}", file_.name(), frames.eh ? ".eh_frame" : ".debug_frame", at, problem);
    }

    void bad_go(const elf::GoFunction &function, std::string_view problem) {
        if (table_.stats.bad_entries++ == 0)
            table_.stats.first_bad = format("{}: .gopclntab: the function at {:#x}: {}", file_.name(), function.start, problem);
    }

    void add(Function &function, uint64_t until) {
        if (function.frames == kAdded) {
            put_known(function);
            if (function.end < until || until == end_) gap(std::min(function.end, until), until);
            return;
        }
        changes_.clear();
        if (function.frames == kGo) {
            const elf::GoFunction &is = go_.functions[function.cie];
            if (const char *problem = go_rules(go_, is, machine_, changes_)) {
                put(function.start, 0);
                return bad_go(is, problem);
            }
            changes_.front().address = function.start;
            ++table_.stats.functions;
            return put_changes(std::min(function.end, until), until);
        }
        const Frames &frames = frames_[function.frames];
        const char *problem = use_cie(frames, function.cie);
        if (!problem) problem = run_program(frames, cie_, function, changes_);
        if (problem) {
            put(function.start, 0);
            return bad(frames, static_cast<uint64_t>(function.program.data() - frames.bytes.data()), problem);
        }
        const bool ends = function.start == file_.entry() && end_at_entry();
        count();
        const uint64_t end = std::min(function.end, until);
        if (arm64_ && !ends) correct_arm64_function(file_, text(), {function.start, end}, changes_);
        put_changes(end, until);
    }

    void put_changes(uint64_t end, uint64_t until) {
        for (const Change &change : changes_) {
            if (change.address >= end) break;
            put(change.address, number(change.rule));
        }
        if (end < until || until == end_) gap(end, until);
    }

    // Nobody calls a program's entry point, whatever its entry says: one that a C compiler made claims a return address. (Of a
    // library it may be whatever function came first.) glibc's for arm64 says so behind its first instruction, a nop where a
    // landing pad may be.
    bool end_at_entry() {
        const bool late =
            changes_.size() > 1 && changes_[1].rule.kind == UNWIND_END && changes_[1].address - changes_[0].address <= 4;
        if (!late && !is_program()) return false;
        if (!late) changes_.resize(1);
        changes_[0].rule = {UNWIND_END, 0, 0, 0, 0};
        return true;
    }

    [[nodiscard]] bool is_program() const {
        if (file_.type() == ET_EXEC) return true;
        const auto &all = file_.segments();
        if (std::any_of(all.begin(), all.end(), [](const elf::Segment &s) { return s.type == PT_INTERP; })) return true;
        const elf::Section *dynamic = file_.find_section(".dynamic");
        const Bytes entries = dynamic ? file_.contents(*dynamic) : Bytes();
        for (size_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size(); at += sizeof(Elf64_Dyn)) {
            const auto entry = load<Elf64_Dyn>(entries.data() + at);
            if (entry.d_tag == DT_FLAGS_1) return (entry.d_un.d_val & DF_1_PIE) != 0; // static, at any address
        }
        return false;
    }

    // GCC on arm64 sets frame pointers up, but counts from sp: there, fp and lr lie behind each other. The PLT, _start and
    // sigreturn aren't what was asked about.
    void count() {
        bool framed = false, pointed = false, counts = true;
        for (const auto &[address, rule] : changes_) {
            framed |= rule.kind == UNWIND_SP && rule.cfa != changes_.front().rule.cfa;
            pointed |= rule.kind == UNWIND_FP || rule.kind == UNWIND_FP_DEREF ||
                       (rule.fp != 0 && rule.ra == rule.fp + 1 && rule.ra != -1);
            counts &= rule.kind != UNWIND_PLT && rule.kind != UNWIND_END && rule.kind != UNWIND_SIGNAL;
        }
        table_.stats.framed += counts && (framed || pointed);
        table_.stats.frame_pointers += counts && pointed;
        ++table_.stats.functions;
    }

    // --- What no function says, among functions that are sorted

    struct Range {
        uint64_t from = 0, to = 0;
    };
    // The code that signal handlers return to.
    [[nodiscard]] Range find_trampoline(uint64_t from, uint64_t to) const {
        const std::string_view code = machine_.sigreturn;
        for (const elf::Section *section : searched_ ? text() : std::span<const elf::Section *const>()) {
            const uint64_t first = std::max(from, section->address), last = std::min(to, section->address + section->size);
            const Bytes bytes = file_.contents(*section);
            if (first >= last || last - section->address > bytes.size() || last - first < code.size()) continue;
            const std::byte *begin = bytes.data() + (first - section->address);
            const void *found = memmem(begin, last - first, code.data(), code.size());
            if (!found) continue;
            const uint64_t at = first + static_cast<uint64_t>(static_cast<const std::byte *>(found) - begin);
            // Without a byte before it that is nobody's, only those who stand in it find it.
            return {at > from ? at - 1 : at, at + code.size()};
        }
        return {to, to};
    }

    [[nodiscard]] bool code_begins(uint64_t address, std::string_view with) const {
        for (const elf::Section *section : text()) {
            const Bytes bytes = file_.contents(*section);
            const uint64_t at = address - section->address;
            if (address < section->address || at > bytes.size() || bytes.size() - at < with.size()) continue;
            return std::memcmp(bytes.data() + at, with.data(), with.size()) == 0;
        }
        return false;
    }

    // Whether glibc's __start_context is there, of x86_64 or arm64 (riscv64's entry says it): makecontext() makes its first byte
    // the return address of a context's function, and its entry doesn't say that stacks end in it. Behind a landing pad, or room
    // for one:
    //
    //      x86_64:   mov rsp, rbx     mov rdi, [rsp]     test rdi, rdi
    //      arm64:    mov x0, x19      cbnz x0, setcontext
    [[nodiscard]] bool begins_contexts(uint64_t address) const {
        constexpr std::string_view x86_64("\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff", 10), endbr64("\xf3\x0f\x1e\xfa", 4);
        constexpr std::string_view arm64("\xe0\x03\x13\xaa", 4), bti_c("\x5f\x24\x03\xd5", 4), nop("\x1f\x20\x03\xd5", 4);
        for (const elf::Section *section : searched_ ? text() : std::span<const elf::Section *const>()) {
            const Bytes bytes = file_.contents(*section);
            if (address < section->address || address - section->address >= bytes.size()) continue;
            std::string_view code(reinterpret_cast<const char *>(bytes.data()), bytes.size());
            code.remove_prefix(address - section->address);
            const bool padded = code.starts_with(endbr64) || (arm64_ && (code.starts_with(bti_c) || code.starts_with(nop)));
            if (padded) code.remove_prefix(4);
            if (machine_.arch == Arch::x86_64) return code.starts_with(x86_64);
            return code.starts_with(arm64) && code.size() >= 8 &&
                   (load<uint32_t>(reinterpret_cast<const std::byte *>(code.data()) + 4) & 0xff00001f) == 0xb5000000;
        }
        return false;
    }

    // No function says anything about [from, to).
    void gap(uint64_t from, uint64_t to) {
        const Range trampoline = find_trampoline(from, to);
        auto next = std::lower_bound(by_instructions_.begin(), by_instructions_.end(), from,
                                     [](const Change &change, uint64_t address) { return change.address < address; });
        uint32_t rule = 0;
        put(from, rule);
        const auto put_until = [&](uint64_t end) {
            for (; next != by_instructions_.end() && next->address < end; ++next) {
                rule = number(next->rule);
                if (next->address < trampoline.from || next->address >= trampoline.to) put(next->address, rule);
            }
        };
        put_until(trampoline.from);
        if (trampoline.from < to) put(trampoline.from, number({UNWIND_SIGNAL, 0, 0, 0, 0}));
        put_until(trampoline.to);
        if (trampoline.to < to) put(trampoline.to, rule);
        put_until(to);
        // Whoever looks for a return address looks one byte before it.
        if (from < to && to < end_ && begins_contexts(to)) put(to - 1, number({UNWIND_END, UNWIND_ADDED, 0, 0, 0}));
    }

    // From address on, which is above all addresses put before.
    void put(uint64_t address, uint32_t rule) {
        if (rule == current_) return;
        const uint64_t page = page_of(address - table_.base);
        while (table_.pages.size() <= page) {
            table_.pages.push_back({static_cast<uint32_t>(table_.rows.size()), 0});
            if (current_ != 0 || table_.pages.size() > page) table_.rows.push_back(UNWIND_ROW(0, current_));
        }
        const auto low = static_cast<uint32_t>(address & 0xffff);
        if (table_.rows.size() > table_.pages.back().first && UNWIND_ROW_LOW(table_.rows.back()) == low) table_.rows.pop_back();
        table_.rows.push_back(UNWIND_ROW(low, rule));
        table_.stats.odd_rows += table_.rules[rule].kind == UNWIND_ODD;
        current_ = rule;
    }

    uint32_t number(const UnwindRule &rule) {
        if (!table_.rules.empty() && bits(table_.rules[last_]) == bits(rule)) return last_;
        size_t at = bits(rule) * 0x9e3779b97f4a7c15 >> 50; // 14 bits of it
        static_assert(kHashSize == size_t{1} << 14);
        for (; numbers_[at]; at = (at + 1) % kHashSize)
            if (bits(table_.rules[numbers_[at] - 1]) == bits(rule)) return last_ = numbers_[at] - 1;
        if (table_.rules.size() >= UNWIND_RULES - 1 && rule.kind != UNWIND_ODD) return number(kOdd);
        table_.rules.push_back(rule);
        numbers_[at] = static_cast<uint16_t>(table_.rules.size());
        return last_ = static_cast<uint32_t>(table_.rules.size() - 1);
    }

    const elf::Elf &file_;
    const Machine &machine_ = *machine_of_elf(file_.machine()); // build_table() has asked
    const bool arm64_ = machine_.arch == Arch::arm64;
    Table table_;
    std::array<const elf::Segment *, kMaxSegments> code_;
    std::array<const elf::Section *, kMaxSegments> text_;
    bool searched_ = false;              // they are, where no function covers them
    size_t segments_ = 0, sections_ = 0; // of these
    uint64_t end_ = 0;                   // of the code
    std::vector<uint16_t> numbers_;      // hash of a rule -> its index + 1
    Frames frames_[2];
    std::string unpacked_; // .debug_frame's bytes, where it is compressed
    elf::GoTable go_;
    std::vector<Function> functions_;
    std::vector<Change> changes_, by_instructions_;
    Cie cie_;
    const Frames *cie_frames_ = nullptr;
    uint32_t current_ = 0, last_ = 0;
};

} // namespace

UnwindRule Table::find(uint64_t address) const {
    if (address < base || page_of(address - base) >= pages.size()) return kNone;
    const TablePage &page = pages[page_of(address - base)];
    if (page.rows == 0) return kNone;
    const auto first = rows.begin() + page.first;
    const auto after = std::upper_bound(first, first + page.rows, UNWIND_ROW(address & 0xffff, 0xffff));
    return rules[UNWIND_ROW_RULE(*(after - 1))];
}

Result<Table> build_table(const elf::Elf &file) {
    if (!machine_of_elf(file.machine()) || !file.is_64() || file.big_endian())
        return fail(Errc::unsupported,
                    "{}: rawbpf can unwind only programs for x86_64, arm64 and riscv64, little-endian with 64 bits", file.name());
    if (file.type() == ET_REL)
        return fail(Errc::unsupported, "{}: it isn't linked, so its functions have no addresses", file.name());
    return Builder(file).build();
}

} // namespace rawbpf::inline v0::unwind
