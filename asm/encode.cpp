// Error messages of the encoder. They name the number, the form and the range, and, if there is one, another way to write what
// was probably meant.
#include "asm/encode.h"

namespace rawbpf::inline v0 {

namespace {

std::string number(int64_t value) { return std::to_string(value); }

std::string pattern(const Form &form) {
    const std::string reg = form.register_bits == 32 ? "w" : "r";
    const std::string symbol(form.symbol);
    switch (form.shape) {
    case Shape::alu_imm: return reg + "N " + symbol + " number";
    case Shape::branch_imm: return "if " + reg + "N " + symbol + " number";
    case Shape::store_imm: return "*(" + symbol + " *)(...) = number";
    case Shape::jump_long: return "gotol";
    default: return std::string(form.name);
    }
}

std::string immediate_range(const Form &form) {
    return "-2147483648 to " + number(detail::check_immediate(form, UINT32_MAX) == Problem::none ? UINT32_MAX : INT32_MAX);
}

} // namespace

std::string describe(Problem problem, const Form &form, const Operands &operands) {
    switch (problem) {
    case Problem::none: return "there is no error";
    case Problem::no_such_register:
        return "there is no register " + number(operands.dst < 0 || operands.dst > 10 ? operands.dst : operands.src) +
               "; they are r0 to r10";
    case Problem::read_only: return "r10 is the frame pointer and can't be written";
    case Problem::offset_range:
        switch (form.shape) {
        case Shape::jump:
            return "the jump is " + number(operands.off) + " instructions long; goto reaches -32768 to 32767, gotol further";
        case Shape::may_jump:
        case Shape::branch_imm:
        case Shape::branch_reg: return "the jump is " + number(operands.off) + " instructions long; it reaches -32768 to 32767";
        default: break;
        }
        return "the offset " + number(operands.off) + " is out of range; it may be -32768 to 32767";
    case Problem::immediate_range: {
        std::string text = number(operands.imm) + " doesn't fit in `" + pattern(form) + "`, which takes " + immediate_range(form);
        if (form.shape == Shape::alu_imm && form.symbol == "=")
            text += "; load_imm64 takes any 64-bit number";
        else if (form.register_bits == 64 && (form.shape == Shape::alu_imm || form.shape == Shape::branch_imm) &&
                 detail::fits(operands.imm, 0, UINT32_MAX))
            text += " (it would be sign-extended to 64 bits); use a 32-bit register, or load_imm64 and a register";
        else if (form.shape == Shape::alu_imm || form.shape == Shape::branch_imm || form.shape == Shape::store_imm)
            text += "; put it into a register with load_imm64";
        return text;
    }
    case Problem::value_range:
        return number(operands.imm) + " doesn't fit in " + std::to_string(form.bits) + " bits, which `" + pattern(form) +
               "` stores";
    case Problem::shift_range: return "a shift by " + number(operands.imm) + "; it may be 0 to " + std::to_string(form.bits - 1);
    case Problem::zero_divisor: return "a division by the constant zero, which the verifier refuses";
    case Problem::address_space:
        return number(operands.imm) + " isn't two address spaces, to << 16 | from, each of them 0 to 65535";
    case Problem::not_an_operand: return "`" + pattern(form) + "` has no such operand";
    }
    return "unknown problem";
}

} // namespace rawbpf::inline v0
