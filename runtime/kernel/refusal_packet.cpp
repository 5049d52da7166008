// Advice on accesses to packets: how many bytes each comparison has proved.
//
//      data                pointer of the access       data_end
//      |<-- constant ------|                           |
//      |<------------- r: proved by a comparison ----->|
//
// After a variable number was added, the verifier counts anew (with another id), from the sum without its constant part.
#include <linux/bpf.h>

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/format.h"
#include "runtime/kernel/refusal_parts.h"

namespace rawbpf::inline v0::refusal {
namespace {

// As packet_register(), and as the log says it for a step that names the register.
PacketPlace place_at(const Case &c, size_t step, int reg) {
    const std::string_view value = value_in(c.path[step].after.substr(c.path[step].after.starts_with("; ") ? 2 : 0), reg);
    if (value.starts_with("pkt_end")) return PacketPlace::end;
    if (value.starts_with("pkt_meta")) return PacketPlace::meta;
    if (value.starts_with("pkt")) return PacketPlace::data;
    return value.empty() ? packet_register(c, step, reg) : PacketPlace::none;
}

enum class Proof : uint8_t { none, inside, outside, equality, with_sign };

uint8_t mirrored(uint8_t operation) { // a < b: b > a
    switch (operation) {
    case BPF_JGT: return BPF_JLT;
    case BPF_JLT: return BPF_JGT;
    case BPF_JGE: return BPF_JLE;
    case BPF_JLE: return BPF_JGE;
    default: return operation;
    }
}

// What a comparison of a pointer with the packet's end tells on this path.
Proof proof_at(const Case &c, size_t step, PacketPlace start) {
    const Insn *insn = c.insn_at(c.path[step].insn);
    const PacketPlace end = start == PacketPlace::meta ? PacketPlace::data : PacketPlace::end;
    const PacketPlace left = place_at(c, step, insn->dst), right = place_at(c, step, insn->src);
    if (!(left == start && right == end) && !(left == end && right == start)) return Proof::none;
    uint8_t operation = BPF_OP(insn->code);
    if (left == end) operation = mirrored(operation);
    const bool jumped = c.path[step + 1].insn != c.path[step].insn + 1;
    switch (operation) {
    case BPF_JGT:
    case BPF_JGE: return jumped ? Proof::outside : Proof::inside;
    case BPF_JLT:
    case BPF_JLE: return jumped ? Proof::inside : Proof::outside;
    case BPF_JEQ:
    case BPF_JNE: return Proof::equality;
    case BPF_JSGT:
    case BPF_JSGE:
    case BPF_JSLT:
    case BPF_JSLE: return Proof::with_sign;
    default: return Proof::none;
    }
}

struct Comparison {
    size_t step = 0;
    Proof proof = Proof::none; ///< none: there is no comparison
};

Comparison last_comparison(const Case &c, PacketPlace start) {
    int left = 1000; // a path may have a million steps, and each look goes back along it
    for (size_t i = c.path.size() - 1; i-- > 0 && left > 0;) {
        const Insn *insn = c.insn_at(c.path[i].insn);
        if (!insn || BPF_CLASS(insn->code) != BPF_JMP || BPF_SRC(insn->code) != BPF_X) continue;
        --left;
        if (const Proof proof = proof_at(c, i, start); proof != Proof::none) return {i, proof};
    }
    return {};
}

// Where a number that isn't constant was added to the pointer last.
std::optional<size_t> addition(const Case &c, int reg) {
    for (size_t i = c.path.size() - 1; i-- > 0;) {
        const Insn *insn = c.insn_at(c.path[i].insn);
        if (!insn) return {};
        const uint8_t kind = BPF_CLASS(insn->code);
        if ((kind != BPF_ALU && kind != BPF_ALU64 && kind != BPF_LDX && kind != BPF_LD) || insn->dst != reg) continue;
        if (insn->code == (BPF_ALU64 | BPF_ADD | BPF_X)) return i;
        if (insn->code == (BPF_ALU64 | BPF_MOV | BPF_X))
            reg = insn->src;
        else if (insn->code != (BPF_ALU64 | BPF_ADD | BPF_K))
            return {};
    }
    return {};
}

// `data_end - data` is compared with a number: the step of the subtraction.
std::optional<size_t> difference(const Case &c) {
    for (size_t i = c.path.size() - 1; i-- > 0;) {
        const Insn *insn = c.insn_at(c.path[i].insn);
        if (insn && insn->code == (BPF_ALU64 | BPF_SUB | BPF_X) && packet_register(c, i, insn->dst) == PacketPlace::end) return i;
    }
    return {};
}

// The pointer of the access in words, and its end's.
struct Names {
    std::string_view start, end;
};

// Why no comparison covers the pointer: the place that tells. `moved`: something that isn't constant was added to it.
void explain_uncovered(Case &c, int reg, bool moved, PacketPlace start, const Names &names, std::string_view need) {
    const Comparison last = c.ends_here() ? last_comparison(c, start) : Comparison{};
    const bool found = last.proof != Proof::none;
    if (found)
        if (const auto change = packet_change(c, last.step + 1)) {
            c.note_at(c.path[change->first].insn,
                      format("{} may move or change the packet's data: comparisons before this call are no longer valid",
                             change->second));
            return;
        }
    const std::optional<size_t> added = moved && c.ends_here() ? addition(c, reg) : std::nullopt;
    if (added && (!found || last.step < *added)) {
        c.note_at(c.path[*added].insn,
                  format("a number that isn't constant is added to the pointer here: only a comparison of the "
                         "sum covers the access, which needs {} from it",
                         need));
        return;
    }
    if (last.proof == Proof::outside)
        c.note_at(
            c.path[last.step].insn,
            format(
                "this comparison is the wrong way round: the path to the access is the one where the pointer is at or behind {}",
                names.end));
    else if (last.proof == Proof::equality)
        c.note_at(c.path[last.step].insn, format("this compares with {} by == or !=, which proves no bytes", names.end));
    else if (last.proof == Proof::with_sign)
        c.note_at(c.path[last.step].insn, format("this compares with {} as signed numbers, which proves no bytes", names.end));
    else if (found && !moved)
        c.note_at(c.path[last.step].insn, format("this comparison proves 0 bytes of the access, which needs {}", need));
    else if (const std::optional<size_t> minus = c.ends_here() ? difference(c) : std::nullopt)
        c.note_at(c.path[*minus].insn,
                  "the difference of two pointers is a number: comparing it tells the verifier nothing about the pointers");
    else
        c.note(format("no comparison with {} covers this pointer on the path to here; the access needs {} from it", names.end,
                      need));
}

// The register that has the packet's end; its name in words where it isn't known.
std::string end_register(const Case &c, std::string_view name) {
    for (int reg = 0; reg < 10; ++reg)
        if (register_value(c, reg).starts_with("pkt_end")) return format("r{}", reg);
    return std::string(name);
}

// The comparison that is missing, in the source's language. `need`: bytes from `names.start` on; `ahead`: from the access's
// register on.
std::string missing_comparison(const Case &c, int reg, const Names &names, int64_t need, int64_t ahead) {
    if (!is_assembly(c)) return format("`if ({} + {} > {}) return ...`", names.start, need, names.end);
    const std::string end = end_register(c, names.end);
    const int copy = reg != 4 && end != "r4" ? 4 : reg != 5 && end != "r5" ? 5 : 6;
    return format("`r{0} = r{1}`, `r{0} += {2}`, `if r{0} > {3} goto out`", copy, reg, ahead, end);
}

} // namespace

bool packet(Case &c) {
    const std::string &reason = c.refusal.reason;
    const int reg = register_named(reason);
    const Insn *insn = c.insn();
    if (reg < 0 || !insn) return false;
    const int64_t own = base_of(*insn) == reg ? insn->off : 0; // the instruction's own offset
    std::optional<int64_t> off = number_after(reason, " off="), size = number_after(reason, " size="),
                           has = number_after(reason, ",r=");
    const bool counted = off && size && has; // else only "R3 offset is outside of the packet": it is behind the end
    if (!counted) {
        if (base_of(*insn) != reg) return false;
        off = own;
        size = size_of(*insn);
        has = 0;
    }
    const bool moved = !counted || number_after(reason, "(id=").value_or(0) != 0;
    const bool meta = register_value(c, reg).starts_with("pkt_meta");
    const PacketPlace start = meta ? PacketPlace::meta : PacketPlace::data;
    const Names names = {moved ? "pointer" : meta ? "data_meta" : "data", meta ? "data" : "data_end"};
    const int64_t need = reach(c, *off, *size); // from where the verifier counts
    const int64_t ahead = need - (*off - own);  // from the access's register on
    const int64_t asked = moved ? ahead : need; // from `names.start` on
    forget_register(c, reg);                    // the log shows what it was before the comparison
    if (counted && *off < 0 && !moved) {
        c.note(format("the access begins {} before the packet", bytes(-*off)));
        return true;
    }
    const std::string which =
        moved && !is_assembly(c) ? format(", where pointer is what R{} holds at the access", reg) : std::string();
    if (*has <= 0) {
        explain_uncovered(c, reg, moved, start, names, bytes(asked));
        if (asked > 0) c.refusal.hint = format("compare first: {}{}", missing_comparison(c, reg, names, asked, ahead), which);
        return true;
    }
    const int64_t missing = need - *has;
    std::string words = format("the access ends at byte {}, and a comparison with {} has proved {}: {} missing", need, names.end,
                               *has, format("{} {}", bytes(missing), missing == 1 ? "is" : "are"));
    const Comparison last = c.ends_here() ? last_comparison(c, start) : Comparison{};
    if (last.proof == Proof::inside)
        c.note_at(c.path[last.step].insn, std::move(words));
    else
        c.note(std::move(words));
    c.refusal.hint = format("compare {} more: {}{}{}", bytes(missing), missing_comparison(c, reg, names, asked, ahead), which,
                            is_assembly(c) ? "" : " (`sizeof` of the whole header, not part of it)");
    if (counted && !moved && *off - own > 0)
        c.refusal.hint +=
            format("; or read from a pointer that hasn't moved: R{} is {} into the packet here, so compare a copy of it", reg,
                   bytes(*off - own));
    return true;
}

} // namespace rawbpf::inline v0::refusal
