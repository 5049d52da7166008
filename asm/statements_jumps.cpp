// Jumps and calls:
//
//      if x op x|n goto TARGET    goto TARGET    call NAME|n|+n    exit          TARGET: NAME, +n, -n, pc+n
//
// The kernel prints -1 and 0xffffffff in a comparison the same way; both are accepted where they can have only one meaning.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2") // -Os, as releases are built, takes three times as long
#endif

#include "asm/assembling.h"
#include "asm/helpers.h"
#include "asm/lookup.h"

namespace rawbpf::inline v0::assembling {

/// Where a jump goes: a distance in `out`, or a label, to which `out` is added.
bool Assembler::target(Value &out, std::string_view &label_name, bool &kernel_print) {
    skip_space();
    kernel_print = p_[0] == 'p' && p_[1] == 'c' && (p_[2] == '+' || p_[2] == '-');
    if (kernel_print) p_ += 2;
    if (*p_ == '+' || *p_ == '-') {
        if (!distance(out.number)) return false;
    } else {
        if (is_digit(*p_)) return expected("a label, or a distance with its sign: +3, -3");
        label_name = name();
        if (label_name.empty()) return expected("a label, or a distance like +3");
    }
    skip_space();
    if (*p_ == '<' && is_name(p_[1])) { // llvm-objdump's <function+0x78>
        const char *end = p_;
        while (*end != '>' && *end != '\n') ++end;
        if (*end == '>') p_ = end + 1;
    }
    return true;
}

bool Assembler::emit_jump(const Form &form, Operands operands, Places places, bool) {
    skip_space();
    const char *at = p_;
    Value distance;
    std::string_view label_name;
    bool kernel_print;
    if (!target(distance, label_name, kernel_print)) return false;
    // The kernel prints the 32 bits of a comparison's number in hexadecimal, whatever they mean.
    if (form.shape == Shape::branch_imm && form.register_bits == 64 && operands.imm > INT32_MAX && operands.imm <= UINT32_MAX &&
        (kernel_print || wide_hint_ >= 0))
        operands.imm = static_cast<int32_t>(static_cast<uint32_t>(operands.imm));
    (form.shape == Shape::jump_long ? places.imm : places.off) = at;
    if (label_name.empty()) {
        if (distance.number < INT32_MIN || distance.number > INT32_MAX) return fail(at, "the jump is too long");
        (form.shape == Shape::jump_long ? operands.imm : operands.off) = static_cast<int64_t>(distance.number);
        return emit(form, operands, places);
    }
    if (!emit(form, operands, places)) return false;
    jumps_.push_back({static_cast<uint32_t>(insns_->size() - 1), label(label_name), at, source_, 0});
    return true;
}

bool Assembler::jump(const Form &form) {
    skip_space();
    if (form.shape != Shape::jump_reg && form.shape != Shape::call_reg) return emit_jump(form, {}, {}, false);
    Places places;
    Operands operands;
    if (*p_ == '%') return plain_register(operands.dst, places.dst) && emit(form, operands, places);
    places.dst = p_;
    Register to;
    if (!reg(to)) return false;
    operands.dst = to.number;
    return register_bits(form, to, places.dst) && emit(form, operands, places);
}

/// if r1 s> 5 goto TARGET
bool Assembler::branch() {
    skip_space();
    Places places;
    places.dst = p_;
    Register left;
    if (!reg(left)) return false;
    skip_space();
    const char *op_at = p_;
    const size_t length = operator_length(p_);
    // "<-5": a sign belongs to the number.
    std::string_view op(p_, length);
    while (op.size() > 1 && (op.back() == '-' || op.back() == '+')) op.remove_suffix(1);
    if (op.size() == 1 && (op[0] == '=' || op[0] == '!') && p_[1] == '=') op = {p_, 2};
    p_ += op.size();
    Operands operands;
    operands.dst = left.number;
    skip_space();
    const Form *form;
    if (at_register()) {
        Register right;
        places.src = p_;
        if (!reg(right)) return false;
        form = isa::kFormTable.find(Shape::branch_reg, left.bits, op);
        operands.src = right.number;
        if (form != nullptr && !register_bits(*form, right, places.src)) return false;
    } else {
        form = isa::kFormTable.find(Shape::branch_imm, left.bits, op);
        if (form != nullptr) {
            places.imm = p_;
            Number right = 0;
            if (!number(right)) return false;
            if (right < INT64_MIN || right > INT64_MAX) return fail(places.imm, "the number doesn't fit in 32 bits");
            operands.imm = static_cast<int64_t>(right);
        }
    }
    if (form == nullptr) {
        p_ = op_at;
        return expected("a comparison: == != < <= > >= s< s<= s> s>= &");
    }
    if (!eat_word("goto")) return expected("`goto`");
    return emit_jump(*form, operands, places, false);
}

/// A call of a kernel function whose name the loader finds in BTF.
bool Assembler::call_kfunc(std::string_view symbol, const Places &places) {
    if (!emit(*isa::find("call_kfunc"), {}, places)) return false;
    Ref ref;
    ref.insn = static_cast<uint32_t>(insns_->size() - 1);
    ref.kind = RefKind::kfunc;
    ref.symbol = symbol;
    refs_.push_back(std::move(ref));
    return true;
}

/// call 5, call bpf_ktime_get_ns, call bpf_ktime_get_ns#5, call function, call +3, call pc+3, call kfunc NAME
bool Assembler::call() {
    skip_space();
    const char *at = p_;
    Places places;
    places.imm = at;
    if (*p_ == '%') return jump(*isa::find("callx")); // in the conformance dialect
    if (is_digit(*p_)) {
        Number number = 0;
        if (!this->number(number)) return false;
        if (number > UINT32_MAX) return fail(at, "a helper's number has 32 bits");
        return emit(*isa::find("call"), {0, 0, 0, static_cast<int64_t>(number)}, places);
    }
    if (*p_ == '+' || *p_ == '-' || (*p_ == 'p' && p_[1] == 'c' && (p_[2] == '+' || p_[2] == '-'))) {
        Value distance;
        std::string_view label_name;
        bool kernel_print;
        if (!target(distance, label_name, kernel_print)) return false;
        if (distance.number < INT32_MIN || distance.number > INT32_MAX) return fail(at, "the call is too far");
        return emit(*isa::find("call_local"), {0, 0, 0, static_cast<int64_t>(distance.number)}, places);
    }
    std::string_view word = name();
    if (word.empty()) return expected("what is called: a helper, a function, a number");
    skip_space();
    if ((word == "helper" || word == "local") && !at_end()) return call(); // the conformance dialect says which
    if ((word == "kfunc" || word == "runtime") && !at_end()) {
        places.imm = p_;
        if (is_digit(*p_)) {
            Operands operands;
            Number id = 0;
            if (!number(id)) return false;
            if (id > UINT32_MAX) return fail(places.imm, "a BTF id has 32 bits");
            operands.imm = static_cast<int64_t>(id);
            if (eat_word("module") && !number(operands.off, INT16_MIN, INT16_MAX, "a module's index")) return false;
            return emit(*isa::find("call_kfunc"), operands, places);
        }
        word = name();
        if (word.empty()) return expected("the name of a kernel function");
        return call_kfunc(word, places);
    }
    if (*p_ == '#') {
        if (is_digit(p_[1]) || (p_[1] == '-' && is_digit(p_[2]))) { // the kernel's name#number
            ++p_;
            int64_t id = 0;
            const char *id_at = p_;
            if (!number(id, INT32_MIN, UINT32_MAX, "a helper's number")) return false;
            const HelperInfo *helper = find_helper(word);
            if (word == "unknown" || (helper != nullptr && helper->id == id))
                return emit(*isa::find("call"), {0, 0, 0, static_cast<int64_t>(static_cast<uint32_t>(id))}, places);
            if (helper != nullptr)
                return fail(id_at, "the helper `" + std::string(word) + "` has the number " + std::to_string(helper->id));
            if (word == "kernel-function") word = {};
            return call_kfunc(word, places);
        }
    }
    if (!emit(*isa::find("call"), {}, places)) return false;
    symbols_.push_back({static_cast<uint32_t>(out_.unit.functions.size() - 1), static_cast<uint32_t>(insns_->size() - 1), true,
                        word, 0, at, source_});
    return true;
}

} // namespace rawbpf::inline v0::assembling
