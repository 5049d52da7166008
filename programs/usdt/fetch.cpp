// From a location to instructions:
//
//      -4@%eax              r7 = *(u64 *)(r6 + 80)       the whole register, as the kernel saved it
//                           r7 <<= 32
//                           r7 s>>= 32                   and of it the lower half, with its sign
//
//      4@8(%rbp,%rax,4)     r3 = *(u64 *)(r6 + 32)
//                           r2 = *(u64 *)(r6 + 80)
//                           r2 <<= 2
//                           r3 += r2
//                           r3 += 8
//                           ... bpf_probe_read_user(&read, 4, r3)
//                           r7 = *(u32 *)(r10 - 8)
//
// Registers are loaded whole and truncated afterwards, which is correct in either byte order. Signs are extended by shifts,
// since movsx needs Linux 6.6.
#include "programs/usdt/fetch.h"

#include <algorithm>

namespace rawbpf::inline v0::usdt {
namespace {

void set_number(Code &code, WritableReg dst, int64_t number) {
    if (number == static_cast<int32_t>(number))
        code.mov(dst, runtime(number));
    else
        code.load_imm64(dst, static_cast<uint64_t>(number));
}

// The lowest `bits` of dst, extended to 64.
void cut(Code &code, WritableReg dst, unsigned bits, bool is_signed) {
    if (bits == 64) return;
    if (!is_signed && bits == 32)
        return code.mov(Reg32(static_cast<uint8_t>(dst.number())), Reg32(static_cast<uint8_t>(dst.number())));
    if (!is_signed) return code.and_(dst, runtime((int64_t{1} << bits) - 1));
    code.lsh(dst, runtime(64 - bits));
    code.arsh(dst, runtime(64 - bits));
}

void load_register(Code &code, WritableReg dst, Reg context, const Register &from, bool is_signed) {
    code.note(from.name.empty() ? "the program counter" : from.name);
    if (from.word == 4)
        code.load<uint32_t>(dst, context + runtime(from.offset));
    else
        code.load<uint64_t>(dst, context + runtime(from.offset));
    if (from.shift != 0) code.rsh(dst, runtime(from.shift));
    cut(code, dst, from.bits, is_signed);
}

void add_number(Code &code, WritableReg dst, const Argument &argument) {
    const Location &l = argument.location;
    if (l.displacement == 0) return;
    if (!l.symbol.empty()) code.note(l.symbol);
    if (l.displacement == static_cast<int32_t>(l.displacement)) return code.add(dst, runtime(l.displacement));
    code.load_imm64(r2, static_cast<uint64_t>(l.displacement));
    code.add(dst, r2);
}

// dst = base + (index << scale) + displacement; r2 is gone.
void emit_address(Code &code, WritableReg dst, Reg context, const Argument &argument) {
    const Location &l = argument.location;
    const bool has_base = l.base.kind == RegisterKind::general, has_index = l.index.kind == RegisterKind::general;
    if (!has_base && !has_index) return set_number(code, dst, l.displacement);
    if (has_base) load_register(code, dst, context, l.base, false);
    if (has_index) {
        const WritableReg by = has_base ? r2 : dst;
        load_register(code, by, context, l.index, l.index_signed);
        if (l.scale != 0) code.lsh(by, runtime(l.scale));
        if (has_base) code.add(dst, by);
    }
    add_number(code, dst, argument);
    if ((has_base ? l.base : l.index).word == 4) cut(code, dst, 32, false); // where addresses have 32 bits, so has their sum
}

// dst = *r3 by bpf_copy_from_user(), which waits for the page; 0 where there is none.
void read_waiting(Code &code, WritableReg dst, const Argument &argument) {
    const Slot read = code.stack(8, 8, "read");
    code.mov(r1, 0);
    code.store<uint64_t>(read, r1);
    code.mov(r2, runtime(argument.size));
    code.address(r1, read);
    code.call(helper::copy_from_user);
    switch (argument.size) {
    case 1: code.load<uint8_t>(dst, read); break;
    case 2: code.load<uint16_t>(dst, read); break;
    case 4: code.load<uint32_t>(dst, read); break;
    default: code.load<uint64_t>(dst, read); break;
    }
    if (argument.is_signed) cut(code, dst, argument.size * 8U, true);
}

} // namespace

bool is_in_memory(const Argument &argument) {
    return argument.problem.empty() && argument.location.kind == OperandKind::in_memory;
}

void emit_argument(Code &code, WritableReg dst, Reg context, const Argument &argument, bool sleepable) {
    const Location &l = argument.location;
    const unsigned bits = argument.size * 8U;
    switch (argument.problem.empty() ? l.kind : OperandKind::unknown) {
    case OperandKind::unknown: return code.mov(dst, 0);
    case OperandKind::constant: {
        const auto number = static_cast<uint64_t>(l.displacement) << (64 - bits);
        return set_number(code, dst,
                          argument.is_signed ? static_cast<int64_t>(number) >> (64 - bits)
                                             : static_cast<int64_t>(number >> (64 - bits)));
    }
    case OperandKind::address: emit_address(code, dst, context, argument); return cut(code, dst, bits, argument.is_signed);
    case OperandKind::in_register: {
        Register whole = l.base;
        const unsigned have = whole.bits;
        whole.bits = 64;
        load_register(code, dst, context, whole, false);
        return cut(code, dst, std::min(bits, have), argument.is_signed);
    }
    case OperandKind::in_memory:
        emit_address(code, r3, context, argument);
        if (sleepable) return read_waiting(code, dst, argument);
        switch (argument.size) {
        case 1: code.read_user<uint8_t>(dst, r3); break;
        case 2: code.read_user<uint16_t>(dst, r3); break;
        case 4: code.read_user<uint32_t>(dst, r3); break;
        default: code.read_user<uint64_t>(dst, r3); break;
        }
        if (argument.is_signed) cut(code, dst, bits, true);
        return;
    }
}

Built fetching_program(const Argument &argument) {
    Builder builder("fetch");
    Code &code = builder.program("uprobe", "fetch");
    code.mov(r6, r1);
    emit_argument(code, r7, r6, argument);
    code.ret(0);
    return builder.finish();
}

size_t count_instructions(const Argument &argument) {
    if (!argument.problem.empty()) return 0;
    Built built = fetching_program(argument);
    return built ? built->functions[0].insns.size() - 3 : 0;
}

} // namespace rawbpf::inline v0::usdt
