// Arithmetic and moves: which rules hold for numbers, and which for pointers.
//
//      number op number    what the transfer functions say (arithmetic.cpp)
//      pointer + number    a pointer into the same thing: a known number moves the fixed offset, another one the variable part
//      pointer - pointer   a number
//      pointer * 8         refused: what would that be a pointer to?
//
// Copies are linked: after r2 = r1, both have the same id, and what a comparison tells about one of them holds for the other.
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

namespace {

constexpr int64_t kMostOffset = int64_t(1) << 29; // BPF_MAX_VAR_OFF

std::string_view op_word(Op op) {
    switch (op) {
    case Op::add: return "+=";
    case Op::sub: return "-=";
    case Op::mul: return "*=";
    case Op::div: return "/=";
    case Op::or_: return "|=";
    case Op::and_: return "&=";
    case Op::lsh: return "<<=";
    case Op::rsh: return ">>=";
    case Op::mod: return "%=";
    case Op::xor_: return "^=";
    case Op::arsh: return "s>>=";
    default: return "=";
    }
}

} // namespace

bool Engine::move(const Insn &insn, const Form &form) {
    const bool half = form.register_bits == 32;
    if (form.shape == Shape::alu_imm) {
        if (!writable(insn.dst)) return false;
        const uint64_t number = half ? static_cast<uint32_t>(insn.imm) : static_cast<uint64_t>(int64_t(insn.imm));
        set(insn.dst, known_number(number, node()));
        return true;
    }
    if (!readable(insn.src) || !writable(insn.dst)) return false;
    Value &from = state_.reg(insn.src);
    auto link = [&] {
        if (from.sum) from.unlink();
        if (!from.id && !from.bounds.is_known()) from.id = new_id();
    };
    if (form.shape == Shape::sign_extend) {
        if (!from.is_number()) {
            Value value = any_number(node());
            if (half) value.bounds.clear_upper_half(rules_);
            set(insn.dst, std::move(value));
            return true;
        }
        const bool same = from.bounds.u64.most < uint64_t(1) << (form.bits - 1);
        if (same) link();
        Value value = from;
        if (!same) value.unlink();
        value.node = node(from.node);
        value.bounds.extend_sign(form.bits / 8, half, rules_);
        set(insn.dst, std::move(value));
        return true;
    }
    if (!half) {
        if (from.is_number()) link();
        Value value = from;
        if (value.is_number()) value.node = node(from.node);
        set(insn.dst, std::move(value));
        return true;
    }
    if (!from.is_number()) { // half a pointer is a number
        Value value = any_number(node());
        value.bounds.clear_upper_half(rules_);
        set(insn.dst, std::move(value));
        return true;
    }
    const bool fits = from.bounds.u64.most <= UINT32_MAX;
    if (fits) link();
    Value value = from;
    if (!fits) value.unlink();
    value.node = node(from.node);
    value.bounds.clear_upper_half(rules_);
    set(insn.dst, std::move(value));
    return true;
}

// r1 = r0; r1 += 8: still linked, as r0's number and 8.
void Engine::link_sum(const Insn &insn, Value &result, const Value &before) {
    const Value constant =
        (insn.code & 8) != 0 ? state_.reg(insn.src) : known_number(static_cast<uint64_t>(int64_t(insn.imm)), 0);
    if (!rule(Rule::sums_linked) || insn.code >> 4 != 0 || (insn.code & 7) != 7 || !before.id || !constant.is_number() ||
        !constant.bounds.is_known() || before.sum || constant.bounds.number() > INT32_MAX) {
        result.unlink();
        return;
    }
    result.id = before.id;
    result.sum = true;
    result.off = static_cast<int32_t>(constant.bounds.number());
}

bool Engine::arithmetic(const Insn &insn, const Form &form) {
    const auto op = static_cast<Op>(insn.code & 0xf0);
    const bool half = form.register_bits == 32;
    if (op == Op::mov) return move(insn, form);
    if (form.shape == Shape::byte_swap || form.shape == Shape::negate) {
        if (!readable(insn.dst) || !writable(insn.dst)) return false;
        const Value before = state_.reg(insn.dst);
        Value value = any_number(node(before.node));
        if (op == Op::neg && before.is_number() && rule(Rule::negation)) {
            value.bounds = compute(Op::sub, half, Bounds::of(0), before.bounds, rules_);
        } else if (form.shape == Shape::byte_swap && before.is_number() && rule(Rule::swapped_bits)) {
            constexpr uint8_t kToLittle = 0xd4; // which changes no order where the kernel's is little-endian, too
            value.bounds = before.bounds;
            if (insn.code != kToLittle) {
                value.bounds.bits = swap_bytes(value.bounds.bits, form.bits / 8u);
                value.bounds.forget64();
                value.bounds.forget32();
            }
            value.bounds.cut_to(form.bits / 8u, rules_);
            value.bounds.settle(rules_);
        } // else nothing is known, not even that the upper half of a 32-bit result is 0
        set(insn.dst, std::move(value));
        return true;
    }
    const bool by_register = form.shape == Shape::alu_reg;
    if (by_register && !readable(insn.src)) return false;
    if (!readable(insn.dst)) return false;
    if ((op == Op::div || op == Op::mod) && !by_register && insn.imm == 0) return refuse("div by zero");
    if ((op == Op::lsh || op == Op::rsh || op == Op::arsh) && !by_register && (insn.imm < 0 || insn.imm >= (half ? 32 : 64)))
        return refuse("invalid shift {}", insn.imm);
    if (!writable(insn.dst)) return false;
    const Value dst = state_.reg(insn.dst);
    const Value src = by_register ? state_.reg(insn.src) : known_number(static_cast<uint64_t>(int64_t(insn.imm)), kNoNode);
    if (dst.sort == Sort::arena) return true; // whatever comes of it, an access is caught
    if (dst.is_pointer() && src.is_pointer()) {
        if (op != Op::sub) return refuse("R{} pointer {} pointer prohibited", static_cast<unsigned>(insn.dst), op_word(op));
        Value value = any_number(node());
        set(insn.dst, std::move(value));
        return true;
    }
    if (src.is_pointer() || dst.is_pointer()) {
        const Value &pointer = dst.is_pointer() ? dst : src, &offset = dst.is_pointer() ? src : dst;
        if (half) {
            // Half an address, subtracted: a number.
            if (op == Op::sub && !form.is_signed) {
                Value value = any_number(node());
                value.bounds = Bounds();
                set(insn.dst, std::move(value));
                return true;
            }
            return refuse("R{} 32-bit pointer arithmetic prohibited", static_cast<unsigned>(insn.dst));
        }
        walk_.need(offset.node);
        return pointer_arithmetic(op, pointer, offset, insn.dst);
    }
    Value value = any_number(node(dst.node, by_register ? src.node : kNoNode));
    // The 32-bit immediate of a 32-bit operation.
    value.bounds = compute(op, half, dst.bounds, src.bounds, rules_);
    link_sum(insn, value, dst);
    set(insn.dst, std::move(value));
    return true;
}

// Whether an offset that is added is one that can be followed.
bool Engine::sane_offset(const Value &value, Sort sort, bool result) {
    const Bounds &b = value.bounds;
    if (b.is_known()) {
        const auto number = static_cast<int64_t>(b.number());
        if (number >= kMostOffset || number <= -kMostOffset)
            return refuse("math between {} pointer and {} is not allowed", sort_word(sort), number);
    }
    if (result && (value.off >= kMostOffset || value.off <= -kMostOffset))
        return refuse("{} pointer offset {} is not allowed", sort_word(sort), value.off);
    if (b.s64.least == INT64_MIN)
        return refuse("math between {} pointer and register with unbounded min value is not allowed", sort_word(sort));
    if (b.s64.least >= kMostOffset || b.s64.least <= -kMostOffset)
        return refuse("value {} makes {} pointer be out of bounds", b.s64.least, sort_word(sort));
    return true;
}

bool Engine::pointer_arithmetic(Op op, const Value &pointer, const Value &offset, unsigned dst) {
    // A number whose ranges contradict each other stands on a path that no run takes; what is computed with it is no pointer any
    // more.
    if (offset.bounds.contradicts(false)) {
        set(dst, any_number(node(offset.node)));
        return true;
    }
    if (pointer.maybe_null)
        return refuse("R{} pointer arithmetic on {} prohibited, null-check it first", dst, type_word(pointer));
    switch (pointer.sort) {
    case Sort::map:
        if (offset.bounds.is_known() && offset.bounds.number() == 0 && op == Op::add) break;
        [[fallthrough]];
    case Sort::packet_end:
    case Sort::socket: return refuse("R{} pointer arithmetic on {} prohibited", dst, type_word(pointer));
    case Sort::flow_keys:
        if (!offset.bounds.is_known()) return refuse("R{} pointer arithmetic on {} prohibited", dst, sort_word(pointer.sort));
        break;
    default: break;
    }
    if (!sane_offset(offset, pointer.sort, false)) return false;
    Value value = pointer;
    value.node = node(pointer.node, offset.node);
    const bool known = offset.bounds.is_known();
    const auto number = static_cast<int64_t>(offset.bounds.number());
    switch (op) {
    case Op::add: {
        if (known && int64_t(pointer.off) + number == static_cast<int32_t>(pointer.off + number)) {
            value.off = static_cast<int32_t>(pointer.off + number);
            break;
        }
        // The fixed part stays, the variable one grows.
        value.bounds = compute(Op::add, false, pointer.bounds, offset.bounds, rules_);
        if (pointer.is_packet()) {
            value.id = new_id();
            value.range = 0; // nothing is known of this place
        }
        break;
    }
    case Op::sub: {
        if (state_.reg(dst).is_number()) return refuse("R{} tried to subtract pointer from scalar", dst);
        if (pointer.sort == Sort::stack) return refuse("R{} subtraction from stack pointer prohibited", dst);
        if (known && int64_t(pointer.off) - number == static_cast<int32_t>(pointer.off - number)) {
            value.off = static_cast<int32_t>(pointer.off - number);
            value.id = pointer.id;
            break;
        }
        value.bounds = compute(Op::sub, false, pointer.bounds, offset.bounds, rules_);
        if (pointer.is_packet()) {
            value.id = new_id();
            if (offset.bounds.s64.least < 0) value.range = 0;
        }
        break;
    }
    case Op::and_:
    case Op::or_:
    case Op::xor_: return refuse("R{} bitwise operator {} on pointer prohibited", dst, op_word(op));
    default: return refuse("R{} pointer arithmetic with {} operator prohibited", dst, op_word(op));
    }
    set(dst, value);
    return sane_offset(value, pointer.sort, true);
}

} // namespace rawbpf::inline v0::verifier
