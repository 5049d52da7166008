// Read it beside unwinder.cpp, whose names and order these are: a rule that is changed there is changed here. The unit test lets
// both walk the same stacks by the same tables, sensible ones and nonsense, for each machine, and compares every frame.
//
// What is different: the stack is a copy, so memory elsewhere (another signal's stack, a coroutine's) can't be read; and mappings
// are looked for in a list of our own making, which is in order.
#include "programs/unwind/walk.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace rawbpf::inline v0::unwind {

namespace {

constexpr uint32_t kGoesOn = UINT32_MAX;
constexpr uint32_t kWord = 8;

class StackWalk {
  public:
    StackWalk(const UnwindProgramOptions &program, const WalkTables &tables, std::span<const UnwindMapping> mappings,
              const StackCopy &copy)
        : program_(program), tables_(tables), mappings_(mappings), copy_(copy), pc_(copy.registers.pc),
          address_(copy.registers.address), sp_(copy.registers.sp), fp_(copy.registers.fp), lr_(copy.registers.lr),
          di_(copy.registers.di) {}

    Walked run() {
        out_.ending = UNWIND_ENDED_DEPTH;
        for (uint32_t i = 0; i < program_.depth; ++i) {
            const uint32_t ending = round();
            if (ending == kGoesOn) continue;
            out_.ending = ending;
            break;
        }
        if (out_.frames.empty()) out_.frames.push_back(address_);
        out_.pc = pc_;
        return std::move(out_);
    }

  private:
    /// One frame: from its registers to its caller's, or why not.
    uint32_t round() {
        if (!mapping_ || pc_ < mapping_->start || pc_ >= mapping_->end) {
            mapping_ = find_mapping(pc_);
            if (!mapping_) return guessed_ != 0 ? astray(guessed_) : UNWIND_ENDED_NO_MAPPING;
        }
        if (guessed_ != 0) {
            read_code();
            if (!returned_to()) return astray(guessed_);
        }
        out_.frames.push_back(address_);
        UnwindRule rule = kByFramePointer;
        ListedRule listed;
        if (mapping_->kind == kListed) {
            const auto found = tables_.listed(pc_);
            if (!found) return UNWIND_ENDED_NO_TABLE;
            listed = *found;
            rule = listed.rule;
            note_function(listed);
            if (listed.roughly && out_.frames.size() == 1) rule = leaf_rule(rule);
        } else if (mapping_->kind != UNWIND_BY_FP) {
            if (mapping_->kind != UNWIND_BY_TABLE) return UNWIND_ENDED_NO_TABLE;
            if (const uint32_t ending = find_rule(rule); ending != kGoesOn) return ending;
        }
        if (rule.flags & UNWIND_GUESSED) {
            if (guessed_ == 0) read_code();
            const bool by_its_code = by_code(rule);
            if (!by_its_code || enters_)
                out_.pointed.push_back({static_cast<uint32_t>(out_.frames.size() - 1), fp_, by_its_code});
            if (!by_its_code) return guess(rule);
        }
        if (rule.kind == UNWIND_SIGNAL) return signal();
        uint64_t cfa = 0;
        if (const uint32_t ending = find_cfa(rule, cfa); ending != kGoesOn) return ending;
        const uint64_t fp = fp_;
        const uint32_t ending = step(rule, cfa);
        return ending == kGoesOn && listed.callers_sp != 0 ? take_callers_sp(fp + words(listed.callers_sp)) : ending;
    }

    /// A leaf's, of the rules that are true at a function's beginning, at its end, and where some words are pushed: the first
    /// that leads to where a call returns to.
    [[nodiscard]] UnwindRule leaf_rule(const UnwindRule &listed) {
        constexpr int16_t kMostPushed = 6; // words, of code that compares strings
        if (returns_by(listed)) return listed;
        for (const UnwindRule &rule : {kNoFrame, kPushedFp})
            if (returns_by(rule)) return rule;
        UnwindRule more = listed;
        for (int16_t i = 0; i < kMostPushed; ++i) {
            ++more.cfa;
            if (returns_by(more)) return more;
        }
        return listed;
    }
    [[nodiscard]] bool returns_by(const UnwindRule &rule) {
        const auto back = read(sp_ + words(rule.cfa) - kWord);
        if (!back || !find_mapping(*back - 1)) return false;
        const uint64_t address = std::exchange(address_, *back);
        read_code();
        const bool returned = returned_to();
        address_ = address;
        return returned;
    }

    void note_function(const ListedRule &listed) {
        if (listed.function == 0) return;
        const auto word = read(fp_ + words(listed.function));
        if (!word) return;
        FrameFunction found{static_cast<uint32_t>(out_.frames.size() - 1), *word};
        if (listed.position != 0) {
            found.position = read(fp_ + words(listed.position)).value_or(0);
            if (found.frame == 0) found.running = copy_.registers.code;
        }
        out_.functions.push_back(found);
    }
    uint32_t take_callers_sp(uint64_t at) {
        const auto sp = read(at);
        if (!sp) return UNWIND_ENDED_UNREADABLE;
        if (*sp >= sp_ && *sp % kWord == 0) sp_ = *sp; // else it isn't written yet: a caller with a frame pointer needs none
        return kGoesOn;
    }

    [[nodiscard]] const UnwindMapping *find_mapping(uint64_t pc) const {
        const auto next = std::upper_bound(mappings_.begin(), mappings_.end(), pc,
                                           [](uint64_t at, const UnwindMapping &mapping) { return at < mapping.start; });
        return next == mappings_.begin() || pc >= (next - 1)->end ? nullptr : &*(next - 1);
    }

    template <class T> [[nodiscard]] static T load(const std::byte *pool, uint64_t at) {
        T out{};
        std::memcpy(&out, pool + (at & (UNWIND_POOL_BYTES - sizeof(T))), sizeof out);
        return out;
    }

    uint32_t find_rule(UnwindRule &rule) const {
        const uint64_t offset = pc_ - mapping_->bias, page_number = offset >> UNWIND_PAGE_BITS;
        if (page_number >= mapping_->page_count) return UNWIND_ENDED_NO_TABLE;
        const uint32_t directory = mapping_->pages + static_cast<uint32_t>(page_number) * uint32_t{sizeof(UnwindPage)};
        const std::byte *pool = tables_.pool(directory >> UNWIND_POOL_BITS);
        if (!pool) return UNWIND_ENDED_NO_TABLE;
        const auto page = load<UnwindPage>(pool, directory);
        if (page.rows == 0) return UNWIND_ENDED_NO_TABLE;
        pool = tables_.pool(page.first >> UNWIND_POOL_BITS);
        if (!pool) return UNWIND_ENDED_NO_TABLE;
        // The last row that begins there or before.
        const auto wanted = static_cast<uint32_t>(offset << 16 | 0xffff);
        uint64_t at = page.first, rows = page.rows;
        for (int i = 0; i < UNWIND_PAGE_BITS; ++i) {
            const uint64_t half = rows / 2;
            rows -= half;
            if (load<uint32_t>(pool, at + half * sizeof(uint32_t)) <= wanted) at += half * sizeof(uint32_t);
        }
        const UnwindRule *found = tables_.rule(UNWIND_ROW_RULE(load<uint32_t>(pool, at)));
        if (!found) return UNWIND_ENDED_NO_RULE;
        rule = *found;
        return kGoesOn;
    }

    [[nodiscard]] std::optional<uint64_t> read(uint64_t address) const {
        const uint64_t at = address - copy_.registers.sp;
        if (at < copy_.absent || at > copy_.bytes.size() || copy_.bytes.size() - at < kWord) return std::nullopt;
        uint64_t word = 0;
        std::memcpy(&word, copy_.bytes.data() + at, sizeof word);
        return word;
    }

    /// At the end of a leaf that has taken its frame back (leave; ret) tables still say where the frame pointer was saved: just
    /// below the stack pointer, where a copy has nothing. Then the register has it again.
    [[nodiscard]] std::optional<uint64_t> saved_fp(const UnwindRule &rule, uint64_t cfa) const {
        const bool taken_back =
            out_.frames.size() == 1 && rule.kind == UNWIND_SP && rule.ra == -1 && rule.cfa + rule.fp == -1 && !machine_.link;
        return taken_back ? std::optional(fp_) : read(cfa + words(rule.fp));
    }

    [[nodiscard]] static uint64_t words(int16_t number) { return static_cast<uint64_t>(int64_t{number} * kWord); }

    uint32_t find_cfa(const UnwindRule &rule, uint64_t &cfa) {
        switch (rule.kind) {
        case UNWIND_NONE: return UNWIND_ENDED_NO_RULE;
        case UNWIND_END: return UNWIND_ENDED_ROOT;
        case UNWIND_FP: cfa = fp_ + words(rule.cfa); return kGoesOn;
        case UNWIND_SP:
            if (loose()) {
                if (rule.fp == 0 || rule.ra != rule.fp + 1) return UNWIND_ENDED_ODD;
                cfa = fp_ - words(rule.fp);
                return kGoesOn;
            }
            cfa = sp_ + words(rule.cfa);
            return kGoesOn;
        default: break;
        }
        if (!machine_.expressions) return UNWIND_ENDED_ODD;
        switch (rule.kind) {
        case UNWIND_PLT: cfa = sp_ + words(rule.cfa) + ((pc_ & 15) >= 11 ? kWord : 0); return kGoesOn;
        case UNWIND_R10:
            if (lr_ == 0) return UNWIND_ENDED_ODD;
            cfa = lr_ + words(rule.cfa);
            return kGoesOn;
        case UNWIND_FP_DEREF: {
            const auto there = read(fp_ + words(rule.cfa));
            if (!there) return UNWIND_ENDED_UNREADABLE;
            cfa = *there;
            return kGoesOn;
        }
        case UNWIND_SP_DEREF: {
            const auto there = read(sp_ + words(rule.cfa));
            if (!there) return UNWIND_ENDED_UNREADABLE;
            cfa = *there + kWord;
            return kGoesOn;
        }
        default: return UNWIND_ENDED_ODD;
        }
    }

    /// sp is what the handler's return has left.
    uint32_t signal() {
        if (loose()) return UNWIND_ENDED_ODD;
        guessed_ = 0;
        const RegisterPlaces &at = machine_.signal;
        const auto saved = [&](int16_t place) {
            return place < 0 ? std::optional<uint64_t>(0) : read(sp_ + static_cast<uint64_t>(place));
        };
        const auto fp = saved(at.fp), lr = saved(at.lr), di = saved(at.di), sp = saved(at.sp), pc = saved(at.pc);
        if (!fp || !lr || !di || !sp || !pc) return UNWIND_ENDED_UNREADABLE;
        di_ = *di;
        fp_ = *fp;
        lr_ = *lr;
        sp_ = *sp;
        pc_ = *pc;
        address_ = pc_ | UNWIND_EXACT_PC;
        return kGoesOn;
    }

    uint32_t step(const UnwindRule &rule, uint64_t cfa) {
        if (cfa % kWord != 0) return UNWIND_ENDED_STUCK;
        std::optional<uint64_t> callers_fp = fp_, back;
        if (rule.flags & (machine_.link ? UNWIND_RA_IN_LR : UNWIND_RA_IN_DI)) {
            if (cfa < sp_) return UNWIND_ENDED_STUCK;
            if (!machine_.link && di_ == 0) return UNWIND_ENDED_ODD;
            if (rule.fp != 0) callers_fp = read(cfa + words(rule.fp));
            back = machine_.link ? lr_ : di_;
        } else {
            if (cfa <= sp_) return UNWIND_ENDED_STUCK;
            if (machine_.expressions && (rule.flags & UNWIND_FP_BY_FP))
                callers_fp = read(fp_ + words(rule.fp));
            else if (rule.fp != 0 || rule.ra == 1) // those next to each other are read as one
                callers_fp = saved_fp(rule, cfa);
            back = read(cfa + words(rule.ra));
        }
        if (!callers_fp || !back) return UNWIND_ENDED_UNREADABLE;
        const uint64_t address = *back & program_.address_mask;
        if (address == 0) return UNWIND_ENDED_STUCK;
        guessed_ = 0;
        go_to(address, *callers_fp, cfa);
        return kGoesOn;
    }

    void go_to(uint64_t address, uint64_t callers_fp, uint64_t cfa) {
        address_ = address;
        pc_ = address - 1;
        fp_ = callers_fp;
        sp_ = cfa;
        lr_ = di_ = 0;
    }

    // --- Code that nothing is known of (code_patterns.h)

    /// A frame record may lie anywhere in its frame, so on arm64 the stack pointer of its caller is lost. But where the caller
    /// keeps such a record, too, its place tells where the frame begins.
    [[nodiscard]] bool loose() const { return machine_.loose && guessed_ != 0; }

    [[nodiscard]] static uint32_t astray(uint32_t guessed) { return guessed & ~uint32_t{UNWIND_TABLES}; }

    void read_code() {
        const uint64_t address = address_ & ~UNWIND_EXACT_PC;
        std::array<uint64_t, 2> code{}; // before, here
        const bool alone = address % kCodePage < kWord;
        const auto into = std::as_writable_bytes(std::span(code)).subspan(alone ? kWord : 0);
        if (!tables_.code(alone ? address : address - kWord, into)) code = {};
        before_ = code[0], here_ = code[1];
    }
    /// Behind a call, or an address that an interpreter lets return to.
    [[nodiscard]] bool returned_to() const {
        const auto forms = call_forms(machine_.arch);
        const auto entries = return_entries(machine_.arch);
        if (address_ % kCodePage < kWord) return true; // it can't be told
        return std::any_of(forms.begin(), forms.end(),
                           [&](const CallForm &form) { return (before_ >> form.shift & form.mask) == form.bits; }) ||
               std::find(entries.begin(), entries.end(), here_) != entries.end();
    }
    bool by_code(UnwindRule &rule) {
        enters_ = false;
        const bool exact = pc_ == (address_ & ~UNWIND_EXACT_PC);
        for (const CodePattern &pattern : code_patterns(machine_.arch)) {
            if ((pattern.exact && !exact) || (here_ & pattern.mask) != pattern.here ||
                (before_ & pattern.before_mask) != pattern.before)
                continue;
            rule = pattern.rule;
            enters_ = pattern.exact && out_.frames.size() == 1;
            if (pattern.adds) rule.cfa = static_cast<int16_t>(rule.cfa + (here_ >> 24 & 0xff) / kWord);
            return true;
        }
        return false;
    }
    uint32_t guess(const UnwindRule &rule) {
        const bool switches = (rule.flags & UNWIND_SWITCHES) != 0;
        const uint32_t kind = mapping_->kind == kListed ? UNWIND_BY_TABLE : mapping_->kind;
        const uint32_t astray = switches ? UNWIND_ENDED_ROOT : UNWIND_ENDED_NO_TABLE + kind;
        const uint32_t zero = rule.flags & UNWIND_TO_ROOT ? UNWIND_ENDED_ROOT : astray;
        if (fp_ == 0) return zero;
        const uint64_t record = fp_ + words(machine_.record);
        if (record % kWord != 0 || (!switches && record < sp_) || record + 2 * kWord < record) return astray;
        const auto callers_fp = read(record), back = read(record + kWord);
        if (!callers_fp || !back) return record - sp_ < kFarUp ? UNWIND_ENDED_UNREADABLE : astray;
        const uint64_t address = *back & program_.address_mask;
        if (address == 0) return zero;
        guessed_ = astray | UNWIND_TABLES; // never 0
        go_to(address, *callers_fp, record + 2 * kWord);
        return kGoesOn;
    }

    const UnwindProgramOptions &program_;
    const Machine &machine_ = *find_machine(program_.arch);
    const WalkTables &tables_;
    std::span<const UnwindMapping> mappings_;
    const StackCopy &copy_;
    uint64_t pc_, address_, sp_, fp_, lr_, di_;
    const UnwindMapping *mapping_ = nullptr;
    uint32_t guessed_ = 0;
    uint64_t before_ = 0, here_ = 0; // code
    bool enters_ = false;            // by_code() has found the leaf's beginning
    Walked out_;
};

} // namespace

// The program reads up to the end of the page that sp is in, and then pages. Of a first one that isn't there it sends zeros, and
// in one that is there a frame's return address isn't zero.
std::optional<StackCopy> read_copy(Bytes bytes) {
    if (bytes.size() < sizeof(UnwindRegisters)) return std::nullopt;
    StackCopy copy{load<UnwindRegisters>(bytes.data()), bytes.subspan(sizeof(UnwindRegisters))};
    const size_t first = UNWIND_COPY_PAGE - copy.registers.sp % UNWIND_COPY_PAGE;
    const auto zero = [](std::byte byte) { return byte == std::byte{0}; };
    if (first < copy.bytes.size() &&
        std::all_of(copy.bytes.begin(), copy.bytes.begin() + static_cast<std::ptrdiff_t>(first), zero))
        copy.absent = first;
    return copy;
}

Walked walk(const UnwindProgramOptions &program, const WalkTables &tables, std::span<const UnwindMapping> mappings,
            const StackCopy &copy) {
    return StackWalk(program, tables, mappings, copy).run();
}

} // namespace rawbpf::inline v0::unwind
