// The checks of a program's structure, before the verifier follows any value.
//
//      1. where functions begin: at 0, and where a call goes to            each has to end in exit or a jump
//      2. that every jump stays inside of its function                     "jump out of range from insn 3 to 9"
//      3. that every instruction exists                                    "unknown opcode 8f"
//      4. that every instruction can be reached                            "unreachable insn 2"
//      5. which registers are read later                                   bit sets, backwards until nothing changes
//
// Because of step 5, two different states may count as equal: a register that no later instruction reads doesn't matter.
// Compilers use the same analysis (liveness) to allocate registers: a register is needed before an instruction if the instruction
// reads it, or if it is needed afterwards and the instruction doesn't overwrite it.
#include "runtime/verifier/flow.h"

#include <algorithm>

#include "asm/effects.h"
#include "asm/opcodes.h"
#include "runtime/base/format.h"
#include "runtime/verifier/rules.h"

namespace rawbpf::inline v0::verifier {

namespace {

// A call may take all of its arguments, and exit returns r0.
RegisterEffect needed_by(const Insn &insn) {
    const Form *form = find_form(insn);
    if (!form) return {};
    RegisterEffect effect = effect_of(*form, insn);
    if (form->shape == Shape::exit) effect.reads = register_bit(0);
    if (!effect.call) return effect;
    const bool packet = form->shape == Shape::packet_abs || form->shape == Shape::packet_ind;
    if (!packet) effect.reads |= kArgumentRegisters;
    effect.writes |= kArgumentRegisters;
    return effect;
}

// Backwards through each instruction until no set grows.
void find_needed(std::span<const Insn> insns, const std::vector<bool> &half, Flow &flow) {
    const auto count = static_cast<uint32_t>(insns.size());
    flow.needed.assign(count + 1, 0);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = count; i-- > 0;) {
            if (half[i]) continue;
            const Ways ways = ways_of(insns, i);
            uint16_t after = 0;
            const uint32_t next = i + (is_wide(insns[i]) ? 2 : 1);
            if (ways.falls && next <= count) after = flow.needed[next];
            if (ways.jumps && ways.target >= 0 && ways.target <= count) after |= flow.needed[static_cast<size_t>(ways.target)];
            const RegisterEffect effect = needed_by(insns[i]);
            const auto before = static_cast<uint16_t>((after & ~effect.writes) | effect.reads | register_bit(10));
            if (before != flow.needed[i]) {
                flow.needed[i] = before;
                changed = true;
            }
        }
    }
}

// Whether any instruction of that kernel has the opcode.
bool has_opcode(uint8_t code, KernelVersion kernel) {
    for (int i = isa::kIndex.first[code]; i >= 0; i = isa::kIndex.next[i])
        if (isa::kForms[i].since != isa::k_none && at_least(kernel, isa::kForms[i].since)) return true;
    return false;
}

} // namespace

Insn as_looked_at(Insn insn) {
    constexpr uint8_t kExit = 0x95;
    if (insn.code == kExit) insn.off = 0;
    return insn;
}

std::string_view reserved_fields(const Insn &insn) {
    const uint8_t operation = insn.code & 0xf0;
    switch (insn.code & 0x07) {
    case 0: return "BPF_LD_IMM64 uses reserved fields";
    case 1: return "BPF_LDX uses reserved fields";
    case 2: return "BPF_ST uses reserved fields";
    case 3: return "BPF_STX uses reserved fields";
    case 4:
    case 7:
        if (operation == 0x80) return "BPF_NEG uses reserved fields";
        if (operation == 0xb0) return "BPF_MOV uses reserved fields";
        if (operation == 0xd0) return "BPF_END uses reserved fields";
        return "BPF_ALU uses reserved fields";
    default:
        if (operation == 0x00) return "BPF_JA uses reserved fields";
        if (operation == 0x80) return "BPF_CALL uses reserved fields";
        if (operation == 0x90) return "BPF_EXIT uses reserved fields";
        return "BPF_JMP/JMP32 uses reserved fields";
    }
}

// By the fields that the kernel looks at here, and no others: what else is wrong with an instruction is a matter of who comes to
// it. `exit` with an offset is one, and a call of a function with an offset leads into that function.
Ways ways_of(std::span<const Insn> insns, uint32_t at) {
    constexpr uint8_t kJump = 0x05, kJump32 = 0x06, kByRegister = 0x08, kFunctionCall = 1;
    Ways out;
    const Insn &insn = insns[at];
    const uint8_t kind = insn.code & 0x07;
    if (is_wide(insn) && insn.src == static_cast<uint8_t>(Wide::function)) {
        out.calls = true;
        out.target = int64_t(at) + 1 + insn.imm;
    }
    if (kind != kJump && kind != kJump32) return out;
    switch (insn.code & 0xf0) {
    case 0x00: // goto, gotol; gotox, whose targets stand in a table
        out.falls = false;
        out.jumps = !(insn.code & kByRegister);
        out.target = int64_t(at) + 1 + (kind == kJump ? insn.off : insn.imm);
        break;
    case 0x80:
        out.calls = kind == kJump && insn.src == kFunctionCall;
        out.target = int64_t(at) + 1 + insn.imm;
        break;
    case 0x90: out.falls = false; break;
    default: // comparisons, may_goto
        out.jumps = true;
        out.target = int64_t(at) + 1 + insn.off;
    }
    return out;
}

uint32_t Flow::function_of(uint32_t insn) const {
    const auto after = std::upper_bound(functions.begin(), functions.end(), insn,
                                        [](uint32_t at, const FunctionRange &f) { return at < f.begin; });
    return after == functions.begin() ? 0 : static_cast<uint32_t>(after - functions.begin() - 1);
}

bool Flow::begins(uint32_t insn) const {
    return std::any_of(functions.begin(), functions.end(), [insn](const FunctionRange &f) { return f.begin == insn; });
}

Flow flow_of(std::span<const Insn> insns, std::span<const uint32_t> entries, KernelVersion kernel) {
    Flow flow;
    const auto count = static_cast<uint32_t>(insns.size());
    auto refuse = [&flow](uint32_t at, std::string words) {
        flow.refusal = std::move(words);
        flow.refused_at = at;
        flow.placed = true;
        return flow;
    };
    // The second halves of ld_imm64 are no instructions.
    std::vector<bool> half(count);
    std::vector<uint32_t> begins = {0};
    for (uint32_t entry : entries)
        if (entry < count) begins.push_back(entry);
    for (uint32_t i = 0; i < count; ++i) {
        if (is_wide(insns[i])) {
            if (i + 1 >= count || insns[i + 1].code || insns[i + 1].dst || insns[i + 1].src || insns[i + 1].off)
                return refuse(i, "invalid bpf_ld_imm64 insn");
            half[i + 1] = true;
        }
        const Ways ways = ways_of(insns, i);
        if (ways.calls) {
            if (ways.target < 0 || ways.target >= count)
                return refuse(i, format("invalid insn idx {} insn_cnt {}", ways.target, count));
            begins.push_back(static_cast<uint32_t>(ways.target));
        }
        if (is_wide(insns[i])) ++i;
    }
    std::sort(begins.begin(), begins.end());
    begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
    for (size_t n = 0; n < begins.size(); ++n)
        flow.functions.push_back({begins[n], n + 1 < begins.size() ? begins[n + 1] : count});

    for (FunctionRange &function : flow.functions) {
        uint32_t last = function.begin;
        for (uint32_t i = function.begin; i < function.end; i += is_wide(insns[i]) ? 2 : 1) {
            last = i;
            const Ways ways = ways_of(insns, i);
            if (ways.jumps && (ways.target < function.begin || ways.target >= function.end))
                return refuse(i, format("jump out of range from insn {} to {}", i, ways.target));
            if (insns[i].code == 0x85 && insns[i].src == 0 && insns[i].imm == 12) function.tail_calls = true;
        }
        const int last_form = isa::kIndex.first[insns[last].code]; // its other fields are looked at where a path comes to it
        const Form *form = last_form < 0 ? nullptr : &isa::kForms[last_form];
        const bool ends = form && (form->shape == Shape::exit || form->shape == Shape::jump || form->shape == Shape::jump_long ||
                                   form->shape == Shape::jump_reg);
        if (!ends) return refuse(last, "last insn is not an exit or jmp");
    }

    // What the kernel's machine doesn't have is refused even where no path gets to.
    for (uint32_t i = 0; i < count; ++i) {
        if (half[i]) continue;
        constexpr uint8_t kClass = 0x07, kLoad = 0x01, kStore = 0x03;
        const bool wide = is_wide(insns[i]);
        if (wide && insns[i].src > static_cast<uint8_t>(Wide::map_index_value))
            return refuse(i, "unrecognized bpf_ld_imm64 insn");
        if (holds(Rule::fields_first, kernel) && (insns[i].dst > 10 || (!wide && insns[i].src > 10)))
            return refuse(i, format("R{} is invalid", static_cast<unsigned>(insns[i].dst > 10 ? insns[i].dst : insns[i].src)));
        const Form *form = find_form(as_looked_at(insns[i]));
        const bool good = form && at_least(kernel, form->since);
        const uint8_t kind = insns[i].code & kClass;
        if ((kind == kLoad || (kind == kStore && !at_least(kernel, {5, 12}))) && !good) // stores: until atomics came
            return refuse(i, std::string(reserved_fields(insns[i])));
        if (!has_opcode(insns[i].code, kernel))
            return refuse(i, format("unknown opcode {:02x}", static_cast<unsigned>(insns[i].code)));
        if (!good && holds(Rule::fields_first, kernel)) return refuse(i, std::string(reserved_fields(insns[i])));
    }

    // From every function's beginning, as far as instructions lead. Calls lead into functions.
    flow.meets.assign(count, false);
    std::vector<bool> seen(count);
    std::vector<uint32_t> todo = {0};
    for (uint32_t entry : entries) todo.push_back(entry);
    while (!todo.empty()) {
        const uint32_t at = todo.back();
        todo.pop_back();
        if (at >= count || seen[at]) continue;
        seen[at] = true;
        const Ways ways = ways_of(insns, at);
        const uint32_t next = at + (is_wide(insns[at]) ? 2 : 1);
        if (is_wide(insns[at])) seen[at + 1] = true;
        if (ways.jumps || ways.calls) {
            const auto target = static_cast<uint32_t>(ways.target);
            if (half[target]) return refuse(at, format("jump into the middle of ldimm64 insn {}", target));
            todo.push_back(target);
            if (!is_wide(insns[at])) flow.meets[ways.jumps && ways.falls ? at : target] = true;
            if (ways.jumps) flow.meets[target] = true;
            if (ways.calls && !is_wide(insns[at])) flow.meets[at] = true;
        }
        if (ways.falls) todo.push_back(next);
    }
    for (uint32_t i = 0; i < count; ++i)
        if (!seen[i]) return refuse(i, format("unreachable insn {}", i));
    find_needed(insns, half, flow);
    return flow;
}

} // namespace rawbpf::inline v0::verifier
