// The conformance dialect: a mnemonic, then operands between commas.
//
//      mov32 %r1, 5        ldxdw %r0, [%r1+8]        jeq %r1, 0, label        lock fetch add [%r1], %r2        call helper 5
//
// It is the dialect of the bpf_conformance project's tests, and similar to that of ubpf's tools. A mnemonic is the name of a
// row in opcodes.h, except for those that are put together here. Like the project's assembler, this one reads a hexadecimal
// number as the 32 bits of the field; it refuses a decimal number that doesn't fit.
#include "asm/assembling.h"
#include "asm/lookup.h"
#include "asm/nearest.h"

namespace rawbpf::inline v0::assembling {

/// %r1, or r1.
bool Assembler::plain_register(int &out, const char *&at) {
    skip_space();
    at = p_;
    if (*p_ == '%') ++p_;
    Register found;
    if (!reg(found)) return false;
    if (found.bits != 64)
        return fail(at, "in this dialect the mnemonic says how wide; the register is r" + std::to_string(found.number));
    out = found.number;
    return true;
}

/// [%r1+8], [%r1-8], [%r1]
bool Assembler::bracket(Operands &operands, bool destination, Places &places) {
    if (!need('[')) return false;
    if (!plain_register(destination ? operands.dst : operands.src, destination ? places.dst : places.src)) return false;
    skip_space();
    places.off = p_;
    if (*p_ == '+' || *p_ == '-') {
        Number distance = 0;
        if (!this->distance(distance)) return false;
        if (distance < INT16_MIN || distance > INT16_MAX) return fail(places.off, "an offset may be -32768 to 32767");
        operands.off = static_cast<int64_t>(distance);
    }
    return need(']');
}

bool Assembler::pattern(const Form &form, Value &value, int64_t &out, const char *at) {
    const bool as_bits = value.is_hex && form.shape != Shape::load_wide && value.number > INT32_MAX && value.number <= UINT32_MAX;
    if (value.number < INT64_MIN || (value.number > INT64_MAX && (form.shape != Shape::load_wide || value.number > UINT64_MAX)))
        return fail(at, "the number has more than 64 bits");
    const bool bytes = form.shape == Shape::store_imm && form.bits < 64;
    out = as_bits && !bytes ? static_cast<int32_t>(static_cast<uint32_t>(value.number))
                            : static_cast<int64_t>(static_cast<uint64_t>(value.number));
    return true;
}

bool Assembler::mnemonic(std::string_view word, const char *at) {
    std::string row(word);
    if (word == "lock") {
        std::string_view op = name();
        std::string_view prefix;
        if (op == "fetch") {
            prefix = "fetch_";
            op = name();
        }
        row = op.starts_with("xchg") || op.starts_with("cmpxchg") ? std::string(op)
                                                                  : "atomic_" + std::string(prefix) + std::string(op);
        if (op.empty() || (!prefix.empty() && !row.starts_with("atomic_")))
            return expected("an atomic operation: add, or, and, xor, xchg, cmpxchg");
    } else if (word == "call") {
        return call();
    } else if (word.starts_with("swap")) {
        row = "b" + row;
    } else if (word.starts_with("movsx") && word.size() > 7) {
        const bool to_32 = word.ends_with("32");
        row.resize(row.size() - 2);
        if (to_32) row += "_32";
    }
    const Form *form = find_form(row);
    if (form == nullptr && word == "lock") return fail(at, "expected an atomic operation: add, or, and, xor, xchg, cmpxchg");
    if (form == nullptr) {
        Nearest near(word);
        for (const Form &known : isa::kForms)
            if (!known.name.ends_with("_reg")) near.offer(known.name);
        for (std::string_view known : {"if", "goto", "gotol", "call", "exit", "lock"}) near.offer(known);
        return fail(at, "there is no instruction `" + std::string(word) + "`", near.hint());
    }
    Operands operands;
    Places places;
    auto maybe_register = [&] { // the second operand of what has two kinds
        skip_space();
        return *p_ == '%' || at_register();
    };
    auto immediate = [&] {
        skip_space();
        places.imm = p_;
        Value number;
        return value(number) && pattern(*form, number, operands.imm, places.imm);
    };
    switch (form->shape) {
    case Shape::alu_imm:
    case Shape::branch_imm: {
        const bool branch = form->shape == Shape::branch_imm;
        if (!plain_register(operands.dst, places.dst) || !need(',')) return false;
        if (maybe_register()) {
            form = find_form(row + "_reg");
            if (form == nullptr || !plain_register(operands.src, places.src)) return false;
        } else if (!immediate())
            return false;
        if (!branch) return emit(*form, operands, places);
        return need(',') && emit_jump(*form, operands, places, false);
    }
    case Shape::negate:
    case Shape::byte_swap:
    case Shape::jump_reg:
    case Shape::call_reg: return plain_register(operands.dst, places.dst) && emit(*form, operands, places);
    case Shape::sign_extend:
        return plain_register(operands.dst, places.dst) && need(',') && plain_register(operands.src, places.src) &&
               emit(*form, operands, places);
    case Shape::cast: {
        int64_t to_space, from_space;
        if (!plain_register(operands.dst, places.dst) || !need(',') || !plain_register(operands.src, places.src) || !need(',') ||
            !number(to_space, 0, 65535, "an address space") || !need(',') || !number(from_space, 0, 65535, "an address space"))
            return false;
        operands.imm = to_space << 16 | from_space;
        return emit(*form, operands, places);
    }
    case Shape::load:
    case Shape::load_acquire:
        return plain_register(operands.dst, places.dst) && need(',') && bracket(operands, false, places) &&
               emit(*form, operands, places);
    case Shape::load_wide:
    case Shape::packet_abs:
        if (form->shape == Shape::load_wide && (!plain_register(operands.dst, places.dst) || !need(','))) return false;
        return immediate() && emit(*form, operands, places);
    case Shape::packet_ind:
        return plain_register(operands.src, places.src) && need(',') && immediate() && emit(*form, operands, places);
    case Shape::store_imm: return bracket(operands, true, places) && need(',') && immediate() && emit(*form, operands, places);
    case Shape::store_reg:
    case Shape::atomic:
    case Shape::atomic_fetch:
    case Shape::exchange:
    case Shape::compare_swap:
    case Shape::store_release:
        return bracket(operands, true, places) && need(',') && plain_register(operands.src, places.src) &&
               emit(*form, operands, places);
    case Shape::jump:
    case Shape::jump_long:
    case Shape::may_jump: return emit_jump(*form, operands, places, false);
    case Shape::exit: return emit(*form, operands, places);
    case Shape::alu_reg:
    case Shape::branch_reg:
    case Shape::call_helper:
    case Shape::call_local:
    case Shape::call_kfunc: break;
    }
    return fail(at, "there is no instruction `" + std::string(word) + "`");
}

} // namespace rawbpf::inline v0::assembling
