// The bits of an instruction, each run of them with its name and its meaning.
//
//      byte 0   [ 0000 | 0 | 111 ]     alu, jmp:  operation | register? | class
//               [ 011 | 00 | 001 ]     memory:    mode | size | class
//      byte 1   [ 0010 | 0001 ]        src | dst
//      byte 2   off, 16 bits           lowest byte first
//      byte 4   imm, 32 bits           lowest byte first
//
// The first byte is RFC 9669, sections 3.1 (classes), 4.1 and 4.3 (operations), 5 (modes and sizes). Which of the other fields
// are operands, and what the rest must hold, is the row's (opcodes.h).
#include "asm/bits.h"

#include <cstring>

#include "asm/isa_text.h"
#include "asm/opcodes.h"
#include "asm/print.h"

namespace rawbpf::inline v0 {
namespace {

constexpr std::string_view kClasses[] = {
    "ld, loads of 64-bit numbers and of packets",
    "ldx, loads from memory",
    "st, stores of a number",
    "stx, stores of a register, and atomic operations",
    "alu, arithmetic of 32 bits",
    "jmp, jumps that compare 64 bits, calls and exit",
    "jmp32, jumps that compare 32 bits",
    "alu64, arithmetic of 64 bits",
};
constexpr std::string_view kSizes[] = {"w, 4 bytes", "h, 2 bytes", "b, 1 byte", "dw, 8 bytes"};
constexpr std::string_view kModes[] = {"imm, a number of 64 bits",
                                       "abs, a packet at a fixed offset",
                                       "ind, a packet at a register's offset",
                                       "mem, memory",
                                       "memsx, memory, the sign extended",
                                       "undefined",
                                       "atomic",
                                       "undefined"};
constexpr std::string_view kArithmetic[] = {"add",       "sub",
                                            "mul",       "div (or sdiv)",
                                            "or",        "and",
                                            "lsh",       "rsh",
                                            "neg",       "mod (or smod)",
                                            "xor",       "mov (or movsx)",
                                            "arsh",      "end, byte order",
                                            "undefined", "undefined"};
constexpr std::string_view kJumps[] = {
    "ja, always", "jeq, ==", "jgt, >", "jge, >=", "jset, &",        "jne, !=",         "jsgt, signed >",  "jsge, signed >=",
    "call",       "exit",    "jlt, <", "jle, <=", "jslt, signed <", "jsle, signed <=", "jcond, may_goto", "undefined"};

bool is_memory(uint8_t code) { return (code & 7) < 4; }
bool is_jump(uint8_t code) { return (code & 7) == 5 || (code & 7) == 6; }

std::string hex(uint64_t value, size_t digits) {
    std::string out(digits, '0');
    for (size_t i = digits; i-- > 0; value >>= 4) out[i] = "0123456789abcdef"[value & 15];
    return out;
}
std::string binary(uint64_t value, size_t digits) {
    std::string out(digits, '0');
    for (size_t i = digits; i-- > 0; value >>= 1) out[i] = static_cast<char>('0' + (value & 1));
    return out;
}
std::string with_sign(int64_t value) { return (value < 0 ? "" : "+") + std::to_string(value); }

BitField part_of(std::string_view name, uint8_t byte, uint8_t low, uint8_t bits, uint8_t value, std::string_view meaning) {
    return {name, byte, 1, low, bits, static_cast<uint32_t>(value >> low & ((1U << bits) - 1)), std::string(meaning)};
}

void split_code(std::vector<BitField> &out, uint8_t code) {
    out.push_back(part_of("class", 0, 0, 3, code, kClasses[code & 7]));
    if (is_memory(code)) {
        out.push_back(part_of("size", 0, 3, 2, code, kSizes[code >> 3 & 3]));
        out.push_back(part_of("mode", 0, 5, 3, code, kModes[code >> 5]));
        return;
    }
    const bool swaps = (code & 0xf0) == 0xd0 && !is_jump(code);
    const std::string_view source = swaps      ? (code & 8          ? "to big-endian"
                                                  : (code & 7) == 7 ? "swap, whatever the machine's order"
                                                                    : "to little-endian")
                                    : code & 8 ? "the other operand is the register src"
                                               : "the other operand, if there is one, is the number imm";
    out.push_back(part_of("source", 0, 3, 1, code, source));
    out.push_back(part_of("operation", 0, 4, 4, code, is_jump(code) ? kJumps[code >> 4] : kArithmetic[code >> 4]));
}

/// A field that isn't an operand: it has a fixed value, which may tell forms of one code apart.
std::string fixed(int64_t is, int64_t must, bool known) {
    if (!known) return std::to_string(is);
    if (is != must) return std::to_string(is) + ", but must be " + std::to_string(must);
    return must == 0 ? "not used: 0" : std::to_string(is) + ": with this code, it says which instruction it is";
}

std::string register_meaning(const Form *form, Field field, uint8_t is) {
    if (!form) return std::to_string(is);
    if (!(form->fields() & field)) return fixed(is, field == kSrc ? form->src : 0, true);
    if (is > 10) return std::to_string(is) + ": there is no such register";
    return (form->register_bits == 32 ? "w" : "r") + std::to_string(is) + (is == 10 ? ", the frame pointer" : "");
}

std::string offset_meaning(const Form *form, int16_t off) {
    if (!form || !(form->fields() & kOff)) return fixed(off, form ? form->off : 0, form != nullptr);
    switch (form->shape) {
    case Shape::jump:
    case Shape::may_jump:
    case Shape::branch_imm:
    case Shape::branch_reg: return with_sign(off) + " slots, from the next instruction";
    case Shape::call_kfunc: return std::to_string(off) + ": which descriptor of a module's types; 0: the kernel's own";
    default: return with_sign(off) + " bytes, from the address in the register";
    }
}

std::string immediate_meaning(const Form *form, int32_t imm) {
    if (!form || !(form->fields() & kImm)) return fixed(imm, form ? form->imm : 0, form != nullptr);
    switch (form->shape) {
    case Shape::jump_long:
    case Shape::call_local: return with_sign(imm) + " slots, from the next instruction";
    case Shape::call_helper: return std::to_string(imm) + ": the helper's number (rawbpf helper " + std::to_string(imm) + ")";
    case Shape::call_kfunc: return std::to_string(imm) + ": the kernel function's BTF id";
    case Shape::cast:
        return "to address space " + std::to_string(static_cast<uint32_t>(imm) >> 16) + ", from " + std::to_string(imm & 0xffff);
    case Shape::load_wide: return "0x" + hex(static_cast<uint32_t>(imm), 8) + ": the lower half of the number";
    default: return std::to_string(imm) + (imm < 0 ? " (0x" + hex(static_cast<uint32_t>(imm), 8) + ", two's complement)" : "");
    }
}

} // namespace

std::vector<BitField> bit_fields(const Insn &insn, bool second) {
    std::vector<BitField> out;
    const Form *form = second ? nullptr : find_form(insn);
    if (!form && !second) // the row whose fixed fields it breaks, to say which
        for (int i = isa::kIndex.first[insn.code]; i >= 0 && !form; i = isa::kIndex.next[i]) form = &isa::kForms[i];
    if (second)
        out.push_back({"code", 0, 1, 0, 8, insn.code, insn.code == 0 ? "0: the second half of a wide instruction" : "must be 0"});
    else
        split_code(out, insn.code);
    const uint8_t registers = static_cast<uint8_t>(insn.src << 4 | insn.dst);
    out.push_back(part_of("dst", 1, 0, 4, registers, second ? fixed(insn.dst, 0, true) : register_meaning(form, kDst, insn.dst)));
    out.push_back(part_of("src", 1, 4, 4, registers, second ? fixed(insn.src, 0, true) : register_meaning(form, kSrc, insn.src)));
    out.push_back({"off", 2, 2, 0, 16, static_cast<uint16_t>(insn.off),
                   second ? fixed(insn.off, 0, true) : offset_meaning(form, insn.off)});
    out.push_back({"imm", 4, 4, 0, 32, static_cast<uint32_t>(insn.imm),
                   second ? "0x" + hex(static_cast<uint32_t>(insn.imm), 8) + ": the upper half of the number"
                          : immediate_meaning(form, insn.imm)});
    return out;
}

std::optional<std::string> undefined_reason(const Insn &insn) {
    if (find_form(insn)) {
        if (insn.dst > 10 || insn.src > 10)
            return "there are registers 0 to 10, and it names " + std::to_string(insn.dst > 10 ? insn.dst : insn.src);
        return {};
    }
    if (isa::kIndex.first[insn.code] < 0) return "no instruction has the opcode 0x" + hex(insn.code, 2);
    for (const BitField &field : bit_fields(insn))
        if (field.meaning.find("must be") != std::string::npos) return std::string(field.name) + " is " + field.meaning;
    return "no instruction with the opcode 0x" + hex(insn.code, 2) + " has these fields";
}

std::string hex_of(std::span<const Insn> insns) {
    std::string out;
    out.reserve(insns.size() * 24);
    for (const Insn &insn : insns) {
        uint8_t raw[sizeof(Insn)];
        std::memcpy(raw, &insn, sizeof raw);
        for (const uint8_t byte : raw) out += (out.empty() ? "" : " ") + hex(byte, 2);
    }
    return out;
}

std::string bit_picture(std::span<const Insn> slots) {
    std::string out;
    const Form *form = find_form(slots[0]);
    const std::optional<std::string> wrong = undefined_reason(slots[0]);
    if (wrong)
        out = "not an instruction: " + *wrong + "\n";
    else
        out = print(slots) + "\n" + std::string(form->name) + ": " + isa_meaning(*form) + "\n";
    for (size_t slot = 0; slot < slots.size(); ++slot) {
        uint8_t raw[sizeof(Insn)];
        std::memcpy(raw, &slots[slot], sizeof raw);
        out += '\n';
        for (const BitField &field : bit_fields(slots[slot], slot == 1)) {
            // Where it lies, its bytes, and its bits within the byte; the others are dots.
            const bool first = field.low == 0;
            std::string place = "  byte " + std::to_string(field.byte);
            if (field.bytes > 1) place += " to " + std::to_string(field.byte + field.bytes - 1);
            std::string bytes;
            for (int i = 0; i < field.bytes; ++i) bytes += (i ? " " : "") + hex(raw[field.byte + i], 2);
            if (!first) place.clear(), bytes.clear();
            place.resize(15, ' ');
            bytes.resize(13, ' ');
            std::string bits;
            if (field.bytes == 1) {
                bits.assign(8, '.');
                bits.replace(8U - field.low - field.bits, field.bits, binary(field.value, field.bits));
            }
            bits.resize(10, ' ');
            std::string name(field.name);
            name.resize(11, ' ');
            out += place + bytes + bits + name + field.meaning + "\n";
        }
    }
    return out;
}

} // namespace rawbpf::inline v0
