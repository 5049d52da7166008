// x86_64's instructions have 1 to 15 bytes, and a byte c3 may be a part of any of them. So instructions are decoded one by
// one:
//
//      prefixes | REX | opcode 1 to 3 bytes | ModRM | SIB | displacement 0, 1, 4 | immediate 0, 1, 2, 4, 8
//               | VEX (c4, c5) or EVEX (62) with the map in it
//
// Three tables with one letter per opcode say which opcodes have a ModRM byte and how wide their immediates are. An opcode
// that isn't in them (invalid in 64-bit mode, or of a new map) ends the search, and there is no result for the function.
//
// Go's stack check. Its jump goes to a call of runtime.morestack, and from there back to the first instruction:
//
//      x86_64    cmp 16(r14), rsp; jbe      lea -N(rsp), r12; cmp 16(r14), r12; jbe      until 1.16 by fs:-8
//      arm64     ldr x16, [x28, 16]; mov x17, sp; cmp x17, x16; b.ls                     and with sub x17, sp, N
//
// Sources: Intel SDM volume 2, appendix A; Arm ARM C4.1; Go's cmd/internal/obj/x86/obj6.go and arm64/obj7.go (stacksplit).
#include "runtime/link/return_instructions.h"

#include <algorithm>
#include <string_view>

#include <elf.h>

namespace rawbpf::inline v0 {
namespace {

// A row for 16 opcodes.  -: none   m: ModRM   b: 8 bits   w: 16   z: 32 (16 with the prefix 66)   v: z, 64 with REX.W
// B, Z: ModRM and 8 bits, and z   e: 16 and 8   a: an address   t, T: ModRM, and of test b, z   p: prefix or escape   .: unknown
constexpr std::string_view kOne = "mmmmbz..mmmmbz.p"
                                  "mmmmbz..mmmmbz.."
                                  "mmmmbzp.mmmmbzp."
                                  "mmmmbzp.mmmmbzp."
                                  "pppppppppppppppp"
                                  "----------------"
                                  "..pmppppzZbB----"
                                  "bbbbbbbbbbbbbbbb"
                                  "BZ.Bmmmmmmmmmmmm"
                                  "----------.-----"
                                  "aaaa----bz------"
                                  "bbbbbbbbvvvvvvvv"
                                  "BBw-ppBZe-w--b.-"
                                  "mmmm...-mmmmmmmm"
                                  "bbbbbbbbzz.b----"
                                  "p-pp--tT------mm";
constexpr std::string_view kTwo = "mmmm.-----.-.m-B"
                                  "mmmmmmmmmmmmmmmm"
                                  "mmmm....mmmmmmmm"
                                  "--------p.p....."
                                  "mmmmmmmmmmmmmmmm"
                                  "mmmmmmmmmmmmmmmm"
                                  "mmmmmmmmmmmmmmmm"
                                  "BBBBmmm-mmmmmmmm"
                                  "zzzzzzzzzzzzzzzz"
                                  "mmmmmmmmmmmmmmmm"
                                  "---mBm..---mBmmm"
                                  "mmmmmmmmmmBmmmmm"
                                  "mmBmBBBm--------"
                                  "mmmmmmmmmmmmmmmm"
                                  "mmmmmmmmmmmmmmmm"
                                  "mmmmmmmmmmmmmmmm";
static_assert(kOne.size() == 256 && kTwo.size() == 256);

constexpr size_t kLongest = 15;

class Instruction {
  public:
    explicit Instruction(Bytes code) : code_(code.first(std::min(code.size(), kLongest))) {}

    size_t length() {
        bool narrow = false, short_address = false, wide = false;
        uint8_t op = next();
        for (;; op = next()) { // prefixes, REX the last
            if (op == 0x66) narrow = true;
            if (op == 0x67) short_address = true;
            if (bad_ || !is_prefix(op)) break;
        }
        if ((op & 0xf0) == 0x40) {
            wide = op & 8;
            op = next();
        }
        char how = kOne[op];
        if (op == 0x0f) {
            op = next();
            how = kTwo[op];
            if (op == 0x38 || op == 0x3a) {
                how = op == 0x38 ? 'm' : 'B';
                (void)next();
            } else if (op >= 0x80 && op <= 0x8f) {
                narrow = false; // a distance of 32 bits whatever stands before it
            }
        } else if (op == 0xc4 || op == 0xc5 || op == 0x62) {
            how = in_vector_map(op);
        } else if (op == 0xe8 || op == 0xe9) {
            narrow = false;
        }
        const size_t z = narrow ? 2 : 4;
        switch (how) {
        case '-': break;
        case 'm': operand(); break;
        case 'b': skip(1); break;
        case 'w': skip(2); break;
        case 'z': skip(z); break;
        case 'v': skip(wide ? 8 : z); break;
        case 'B': operand(), skip(1); break;
        case 'Z': operand(), skip(z); break;
        case 'e': skip(3); break;
        case 'a': skip(short_address ? 4 : 8); break;
        case 't':
        case 'T': {
            const bool test = (operand() & 0x30) == 0;
            if (test) skip(how == 't' ? 1 : z);
            break;
        }
        default: return 0;
        }
        return bad_ ? 0 : at_;
    }
    [[nodiscard]] static bool is_prefix(uint8_t op) {
        constexpr std::string_view kPrefixes = "\x66\x67\xf2\xf3\xf0\x2e\x36\x3e\x26\x64\x65";
        return kPrefixes.find(static_cast<char>(op)) != std::string_view::npos;
    }

  private:
    uint8_t next() {
        if (at_ >= code_.size()) {
            bad_ = true;
            return 0;
        }
        return static_cast<uint8_t>(code_[at_++]);
    }
    void skip(size_t bytes) {
        bad_ |= code_.size() - at_ < bytes;
        if (!bad_) at_ += bytes;
    }
    // ModRM and what belongs to it.
    uint8_t operand() {
        const uint8_t modrm = next();
        const uint8_t mod = modrm >> 6, rm = modrm & 7;
        if (mod == 3) return modrm;
        bool far = mod == 2 || (mod == 0 && rm == 5);
        if (rm == 4) far |= (next() & 7) == 5 && mod == 0;
        skip(far ? 4 : mod == 1 ? 1 : 0);
        return modrm;
    }
    char in_vector_map(uint8_t op) {
        uint8_t map = 1;
        if (op == 0xc4) {
            map = next() & 0x1f;
            (void)next();
        } else if (op == 0xc5) {
            (void)next();
        } else {
            map = next() & 7;
            (void)next(), (void)next();
        }
        const uint8_t opcode = next();
        switch (map) {
        case 1: return opcode == 0x77 ? '-' : kTwo[opcode] == 'B' ? 'B' : 'm';
        case 2:
        case 5:
        case 6: return 'm';
        case 3: return 'B';
        default: return '.';
        }
    }

    Bytes code_;
    size_t at_ = 0;
    bool bad_ = false;
};

bool begins(Bytes code, size_t at, std::string_view with) {
    return at <= code.size() && code.size() - at >= with.size() &&
           std::string_view(reinterpret_cast<const char *>(code.data()) + at, with.size()) == with;
}

size_t x86_stack_check(Bytes code) {
    using namespace std::string_view_literals;
    size_t at = 0;
    if (begins(code, at, "\x64\x48\x8b\x0c\x25\xf8\xff\xff\xff"sv)) at += 9; // mov rcx, fs:-8
    if (begins(code, at, "\x4c\x8d\x64\x24"sv))                              // lea r12, [rsp - 8 bits]
        at += 5;
    else if (begins(code, at, "\x4c\x8d\xa4\x24"sv)) // lea r12, [rsp - 32 bits]
        at += 8;
    else if (begins(code, at, "\x48\x8d\x44\x24"sv)) // the same of rax, until 1.16
        at += 5;
    else if (begins(code, at, "\x48\x8d\x84\x24"sv))
        at += 8;
    if (begins(code, at, "\x49\x3b\x66\x10"sv) || begins(code, at, "\x4d\x3b\x66\x10"sv) || // cmp rsp or r12, [r14 + 16]
        begins(code, at, "\x48\x3b\x61\x10"sv) || begins(code, at, "\x48\x3b\x41\x10"sv))   // cmp rsp or rax, [rcx + 16]
        at += 4;
    else
        return 0;
    if (begins(code, at, "\x76"sv)) return at + 2 <= code.size() ? at + 2 : 0; // jbe
    if (begins(code, at, "\x0f\x86"sv)) return at + 6 <= code.size() ? at + 6 : 0;
    return 0;
}

uint32_t word(Bytes code, size_t index) { return (index + 1) * 4 <= code.size() ? load<uint32_t>(code.data() + index * 4) : 0; }

size_t arm64_stack_check(Bytes code) {
    if (word(code, 0) != 0xf9400b90) return 0; // ldr x16, [x28, 16]
    // What is compared with it takes one to three instructions: sp, or sp less the frame.
    for (size_t i = 1; i <= 5; ++i)
        if ((word(code, i) & 0xff00001f) == 0x54000009) return (i + 1) * 4; // b.ls
    return 0;
}

} // namespace

size_t x86_instruction_length(Bytes code) { return Instruction(code).length(); }

std::optional<std::vector<uint64_t>> return_instructions(Bytes code, uint16_t machine) {
    std::vector<uint64_t> out;
    if (machine == EM_AARCH64) {
        for (size_t i = 0; i * 4 + 4 <= code.size(); ++i)
            if ((word(code, i) & 0xfffffc1f) == 0xd65f0000) out.push_back(i * 4); // ret
        return out;
    }
    if (machine != EM_X86_64) return std::nullopt;
    for (size_t at = 0; at < code.size();) {
        const size_t length = x86_instruction_length(code.subspan(at));
        if (length == 0) return std::nullopt;
        size_t opcode = at;
        while (opcode + 1 < at + length && Instruction::is_prefix(static_cast<uint8_t>(code[opcode]))) ++opcode;
        const auto op = static_cast<uint8_t>(code[opcode]);
        if (op == 0xc3 || op == 0xc2) out.push_back(at);
        at += length;
    }
    return out;
}

std::optional<uint64_t> instruction_with(Bytes code, uint64_t offset, uint16_t machine) {
    if (offset >= code.size()) return std::nullopt;
    if (machine == EM_AARCH64) return offset & ~uint64_t{3};
    if (machine != EM_X86_64) return std::nullopt;
    for (uint64_t at = 0;;) {
        const size_t length = x86_instruction_length(code.subspan(at));
        if (length == 0) return std::nullopt;
        if (offset < at + length) return at;
        at += length;
    }
}

size_t go_stack_check(Bytes code, uint16_t machine) {
    return machine == EM_X86_64 ? x86_stack_check(code) : machine == EM_AARCH64 ? arm64_stack_check(code) : 0;
}

} // namespace rawbpf::inline v0
