// Go's runtime walks stacks, too: to print them, to move them, to collect garbage. It goes by a table of its own, which says for
// each instruction how far the stack pointer has moved since the function was called. No frame pointer is needed for that, and
// assembly says it as well: crypto/sha256.block keeps data in rbp.
//
//      steps of a function:   value +, pc +, value +, pc + ... 0          varints; the first by zigzag, from -1 on
//                             |        '-- so far it is true, in units of the machine's shortest instruction
//                             '-- bytes between the stack pointer and where it was at the call
//
//      x86_64   CFA   | return address | caller's rbp |  ...  | sp            CFA = sp + value + 8
//      arm64    CFA   |  ...  | return address | sp, and below it x29         CFA = sp + value; a leaf's is in x30
//      riscv64  CFA   |  ...  | return address | sp                           likewise, in ra; it has no frame pointer
//
// Some functions of the runtime continue on another stack: systemstack() runs one on the thread's own, asmcgocall() calls C
// there, time.now() calls the vdso. What they do to the stack pointer nobody writes down (Go calls it SPWRITE), but the frame
// pointer stays that of the goroutine: it leads back to it, wherever that stack is. Where it doesn't, the thread's own stack
// began there. As long as such a function hasn't made its frame, and when it has taken it back, the frame pointer is its
// caller's, and the stack pointer is where the steps say:
//
//      time.now    sub  $24, %rsp           0 bytes      CFA = sp + 8
//                  mov  %rbp, 16(%rsp)      24 bytes     by the frame pointer
//                  ...  mov (%rdx), %rsp    24 bytes     another stack
//                  ret                      0 bytes      CFA = sp + 8
//
// Source: Go's runtime/symtab.go (step), cmd/internal/obj/x86, arm64 and riscv (obj.go: what prologues do).
#include "runtime/unwind/go_frames.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace rawbpf::inline v0::unwind {
namespace {

constexpr int64_t kWord = 8, kMostWords = INT16_MAX - 1;

std::string_view name_of(const elf::GoTable &table, uint32_t at) {
    if (at >= table.names.size()) return {};
    const std::string_view all(reinterpret_cast<const char *>(table.names.data()) + at, table.names.size() - at);
    const std::string_view name = all.substr(0, std::min(all.find('\0'), size_t{128}));
    return name.substr(0, name.find(".abi")); // runtime.goexit.abi0
}

template <size_t n> bool is_one(std::string_view name, const std::string_view (&of)[n]) {
    return std::find(std::begin(of), std::end(of), name) != std::end(of);
}

class Steps {
  public:
    Steps(Bytes bytes, size_t at) : bytes_(bytes), at_(at) {}
    // False at the end.
    bool next(bool first, uint8_t quantum, int64_t &value, uint64_t &pc) {
        const uint32_t by = number();
        if (bad_ || (by == 0 && !first)) return false;
        value = static_cast<int32_t>(static_cast<uint32_t>(value) + ((by >> 1) ^ (0 - (by & 1))));
        pc += uint64_t{number()} * quantum;
        return !bad_;
    }
    [[nodiscard]] bool bad() const { return bad_; }

  private:
    uint32_t number() {
        uint32_t out = 0;
        for (uint32_t shift = 0; shift < 35; shift += 7) {
            if (at_ >= bytes_.size()) break;
            const auto byte = static_cast<uint8_t>(bytes_[at_++]);
            out |= static_cast<uint32_t>(byte & 0x7f) << (shift & 31);
            if (!(byte & 0x80)) return out;
        }
        bad_ = true;
        return 0;
    }
    Bytes bytes_;
    size_t at_;
    bool bad_ = false;
};

UnwindRule rule_of(int64_t bytes, const Machine &machine) {
    if (bytes < 0 || bytes % kWord != 0 || bytes / kWord > kMostWords - 2) return {UNWIND_ODD, 0, 0, 0, 0};
    const auto words = static_cast<int16_t>(bytes / kWord);
    if (machine.link && words == 0) return {UNWIND_SP, UNWIND_RA_IN_LR, 0, 0, 0};
    const auto fp = static_cast<int16_t>(machine.gos_fp == 0 ? 0 : machine.gos_fp - words);
    if (machine.link) return {UNWIND_SP, 0, words, fp, static_cast<int16_t>(-words)};
    return {UNWIND_SP, 0, static_cast<int16_t>(words + 1), static_cast<int16_t>(words == 0 ? 0 : -2), -1};
}

} // namespace

GoKind go_kind(const elf::GoTable &table, const elf::GoFunction &function) {
    constexpr std::string_view kRoots[] = {"runtime.goexit", "runtime.mstart", "runtime.rt0_go", "runtime.clone"};
    constexpr std::string_view kSwitches[] = {
        "runtime.systemstack",
        "runtime.mcall",
        "runtime.asmcgocall",
        "runtime.morestack",
        "runtime.gogo",
        "gogo",
        "runtime.cgocallback",
        "runtime.nanotime",
        "runtime.nanotime1",
        "runtime.walltime",
        "runtime.walltime1",
        "time.now", // on x86_64; linked to runtime's by its name
    };
    constexpr std::string_view kSignals[] = {"runtime.sigreturn", "runtime.sigreturn__sigaction"};
    const std::string_view name = name_of(table, function.name);
    const bool writes = (function.flags & elf::kGoWritesStackPointer) != 0;
    if (is_one(name, kSwitches)) return GoKind::switches;
    if (!name.starts_with("runtime.")) return writes ? GoKind::moves : GoKind::plain;
    if (is_one(name, kSignals)) return GoKind::signal;
    if (is_one(name, kRoots)) return GoKind::root;
    // The handler of signals calls itself a top frame; but the kernel has called it, and the stack goes on behind that.
    if ((function.flags & elf::kGoTopFrame) && name != "runtime.sigtramp") return GoKind::root;
    return writes ? GoKind::switches : GoKind::plain;
}

const char *go_rules(const elf::GoTable &table, const elf::GoFunction &function, const Machine &machine,
                     std::vector<Change> &out) {
    std::optional<UnwindRule> moved; // while the frame is there
    switch (go_kind(table, function)) {
    case GoKind::root: out.push_back({function.start, {UNWIND_END, 0, 0, 0, 0}}); return nullptr;
    case GoKind::signal: out.push_back({function.start, {UNWIND_SIGNAL, 0, 0, 0, 0}}); return nullptr;
    case GoKind::switches: moved = {UNWIND_FP, UNWIND_GUESSED | UNWIND_SWITCHES, 2, -2, -1}; break;
    case GoKind::moves: moved = {UNWIND_FP, UNWIND_GUESSED, 2, -2, -1}; break;
    case GoKind::plain: break;
    }
    const size_t before = out.size();
    // 0: it has none, as it moves nothing.
    if (function.stack == 0) {
        out.push_back({function.start, moved.value_or(rule_of(0, machine))});
        return nullptr;
    }
    Steps steps(table.steps, function.stack);
    int64_t value = -1;
    uint64_t from = function.start, to = from;
    bool frame = false;
    for (bool first = true; from < function.end && steps.next(first, table.quantum, value, to) && to > from; first = false) {
        frame = frame || value != 0;
        out.push_back({from, moved && value != 0 ? *moved : rule_of(value, machine)});
        from = to;
    }
    // One without a frame of its own: nothing says where it moves the stack pointer.
    if (moved && !frame && out.size() != before) {
        out.resize(before);
        out.push_back({function.start, *moved});
    }
    return out.size() == before || steps.bad() ? "the table of its stack pointer (pcsp) is damaged" : nullptr;
}

} // namespace rawbpf::inline v0::unwind
