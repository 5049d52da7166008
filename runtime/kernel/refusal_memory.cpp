// Advice on accesses to memory: which bytes the access needs, which exist, and how many are missing.
//
//      packet      |<-- proved by a comparison: r -->|         the access:  off .. off + size
//      map value   |<-- value_size ------------------>|
//      stack       r10-512 ........................ r10-1
#include <algorithm>
#include <linux/bpf.h>

#include "asm/program_types.h"
#include "runtime/base/format.h"
#include "runtime/kernel/refusal_parts.h"

namespace rawbpf::inline v0::refusal {
namespace {

constexpr int64_t kStack = 512;

} // namespace

bool is_assembly(std::string_view file) {
    if (file.empty()) return false;
    for (std::string_view c_like : {".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".rs"})
        if (file.ends_with(c_like)) return false;
    return true; // "lab.asm", "standard input"
}

std::string bytes(int64_t n) { return format("{} byte{}", n, n == 1 ? "" : "s"); }

int64_t size_of(const Insn &insn) {
    switch (BPF_SIZE(insn.code)) {
    case BPF_B: return 1;
    case BPF_H: return 2;
    case BPF_W: return 4;
    default: return 8;
    }
}

bool loads(const Insn &insn) { return BPF_CLASS(insn.code) == BPF_LDX; }
bool stores(const Insn &insn) { return BPF_CLASS(insn.code) == BPF_STX || BPF_CLASS(insn.code) == BPF_ST; }
int base_of(const Insn &insn) { return loads(insn) ? insn.src : stores(insn) ? insn.dst : -1; }

// How far the accesses through the same pointer go from here to the next branch or call: a compiler reads a member of two
// bytes byte by byte.
int64_t reach(const Case &c, int64_t offset, int64_t size) {
    const Insn *first = c.insn();
    int64_t out = offset + size;
    if (!first || base_of(*first) < 0) return out;
    const int base = base_of(*first);
    for (int64_t i = c.refusal.at.insn; const Insn *insn = c.insn_at(i); ++i) {
        const uint8_t kind = BPF_CLASS(insn->code);
        if (kind == BPF_JMP || kind == BPF_JMP32) break;
        if (base_of(*insn) == base) out = std::max(out, offset - first->off + insn->off + size_of(*insn));
        if ((kind == BPF_ALU || kind == BPF_ALU64 || loads(*insn)) && insn->dst == base) break;
        if (is_wide(*insn)) {
            if (insn->dst == base) break;
            ++i;
        }
    }
    return out;
}

bool may_be_null(Case &c) {
    int reg = register_named(c.refusal.reason);
    if (const std::optional<int64_t> argument = number_after(c.refusal.reason, "trusted arg"))
        reg = static_cast<int>(*argument) + 1;
    if (reg < 0 || !c.ends_here()) return false;
    const Origin from = c.origin(reg);
    if (from.kind != Origin::Kind::call) return false;
    const uint32_t call = c.path[from.step].insn;
    const std::string name = c.called(call);
    if (name.empty()) return false;
    c.note_at(call, format("R{} is what {}() returned here, which may be NULL", reg, name));
    const std::string_view when = name == "bpf_map_lookup_elem"   ? " if the map has no such key (an array: no such index)"
                                  : name == "bpf_ringbuf_reserve" ? " if the buffer is full"
                                                                  : "";
    c.refusal.hint = format("{}() returns NULL{}: compare its result with NULL before using it, {}", name, when,
                            is_assembly(c) ? "`if r0 == 0 goto out`" : "`if (!p) return 0;`");
    return true;
}

bool number_as_pointer(Case &c) {
    const int reg = register_named(c.refusal.reason);
    if (reg < 0 || !c.ends_here()) return false;
    const Origin from = c.origin(reg);
    if (from.kind == Origin::Kind::unknown || from.kind == Origin::Kind::entry) return false;
    const uint32_t at = c.path[from.step].insn;
    const std::string name = c.called(at);
    const Insn *insn = c.insn_at(at);
    const std::string value = register_value(c, reg);
    if (from.kind == Origin::Kind::call &&
        (value == "0" || value == "inv0")) { // what a comparison with NULL has left on this path
        c.note_at(at, format("R{} is what {}() returned here, and on this path it is NULL: a comparison with NULL leads here",
                             reg, name));
        c.refusal.hint = "is the test the wrong way round? The path on which the pointer is NULL must not use it";
        return true;
    }
    if (from.kind == Origin::Kind::call && !name.empty()) {
        c.note_at(at, format("R{} is the number that {}() returned here", reg, name));
    } else if (from.kind == Origin::Kind::load) {
        c.note_at(
            at, format("R{} was read from memory here: to the verifier, an address that was read from memory is a number", reg));
    } else if (from.kind == Origin::Kind::computed) {
        c.note_at(at, format("R{} is computed here: the result is a number, not a pointer", reg));
    } else if (from.kind == Origin::Kind::constant && insn && !is_wide(*insn)) {
        c.note_at(at, format("R{} is the number {} here{}", reg, insn->imm, insn->imm == 0 ? " (NULL)" : ""));
    }
    if (name == "bpf_get_current_task")
        c.refusal.hint = "read what it points to with bpf_probe_read_kernel() or BPF_CORE_READ(), not directly; a program may "
                         "follow the pointer of bpf_get_current_task_btf() (5.11) directly";
    return true;
}

bool map_value(Case &c) {
    const std::string &reason = c.refusal.reason;
    const std::optional<int64_t> has = number_after(reason, "_size="), off = number_after(reason, " off="),
                                 size = number_after(reason, " size=");
    if (!has || !off || !size) return false;
    const int reg = c.insn() ? base_of(*c.insn()) : -1;
    const std::string value = reg < 0 ? std::string() : register_value(c, reg);
    const std::string what = describe_register(value);
    const std::string whole =
        format("{} has {}", what.starts_with("a pointer to ") ? what.substr(sizeof "a pointer to " - 1) : "what is accessed",
               bytes(*has));
    if (*off < 0) {
        c.note(format("the access may begin {} before it; {}", bytes(-*off), whole));
        return true;
    }
    const int64_t over = *off + *size - *has;
    if (over <= 0) return false;
    const std::optional<int64_t> most = bound(value, "umax");
    if (most && *most > 0) {
        const int64_t fits = *most - over;
        c.note(format("{}; the access of {} may be at offset {}: {} too far", whole, bytes(*size), *off, bytes(over)));
        c.refusal.hint = fits >= 0 ? format("the offset can be up to {} as far as the verifier sees; the largest that fits is "
                                            "{}: check it before the use, "
                                            "`if (i > {}) return 0;` (an index counts elements, this counts bytes)",
                                            *most, fits, fits)
                                   : format("the offset can be up to {}, and even without it the access is too large", *most);
    } else {
        c.note(format("{}; the access of {} at offset {} ends {} too far", whole, bytes(*size), *off, bytes(over)));
        c.refusal.hint =
            "the type that the program uses is larger than the one that the map was defined with, or the offset is wrong";
    }
    return true;
}

bool stack_fixed(Case &c) {
    const std::string &reason = c.refusal.reason;
    std::optional<int64_t> off = number_after(reason, " off=");
    if (!off) off = number_after(reason, " off ");
    std::optional<int64_t> size = number_after(reason, " size=");
    if (!size) size = number_after(reason, " size ");
    if (!off || !size) return false;
    if (*off < -kStack) {
        c.note(format("a program's stack is r10 - {} to r10 - 1; the access at r10 - {} begins {} below it", kStack, -*off,
                      bytes(-kStack - *off)));
        c.refusal.hint = "put large variables into a per-CPU array map, or make them smaller";
        return true;
    }
    if (*off + *size > 0) {
        c.note(format("the stack ends at r10 - 1; the access of {} at r10 {} {} ends {} above it", bytes(*size),
                      *off < 0 ? '-' : '+', *off < 0 ? -*off : *off, bytes(*off + *size)));
        c.refusal.hint = "stack variables lie below r10, at negative offsets: use less of the variable, or make it larger";
        return true;
    }
    const std::optional<int64_t> which = number_after(reason, format("{}+", *off));
    c.note(format("{} of the {} at r10 - {} {} never written on the path to here", which ? format("byte {}", *which + 1) : "part",
                  bytes(*size), -*off, which ? "was" : "was"));
    return true;
}

bool stack_variable(Case &c) {
    const std::string &reason = c.refusal.reason;
    const size_t at = reason.find("var_off=(");
    const std::optional<int64_t> off = number_after(reason, " off="), size = number_after(reason, " size=");
    if (at == std::string::npos || !off || !size || *size <= 0) return false;
    const std::string_view rest = std::string_view(reason).substr(at + sizeof "var_off=(" - 1);
    const std::optional<int64_t> known = number_after(format("={}", rest), "="), mask = number_after(rest, "; ");
    if (!known || !mask || *known < 0 || *mask < 0) return false;
    const int64_t most = *known | *mask, end = *off + most + *size;
    if (end <= 0) return false;
    const int64_t room = -*off / *size;
    c.note(format("the access of {} may be at r10 - {} + {}, which ends {} past the end of the stack", bytes(*size), -*off, most,
                  bytes(end)));
    c.refusal.hint = format(
        "at r10 - {} there is room for {} of {}: keep the index below that, just before the use (`if (i >= {}) return 0;`)",
        -*off, room == 1 ? "one value" : format("{} values", room), bytes(*size), room);
    return true;
}

bool misaligned(Case &c) {
    // "misaligned stack access off (0x0; 0x7)+-21+0 size 8", "... packet access off 2+(0x0; 0x4)+14+0 size 4"
    const std::string_view reason = c.refusal.reason;
    const size_t at = reason.find(" off "), end = reason.rfind(" size ");
    if (at == std::string_view::npos || end == std::string_view::npos || end < at) return false;
    std::string_view sum = reason.substr(at + 5, end - at - 5);
    const std::optional<int64_t> size = number_after(reason, " size ");
    if (!size || *size < 2) return false;
    int64_t total = 0;
    bool variable = false;
    while (!sum.empty()) {
        if (sum[0] == '(') {
            variable = true;
            sum.remove_prefix(std::min(sum.find(')') + 1, sum.size()));
        } else {
            const std::string part(sum.substr(0, sum.find('+')));
            total += number_after("=" + part, "=").value_or(0);
            sum.remove_prefix(part.size());
        }
        if (sum.starts_with('+')) sum.remove_prefix(1);
    }
    const int64_t past = ((total % *size) + *size) % *size;
    const bool stack = reason.find("stack") != std::string_view::npos;
    const std::string place =
        stack ? format("r10 {} {}", total < 0 ? '-' : '+', total < 0 ? -total : total) : format("offset {}", total);
    if (variable || past == 0)
        c.note(format("an access of {} must be at a multiple of {}; the variable part of the offset may be something else",
                      bytes(*size), *size));
    else
        c.note(format("{} is {} past a multiple of {}; an access of {} must be at such a multiple", place, bytes(past), *size,
                      bytes(*size)));
    c.refusal.hint = format("{}copy the bytes with __builtin_memcpy() into a variable of its own, or access them byte by byte",
                            variable || past == 0 ? "" : format("move it by {} down or {} up, or ", bytes(past), *size - past));
    return true;
}

// "BPF_ATOMIC stores into R1 pkt is not allowed"; BPF_XADD before 5.12.
bool atomic_place(Case &c) {
    const int reg = register_named(c.refusal.reason);
    const std::string_view reason = c.refusal.reason;
    const size_t not_allowed = reason.find(" is not allowed");
    if (reg < 0 || not_allowed == std::string_view::npos) return false;
    const std::string_view before = reason.substr(0, not_allowed);
    const std::string_view type = before.substr(before.rfind(' ') + 1);
    const std::string what = describe_register(type);
    forget_register(c, reg); // as it was before the comparison
    c.refusal.kind = "memory";
    c.note(format("this operation is atomic, and R{} is {}: there are no atomic operations on that", reg,
                  what.empty() ? std::string(type) : what));
    c.refusal.hint = type == "ctx" ? "most members of a context can only be read; count in a map's value instead"
                                   : "change it by a load, an operation and a store, without __sync_*() or __atomic_*(): atomic "
                                     "operations are for values of maps, the stack and the like";
    return true;
}

bool context_access(Case &c) {
    const std::optional<int64_t> off = number_after(c.refusal.reason, " off="), size = number_after(c.refusal.reason, " size=");
    if (!off || !size || !c.insn()) return false;
    const ProgramTypeRow &row = program_type_row(c.program.type);
    const std::string_view shown = program_type_words(c.program.type).shown;
    const std::string name = !shown.empty()         ? std::string(shown)
                             : !row.context.empty() ? format("struct {}", row.context)
                                                    : std::string("the context");
    c.note(format("{} {} at offset {} of {}", stores(*c.insn()) ? "it writes" : "it reads", bytes(*size), *off, name));
    c.refusal.hint =
        stores(*c.insn())
            ? "most members of a context can only be read; those that can be written depend on the type of the program"
        : *size == 8 ? "read each member with its own size: those of most contexts have 4 bytes (__u32); beyond its last member "
                       "there is nothing"
                     : "there is no member at that offset, or programs of this type may not read it, or its size is another";
    return true;
}

bool pointer_arithmetic(Case &c) {
    const int reg = register_named(c.refusal.reason);
    const std::string what = reg < 0 ? std::string() : describe_register(register_value(c, reg));
    if (what.empty() || what == "a number") return false;
    if (c.refusal.reason.find("null-check it first") != std::string::npos) {
        c.refusal.hint =
            format("R{0} is an address that may be NULL: compare it with NULL first; to change what it points to, use *(u64 "
                   "*)(r{0} + 0)",
                   reg);
        return true;
    }
    if (const Insn *insn = c.insn(); insn && c.refusal.reason.find("subtraction from stack pointer") != std::string::npos) {
        c.refusal.hint =
            BPF_SRC(insn->code) == BPF_K
                ? format("the verifier takes no subtraction here: add the negative number, `r{} += {}`", reg, -int64_t{insn->imm})
                : format("the verifier takes no subtraction here: negate the number first (`r{1} = -r{1}`), then `r{0} += r{1}`",
                         reg, int{insn->src});
        return true;
    }
    c.refusal.hint = "a program may only add a number to a pointer, or subtract a number from it: compute the number first, in "
                     "another register, then add it";
    return true;
}

} // namespace rawbpf::inline v0::refusal
