// The instruction set as text for people, made from the rows of opcodes.h and the printers: nothing here depends on a single
// opcode.
//
//      add          r1 += 5
//      does         r1 = r1 + 5, 64 bits
//      bytes        [ 07 | 0:dst | off 0 | imm number ]          07 01 00 00 05 00 00 00
//
// The text for what an instruction does comes from its shape, with the row's symbol in it.
#include "asm/isa_text.h"

#include <cstring>

#include "asm/encode.h"
#include "asm/nearest.h"
#include "asm/print.h"

namespace rawbpf::inline v0 {

namespace {

/// Operands that every form takes and that tell its fields apart.
Encoded example(const Form &form) {
    Operands operands;
    const uint8_t fields = form.fields();
    if (fields & kDst) operands.dst = 1;
    if (fields & kSrc) operands.src = 2;
    if (fields & kOff) operands.off = form.shape == Shape::branch_imm || form.shape == Shape::branch_reg ? 3 : 8;
    if (fields & kImm) operands.imm = form.shape == Shape::cast ? 1 : 5;
    return encode(form, operands);
}

std::string number(uint64_t value, unsigned base, size_t least) {
    std::string out;
    do {
        out.insert(out.begin(), "0123456789abcdef"[value % base]);
        value /= base;
    } while (value != 0 || out.size() < least);
    return out;
}

std::string version(KernelVersion since) {
    if (since == KernelVersion{}) return "none yet";
    return std::to_string(since.major) + "." + std::to_string(since.minor);
}
std::string cpu(const Form &form) { return form.cpu > 4 ? "newer than v4" : "v" + std::to_string(form.cpu); }

} // namespace

std::string isa_example(const Form &form) {
    const Encoded encoded = example(form);
    const Insn slots[] = {encoded.insn, encoded.second};
    return print(slots);
}

std::string isa_meaning(const Form &form) {
    const std::string bits = std::to_string(form.bits), symbol(form.symbol);
    const std::string upper = form.register_bits == 32 ? "; the upper half of the register becomes zero" : "";
    const bool with_number = form.shape == Shape::alu_imm || form.shape == Shape::branch_imm;
    const std::string right =
        with_number ? form.register_bits == 32 ? "the number" : "the number (sign-extended to 64 bits)" : "src";
    switch (form.shape) {
    case Shape::alu_imm:
    case Shape::alu_reg: {
        if (symbol == "=") return "dst = " + right + upper;
        const std::string op = symbol.substr(0, symbol.size() - 1);
        std::string out = "dst = dst " + op + " " + right + ", " + bits + " bits";
        if (op == "/") out += "; a division by zero gives zero";
        if (op == "%") out += "; if the divisor is zero, dst keeps its value";
        if (op == "s/" || op == "s%") out += ", signed, rounded towards zero";
        if (op == "<<" || op == ">>") out += "; a shift by " + bits + " or more by a register uses the low bits of the register";
        if (op == "s>>") out += "; copies of the sign bit fill the upper bits";
        return out + upper;
    }
    case Shape::negate: return "dst = 0 - dst, " + bits + " bits" + upper;
    case Shape::sign_extend:
        return "dst = the low " + bits + " bits of src as a signed number, " + std::to_string(form.register_bits) + " bits" +
               upper;
    case Shape::byte_swap:
        return symbol.starts_with("bswap")
                   ? "the low " + bits + " bits of dst with their bytes in the other order; the rest becomes zero"
                   : "the low " + bits + " bits of dst from the machine's order to " + (symbol[0] == 'b' ? "big" : "little") +
                         "-endian; the rest becomes zero";
    case Shape::cast:
        return "dst = the pointer src moved from one address space to another (arenas: 0 the kernel's, 1 the arena's)";
    case Shape::load:
        return "dst = " + bits + " bits of memory at src + off, " + (form.is_signed ? "their sign extended" : "the rest zero");
    case Shape::store_imm: return "the number into " + bits + " bits of memory at dst + off";
    case Shape::store_reg: return "the low " + bits + " bits of src into memory at dst + off";
    case Shape::load_wide:
        switch (static_cast<Wide>(form.src)) {
        case Wide::number: return "dst = a number of 64 bits; two slots, the second has the upper half";
        case Wide::map_fd: return "dst = a map, by its file descriptor, which the loader fills in";
        case Wide::map_value: return "dst = the address of a place in the value of an array map of one entry (a global variable)";
        case Wide::btf_id: return "dst = the address of a kernel variable, by its BTF id";
        case Wide::function: return "dst = the address of a function of the program, for helpers that call back";
        case Wide::map_index: return "dst = a map, by its position in the list of descriptors given at loading";
        case Wide::map_index_value: return "the same for a place in the map's value";
        }
        return {};
    case Shape::packet_abs:
        return "r0 = " + bits +
               " bits of the packet at the offset, converted from network byte order to the machine's; if they are past its end, "
               "the program returns 0. r6 must hold the context; r1 to r5 are lost. Legacy";
    case Shape::packet_ind:
        return "r0 = " + bits + " bits of the packet at src plus the offset; otherwise like a load at a fixed offset. Legacy";
    case Shape::atomic: return "memory at dst + off " + symbol + " src, " + bits + " bits, atomically";
    case Shape::atomic_fetch: return "the same as its operator, atomically; src gets the old value of memory, " + bits + " bits";
    case Shape::exchange: return "src and " + bits + " bits of memory at dst + off are exchanged, atomically";
    case Shape::compare_swap:
        return "if memory at dst + off equals r0, it becomes src; r0 gets the old value of memory, " + bits + " bits, atomically";
    case Shape::load_acquire:
        return "dst = " + bits + " bits of memory at src + off; no later access is done before it (acquire)";
    case Shape::store_release:
        return "src into " + bits + " bits of memory at dst + off; no earlier access is done after it (release)";
    case Shape::jump: return "jumps by off instructions, counted from the next one";
    case Shape::jump_long: return "the same with 32 bits of distance, in imm";
    case Shape::jump_reg: return "jumps to the address in dst, which comes from an insn_array map";
    case Shape::may_jump: return "the exit of a loop: jumps when the kernel finds that the loop has run too long";
    case Shape::branch_imm:
    case Shape::branch_reg: {
        const bool is_signed = symbol[0] == 's';
        const std::string compared = symbol == "&" ? "if dst & " + right + " isn't zero"
                                                   : "if dst " + (is_signed ? symbol.substr(1) : symbol) + " " + right;
        return compared + ", " + bits + " bits" +
               (is_signed                              ? ", signed"
                : symbol[0] == '<' || symbol[0] == '>' ? ", unsigned"
                                                       : "") +
               ": jumps by off instructions, counted from the next one";
    }
    case Shape::call_helper:
        return "calls a helper function of the kernel, by its number (rawbpf helper): r1 to r5 are its arguments, and lost; r0 = "
               "its result";
    case Shape::call_local:
        return "calls a function of this program, at imm instructions after the next one: r1 to r5 are its arguments, and lost; "
               "r0 = its result";
    case Shape::call_kfunc:
        return "calls a kernel function (kfunc), by its BTF id; off chooses the module: r1 to r5 are its arguments, and lost; r0 "
               "= its result";
    case Shape::call_reg: return "calls the function whose address is in dst; no kernel accepts it";
    case Shape::exit: return "returns r0 to the caller, or to the kernel";
    }
    return {};
}

namespace {

/// "[ code 07 | src 0 | dst | off 0 | imm ]"
std::string picture(const Form &form) {
    const uint8_t fields = form.fields();
    std::string out = "[ " + number(form.code, 16, 2);
    out += fields & kSrc ? " | src" : " | " + std::to_string(form.src);
    out += fields & kDst ? ":dst" : ":0";
    out += fields & kOff ? " | off" : " | " + std::to_string(form.off);
    out += fields & kImm ? " | imm ]" : " | 0x" + number(static_cast<uint32_t>(form.imm), 16, 1) + " ]";
    if (form.shape == Shape::load_wide) out += "[ 00 | 0:0 | 0 | imm above ]";
    return out;
}

void pad(std::string &text, size_t start, size_t width) {
    if (text.size() - start < width)
        text.append(width - (text.size() - start), ' ');
    else
        text += ' ';
}

} // namespace

std::string isa_table() {
    std::string out =
        "NAME               WRITTEN                                       BYTES                        KERNEL    CPU\n";
    for (const Form &form : isa::kForms) {
        const Encoded encoded = example(form);
        const Insn slots[] = {encoded.insn, encoded.second};
        const size_t start = out.size();
        out += form.name;
        pad(out, start, 19);
        append_insn(out, slots);
        pad(out, start, 65);
        out += picture(form).substr(0, 28);
        pad(out, start, 94);
        out += version(form.since);
        pad(out, start, 104);
        out += (form.cpu > 4 ? std::string("-") : cpu(form)) + "\n";
    }
    return out;
}

std::vector<const Form *> find_forms(std::string_view word) {
    std::vector<const Form *> out;
    auto plain = [](std::string_view name) {
        if (name.ends_with("_reg")) name.remove_suffix(4);
        return name;
    };
    for (const Form &form : isa::kForms) {
        const std::string code = "0x" + number(form.code, 16, 2);
        if (form.name == word || plain(form.name) == word || form.symbol == word || word == code ||
            word == std::string_view(code).substr(2)) // as listings show bytes
            out.push_back(&form);
    }
    if (!out.empty()) return out;
    // What the conformance dialect calls them, and "add" for "add32" and "jeq" for "jeq32_reg" are there already.
    for (const Form &form : isa::kForms) {
        const Encoded encoded = example(form);
        const Insn slots[] = {encoded.insn, encoded.second};
        PrintStyle style;
        style.dialect = Dialect::conformance;
        const std::string text = print(slots, style);
        if (std::string_view(text).substr(0, text.find(' ')) == word || print(slots).starts_with(std::string(word) + " "))
            out.push_back(&form);
    }
    return out;
}

std::string isa_hint(std::string_view word) {
    Nearest near(word);
    for (const Form &form : isa::kForms) {
        near.offer(form.name.ends_with("_reg") ? form.name.substr(0, form.name.size() - 4) : form.name);
        near.offer(form.symbol);
    }
    return near.hint();
}

std::string isa_entry(const Form &form) {
    const Encoded encoded = example(form);
    const Insn slots[] = {encoded.insn, encoded.second};
    std::string out(form.name);
    pad(out, 0, 20);
    out += print(slots) + "\n";
    out += "    does            " + isa_meaning(form) + "\n";
    out += "    fields          " + picture(form) + "\n";
    out += "    bytes           ";
    uint8_t raw[16];
    std::memcpy(raw, slots, 16);
    for (size_t i = 0; i < (form.shape == Shape::load_wide ? 16u : 8u); ++i) out += (i ? " " : "") + number(raw[i], 16, 2);
    out += "\n";
    PrintStyle style;
    style.dialect = Dialect::kernel;
    out += "    verifier        " + print(slots, style) + "\n";
    style.dialect = Dialect::conformance;
    out += "    conformance     " + print(slots, style) + "\n";
    out += "    since           Linux " + version(form.since) + ", LLVM -mcpu=" + cpu(form) + "\n";
    return out;
}

} // namespace rawbpf::inline v0
