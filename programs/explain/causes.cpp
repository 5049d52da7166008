// From the refused instruction back to where its value began.
//
//      9   r0 = bpf_map_lookup_elem()       origin: a pointer to a value of map counts, or NULL
//      10  r7 = r0                          carried: a copy
//      25  *(u64 *)(r10 - 16) = r7          carried: kept on the stack
//      31  r7 = *(u64 *)(r10 - 16)          carried: read back
//      34  *(u64 *)(r7 + 0) = r8            use: refused
//
// One place is followed backwards along the path: a register, or a slot of the stack, of one function's frame. A copy leads to
// another register, a load from the stack to its slot, a call to the arguments, a return to the callee's r0. Comparisons of the
// place on the way are checks. If there is none of the kind that was needed, that is the conclusion.
//
// A pointer to which a register was added is bad by its offset: then the register is followed, not the pointer.
#include "programs/explain/causes.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "asm/helpers.h"
#include "asm/print.h"
#include "runtime/base/format.h"
#include "runtime/kernel/refusal_parts.h"

namespace rawbpf::inline v0::explain {

namespace {

// Of linux/bpf_common.h: instruction classes and modes.
constexpr unsigned kLoadWide = 0, kLoad = 1, kStoreNumber = 2, kStore = 3, kAlu = 4, kJump = 5, kJump32 = 6, kAlu64 = 7;
constexpr unsigned kModeMemory = 3, kModeSigned = 4, kModeAtomic = 6;

unsigned class_of(const Insn &i) { return i.code & 7u; }
unsigned mode_of(const Insn &i) { return i.code >> 5u; }
unsigned operation_of(const Insn &i) { return i.code & 0xf0u; }
bool by_register(const Insn &i) { return (i.code & 8u) != 0; }
bool is_call(const Insn &i) { return i.code == 0x85; }
bool is_exit(const Insn &i) { return i.code == 0x95; }
bool is_branch(const Insn &i) {
    const unsigned operation = operation_of(i);
    return (class_of(i) == kJump || class_of(i) == kJump32) && operation != 0 && operation != 0x80 && operation != 0x90;
}
std::string_view sign_of(unsigned operation, bool jump) {
    constexpr std::string_view kAluSigns[] = {
        "+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", "= -", "%=", "^=", "=", "s>>=", "= bswap"};
    constexpr std::string_view kJumpSigns[] = {"", "==", ">", ">=", "&", "!=", "s>", "s>=", "", "", "<", "<=", "s<", "s<="};
    const unsigned n = operation >> 4;
    return n >= 14 ? "" : jump ? kJumpSigns[n] : kAluSigns[n];
}
/// The opposite, for a branch that wasn't taken.
std::string_view opposite(std::string_view sign) {
    constexpr std::string_view kPairs[][2] = {{"==", "!="}, {">", "<="}, {">=", "<"}, {"s>", "s<="}, {"s>=", "s<"}};
    for (const auto &[a, b] : kPairs) {
        if (sign == a) return b;
        if (sign == b) return a;
    }
    return "no bit of";
}

// The place that is followed.
struct Followed {
    unsigned frame = 0;
    int reg = -1; ///< -1: the slot
    int slot = 0; ///< below 0, from r10
    [[nodiscard]] int place() const { return reg >= 0 ? reg : slot; }
    [[nodiscard]] std::string name() const { return reg >= 0 ? format("r{}", reg) : format("the stack at r10 - {}", -slot); }
};

class Tracer {
  public:
    Tracer(const Trace &trace, const ProgramSpec &program, const std::vector<uint32_t> &path, const Refusal &refusal)
        : trace_(trace), program_(program), path_(path), refusal_(refusal) {}

    Chain follow(int reg) {
        const size_t end = path_.size() - 1;
        followed_.frame = step(end).frame;
        followed_.reg = reg;
        for (size_t i = end; i-- > 0 && !done_;) back(i);
        if (!done_) entry();
        std::reverse(chain_.causes.begin(), chain_.causes.end());
        return std::move(chain_);
    }

  private:
    [[nodiscard]] const TraceStep &step(size_t i) const { return trace_.steps[path_[i]]; }
    [[nodiscard]] const Insn &insn(size_t i) const { return program_.insns[step(i).insn]; }

    void add(Cause::Kind kind, size_t at, std::string text) {
        chain_.causes.push_back({kind, at, step(at).insn, std::move(text)});
        done_ = kind == Cause::Kind::origin;
    }
    // "r7 = r0": with what it is then, if that is known.
    [[nodiscard]] std::string being(size_t at, const Followed &of) const {
        const std::string words = words_of(trace_.value_after(path_, at, of.place(), of.frame));
        return words.empty() ? std::string() : ": " + words;
    }

    void entry() {
        if (path_.empty()) return;
        if (!trace_.whole)
            add(Cause::Kind::origin, 0, format("{} is from before the log's beginning", followed_.name()));
        else if (followed_.reg == 1 && followed_.frame == 0)
            add(Cause::Kind::origin, 0, "r1 is the context, which the program is called with");
        else if (followed_.reg == 10)
            add(Cause::Kind::origin, 0, "r10 is the top of the stack");
        else
            add(Cause::Kind::origin, 0,
                format("nothing on this path writes to {}; a program starts with r1 (the context) and r10 (the stack) alone",
                       followed_.name()));
    }

    void back(size_t i) {
        const Insn &at = insn(i);
        const unsigned frame = step(i).frame;
        if (is_exit(at) && frame == followed_.frame + 1 && followed_.reg == 0) { // the callee's answer
            add(Cause::Kind::carried, i, "r0 is what the function returned here");
            followed_.frame = frame;
            return;
        }
        if (is_call(at) && at.src == 1 && frame + 1 == followed_.frame) { // we are in the callee
            if (followed_.reg >= 1 && followed_.reg <= 5) {
                add(Cause::Kind::carried, i, format("r{} is an argument that is passed by this call", followed_.reg));
                followed_.frame = frame;
            } else if (followed_.reg != 10) {
                add(Cause::Kind::origin, i, format("nothing in the function called here writes to {}", followed_.name()));
            }
            return;
        }
        if (frame != followed_.frame) {
            if (frame > followed_.frame && followed_.reg < 0 && written_by_change(i)) // by a callee, through a pointer
                add(Cause::Kind::origin, i,
                    format("{} is written to here, in a function that was called{}", followed_.name(), being(i, followed_)));
            return;
        }
        if (is_branch(at))
            branch(i, at);
        else if (followed_.reg < 0)
            slot(i, at);
        else
            reg(i, at);
    }

    // A change of the slot that the instruction doesn't show: a store through another pointer, a helper that fills a buffer.
    [[nodiscard]] bool written_by_change(size_t i) const {
        const TraceStep &s = step(i);
        for (uint32_t n = 0; n < s.known_count; ++n)
            if (trace_.known[s.known + n].place == followed_.slot && trace_.known[s.known + n].frame == followed_.frame)
                return true;
        return false;
    }

    void branch(size_t i, const Insn &at) {
        if (followed_.reg < 0) return;
        const bool left = at.dst == followed_.reg, right = by_register(at) && at.src == followed_.reg;
        if (!left && !right) return;
        const bool taken = step(i).taken;
        std::string_view sign = sign_of(operation_of(at), true);
        if (!taken) sign = opposite(sign);
        const std::string_view half = class_of(at) == kJump32 ? "w" : "r";
        const std::string other = by_register(at) ? format("{}{}", half, unsigned(at.src)) : format("{}", at.imm);
        std::string text = sign == "&"           ? format("{}{} has a bit of {}", half, unsigned(at.dst), other)
                           : sign == "no bit of" ? format("{}{} has no bit of {}", half, unsigned(at.dst), other)
                                                 : format("{}{} {} {}", half, unsigned(at.dst), sign, other);
        ++checks_;
        add(Cause::Kind::check, i,
            format("compared here, and {}: {}{}", taken ? "the jump is taken" : "it goes straight on", text,
                   being(i, followed_)));
    }

    void slot(size_t i, const Insn &at) {
        if (class_of(at) == kStore && at.dst == 10 && covers(at)) {
            if (mode_of(at) != kModeMemory) {
                add(Cause::Kind::origin, i, format("an atomic operation changes {}", followed_.name()));
                return;
            }
            const Followed was = followed_;
            followed_.reg = at.src;
            add(Cause::Kind::carried, i,
                format("r{} is kept on the stack, at r10 - {}{}", unsigned(at.src), -at.off, being(i, was)));
            return;
        }
        if (class_of(at) == kStoreNumber && at.dst == 10 && covers(at)) {
            add(Cause::Kind::origin, i, format("{} is set to {}", followed_.name(), at.imm));
            return;
        }
        if (written_by_change(i))
            add(Cause::Kind::origin, i,
                format("{} is written to by this {}{}", followed_.name(), is_call(at) ? "call" : "store", being(i, followed_)));
    }
    [[nodiscard]] bool covers(const Insn &at) const {
        const int size = static_cast<int>(refusal::size_of(at));
        return at.off <= followed_.slot && followed_.slot < at.off + std::max(size, 1);
    }

    void reg(size_t i, const Insn &at) {
        const int r = followed_.reg;
        if (is_call(at)) {
            call(i, at);
            return;
        }
        const unsigned kind = class_of(at);
        if (kind == kStore && mode_of(at) == kModeAtomic) {
            const bool swap = (at.imm & 0xf0) == 0xf0;
            const bool into = (at.imm & 1) && (swap ? r == 0 : r == at.src);
            if (into) add(Cause::Kind::origin, i, format("r{} is what was in memory, read by this atomic operation", r));
            return;
        }
        if (kind == kLoadWide && !is_wide(at)) {
            if (r == 0) add(Cause::Kind::origin, i, "r0 is a number that was read from the packet");
            if (r >= 1 && r <= 5) add(Cause::Kind::origin, i, format("this load from the packet clears r1 to r5, and so r{}", r));
            return;
        }
        if ((kind != kAlu && kind != kAlu64 && kind != kLoad && kind != kLoadWide) || at.dst != r) return;
        if (kind == kLoadWide) {
            add(Cause::Kind::origin, i, format("r{} is set{}", r, being(i, followed_)));
            return;
        }
        if (kind == kLoad) {
            load(i, at);
            return;
        }
        arithmetic(i, at);
    }

    void load(size_t i, const Insn &at) {
        const std::string_view base = trace_.value_before(path_, i, at.src, followed_.frame);
        if (at.src == 10 && (mode_of(at) == kModeMemory || mode_of(at) == kModeSigned)) {
            add(Cause::Kind::carried, i,
                format("r{} is read back from the stack, at r10 - {}{}", followed_.reg, -at.off, being(i, followed_)));
            followed_.reg = -1;
            followed_.slot = at.off;
            return;
        }
        const std::string from = words_of(base);
        add(Cause::Kind::origin, i,
            format("r{} is read from memory{}{}", followed_.reg,
                   from.empty() ? "" : format(", through r{}, {}", unsigned(at.src), from), being(i, followed_)));
    }

    void arithmetic(size_t i, const Insn &at) {
        const int r = followed_.reg;
        const unsigned operation = operation_of(at);
        const std::string_view half = class_of(at) == kAlu ? "w" : "r";
        if (operation == 0xb0) { // mov
            if (!by_register(at)) {
                add(Cause::Kind::origin, i, format("{}{} = {}: a constant", half, r, at.imm));
                return;
            }
            const Followed was = followed_;
            followed_.reg = at.src;
            add(Cause::Kind::carried, i, format("{}{} = {}{}: a copy{}", half, r, half, unsigned(at.src), being(i, was)));
            if (at.src == 10) done_ = true;
            return;
        }
        const bool pointer = is_pointer(trace_.value_before(path_, i, r, followed_.frame));
        if (by_register(at)) {
            const std::string_view added = trace_.value_before(path_, i, at.src, followed_.frame);
            const std::string text = format("{}{} {} {}{}", half, r, sign_of(operation, false), half, unsigned(at.src));
            // The offset is at fault, not the pointer; of two numbers, the one that is less known.
            const bool other = pointer ? offset_is_wrong() : !added.empty() && is_any(added);
            if (pointer && other) {
                add(Cause::Kind::carried, i,
                    format("{}: the offset is r{}{}", text, unsigned(at.src), added.empty() ? "" : ", " + words_of(added)));
                followed_.reg = at.src;
                checks_ = 0;
                offset_ = true;
                offset_name_ = at.src;
                return;
            }
            add(Cause::Kind::carried, i, format("{}{}", text, being(i, followed_)));
            if (other) followed_.reg = at.src;
            return;
        }
        if (operation == 0x80 || operation == 0xd0)
            add(Cause::Kind::carried, i,
                format("{}{} {}{}", half, r, operation == 0x80 ? "is negated" : "has its bytes swapped", being(i, followed_)));
        else
            add(Cause::Kind::carried, i, format("{}{} {} {}{}", half, r, sign_of(operation, false), at.imm, being(i, followed_)));
    }

    void call(size_t i, const Insn &at) {
        const int r = followed_.reg;
        if (r >= 1 && r <= 5) {
            add(Cause::Kind::origin, i, format("this call clears r1 to r5, and so r{}", r));
            return;
        }
        if (r != 0) return;
        const HelperInfo *helper = at.src == 0 ? find_helper(at.imm) : nullptr;
        std::string who = helper ? format("bpf_{}()", helper->name) : std::string("this function of the kernel");
        for (const Fixup &fixup : program_.fixups)
            if (fixup.insn == step(i).insn && fixup.kind == Fixup::Kind::kfunc) who = fixup.symbol + "()";
        if (at.src == 1) who = "this function"; // a global one: it isn't walked here
        add(Cause::Kind::origin, i, format("r0 is what {} returned{}", who, being(i, followed_)));
    }

    [[nodiscard]] static bool is_pointer(std::string_view value) {
        return !value.empty() && !value.starts_with("scalar") && !verifier_number(value);
    }
    [[nodiscard]] static bool verifier_number(std::string_view value) {
        return !value.empty() && (value[0] == '-' || (value[0] >= '0' && value[0] <= '9'));
    }
    [[nodiscard]] static bool is_any(std::string_view value) { return value.starts_with("scalar("); }
    [[nodiscard]] bool offset_is_wrong() const {
        for (std::string_view words : {"min value", "max value", "unbounded", "outside of the", "out of bounds", "math between",
                                       "not allowed to be negative"})
            if (refusal_.reason.find(words) != std::string::npos) return true;
        return false;
    }

  public:
    size_t checks_ = 0; ///< of the place that is at fault
    bool offset_ = false;
    unsigned offset_name_ = 0;

  private:
    const Trace &trace_;
    const ProgramSpec &program_;
    const std::vector<uint32_t> &path_;
    const Refusal &refusal_;
    Followed followed_;
    Chain chain_;
    bool done_ = false;
};

// What was missing, by the sort of mistake.
std::string conclude(const Refusal &refusal, const Tracer &tracer, int reg) {
    if (refusal.kind == "null") return format("r{} was never compared with 0 on this path", reg);
    if (refusal.kind == "uninitialized") return format("r{} has no value where it is read", reg);
    if (refusal.kind == "bounds" || refusal.kind == "stack") {
        const unsigned name = tracer.offset_ ? tracer.offset_name_ : static_cast<unsigned>(reg);
        if (reg < 0) return {};
        const bool negative = refusal.reason.find("min value is negative") != std::string::npos;
        if (!tracer.offset_ && refusal.reason.find("unbounded") == std::string::npos && !negative) return {};
        if (tracer.checks_ == 0) return format("r{} was never compared with a limit on this path", name);
        return negative ? format("r{} was compared, but may still be negative", name)
                        : format("r{} was compared, but with a limit that is too large", name);
    }
    if (refusal.kind == "packet") {
        const std::optional<int64_t> proved = refusal::number_after(refusal.reason, ",r="),
                                     off = refusal::number_after(refusal.reason, "off="),
                                     size = refusal::number_after(refusal.reason, "size=");
        if (proved && off && size && *proved > 0)
            return format("of the packet, {} are known to be there, and {} are needed", refusal::bytes(*proved), *off + *size);
        return format("r{} was not compared with the packet's end on this path", reg);
    }
    return {};
}

// Acquired somewhere, and not released: the call, and the branches since.
Chain leaked(const Trace &trace, const ProgramSpec &program, const std::vector<uint32_t> &path, int64_t call) {
    Chain out;
    size_t from = path.size();
    for (size_t i = path.size(); i-- > 0 && from == path.size();)
        if (trace.steps[path[i]].insn == call) from = i;
    if (from == path.size()) return out;
    const Insn &at = program.insns[static_cast<size_t>(call)];
    const HelperInfo *helper = is_call(at) && at.src == 0 ? find_helper(at.imm) : nullptr;
    out.causes.push_back({Cause::Kind::origin, from, static_cast<uint32_t>(call),
                          format("{} acquires it", helper ? format("bpf_{}()", helper->name) : "this call")});
    for (size_t i = from + 1; i + 1 < path.size(); ++i) {
        const TraceStep &step = trace.steps[path[i]];
        if (step.end != StepEnd::split && step.end != StepEnd::decided) continue;
        out.causes.push_back(
            {Cause::Kind::carried, i, step.insn, step.taken ? "the path jumps here" : "the path goes straight on here"});
    }
    out.conclusion = "nothing on this path releases it";
    return out;
}

std::optional<int64_t> bound_of(std::string_view value, std::string_view name) { return refusal::bound(value, name); }

} // namespace

std::string words_of(std::string_view value) {
    if (value.empty()) return {};
    const bool digit = value[0] == '-' || (value[0] >= '0' && value[0] <= '9');
    if (digit) return format("the number {}", value);
    if (!value.starts_with("scalar")) {
        std::string out = describe_register(value);
        return out.empty() ? std::string(value) : out;
    }
    const auto least = bound_of(value, "smin"), most = bound_of(value, "smax"), unsigned_least = bound_of(value, "umin"),
               unsigned_most = bound_of(value, "umax");
    if (unsigned_most) return format("a number from {} to {}", unsigned_least.value_or(0), *unsigned_most);
    if (least && most) return format("a number from {} to {}", *least, *most);
    if (least) return format("a number, {} or more", *least);
    if (most) return format("a number, {} or less", *most);
    if (unsigned_least) return format("a number, {} or more, as an unsigned one", *unsigned_least);
    if (value.find("umax32=") != std::string_view::npos || value.find("smin32=") != std::string_view::npos)
        return "a number of whose lower half something is known";
    return "any number";
}

Chain causes_of(const Trace &trace, const ProgramSpec &program, const std::vector<uint32_t> &path, const Refusal &refusal) {
    Chain out;
    if (path.empty()) return out;
    if (refusal.reason.find("alloc_insn=") != std::string::npos) {
        out = leaked(trace, program, path, refusal::number_after(refusal.reason, "alloc_insn=").value_or(-1));
    } else {
        int reg = refusal::register_named(refusal.reason);
        const Insn &at = program.insns[trace.steps[path.back()].insn];
        if (reg < 0) reg = refusal::base_of(at);
        if (reg < 0 && is_exit(at) && refusal.kind == "return") reg = 0;
        const bool follows = reg >= 0 && reg <= 10 && refusal.kind != "loop" && refusal.kind != "complexity" &&
                             refusal.kind != "license" && refusal.kind != "sleep" && refusal.kind != "helper";
        if (follows) {
            Tracer tracer(trace, program, path, refusal);
            out = tracer.follow(reg);
            out.reg = reg;
            out.conclusion = conclude(refusal, tracer, reg);
        }
    }
    std::string text;
    append_insn(text, std::span(program.insns).subspan(trace.steps[path.back()].insn));
    out.causes.push_back({Cause::Kind::use, path.size() - 1, trace.steps[path.back()].insn, format("refused: {}", text)});
    for (const Cause &cause : out.causes) out.needed.push_back(cause.at);
    return out;
}

std::vector<size_t> shortest_path(const Trace &trace, const std::vector<uint32_t> &path, const Chain &chain) {
    std::vector<size_t> out;
    size_t begin = 0;
    // Between two causes: where the same instruction of the same frame comes again, what lies between is left out.
    auto take = [&](size_t end) { // [begin, end)
        std::map<std::pair<uint32_t, uint8_t>, size_t> last;
        for (size_t i = begin; i < end; ++i) last[{trace.steps[path[i]].insn, trace.steps[path[i]].frame}] = i;
        for (size_t i = begin; i < end; ++i) {
            i = last[{trace.steps[path[i]].insn, trace.steps[path[i]].frame}];
            out.push_back(i);
        }
        begin = end;
    };
    for (size_t at : chain.needed) {
        if (at < begin || at >= path.size()) continue;
        take(at);
        out.push_back(at);
        begin = at + 1;
    }
    if (begin < path.size()) take(path.size());
    return out;
}

} // namespace rawbpf::inline v0::explain
