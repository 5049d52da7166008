// Intel's manual, volume 2, chapter 2 and appendix A:
//
//      | prefixes 26 2e 36 3e 64 65 66 67 f0 f2 f3 | REX 40..4f: W R X B | opcode 1..3 | ModRM: mod 2, reg 3, rm 3 | SIB | disp | imm |
//
// Which of the last four parts are there, the opcode says; its two rows of 256 follow the manual's maps.
#include "programs/labels/x86_code.h"

namespace rawbpf::inline v0::labels {
namespace {

constexpr size_t kLongest = 15;

// What follows an opcode: ModRM, and how wide the number is. kWord: 4 bytes, 2 with prefix 66.
enum class Number : uint8_t { none, byte, word, dword, full, if_test };
struct Shape {
    bool known = true, modrm = false;
    Number number = Number::none;
};
constexpr Shape kUnknown{.known = false}, kPlain{}, kModRm{.modrm = true};
constexpr Shape kModRmByte{.modrm = true, .number = Number::byte}, kModRmWord{.modrm = true, .number = Number::word};
constexpr Shape kByte{.number = Number::byte}, kWord{.number = Number::word}, kDword{.number = Number::dword};

Shape shape_of_one(uint8_t op) {
    const auto in = [&](uint8_t from, uint8_t to) { return op >= from && op <= to; };
    if (op < 0x40) return (op & 7) < 4 ? kModRm : (op & 7) == 4 ? kByte : (op & 7) == 5 ? kWord : kUnknown;
    if (in(0x50, 0x5f)) return kPlain;
    if (op == 0x63 || in(0x84, 0x8b) || op == 0x8d || op == 0x8f) return kModRm;
    if (op == 0x68 || op == 0xa9) return kWord;
    if (op == 0x6a || in(0x70, 0x7f) || op == 0xa8 || in(0xb0, 0xb7) || op == 0xcd || op == 0xeb) return kByte;
    if (op == 0x69 || op == 0x81 || op == 0xc7) return kModRmWord;
    if (op == 0x6b || op == 0x80 || op == 0x83 || op == 0xc0 || op == 0xc1 || op == 0xc6) return kModRmByte;
    if (in(0x90, 0x99) || in(0xa4, 0xa7) || in(0xaa, 0xaf) || op == 0xc3 || op == 0xc9 || op == 0xcc) return kPlain;
    if (in(0xb8, 0xbf)) return {.number = Number::full};
    if (in(0xd0, 0xd3) || op == 0xfe || op == 0xff) return kModRm;
    if (op == 0xe8 || op == 0xe9) return kDword;
    if (op == 0xf6 || op == 0xf7) return {.modrm = true, .number = Number::if_test};
    return kUnknown;
}

Shape shape_of_two(uint8_t op) {
    const auto in = [&](uint8_t from, uint8_t to) { return op >= from && op <= to; };
    if (op == 0x05 || op == 0x0b || op == 0x31 || op == 0xa2 || in(0xc8, 0xcf)) return kPlain;
    if (in(0x70, 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 || in(0xc4, 0xc6)) return kModRmByte;
    if (in(0x80, 0x8f)) return kDword;
    if (in(0x10, 0x1f) || in(0x28, 0x2f) || in(0x40, 0x76) || in(0x7c, 0x7f) || in(0x90, 0x9f)) return kModRm;
    if (op == 0xa3 || op == 0xa5 || op == 0xab || in(0xad, 0xb9) || in(0xbb, 0xc1) || op == 0xc3 || op == 0xc7 || op >= 0xd0)
        return kModRm;
    return kUnknown;
}

/// push, pop, xchg with rax, mov with a number, bswap.
bool names_register(uint16_t op) {
    return (op >= 0x50 && op <= 0x5f) || (op >= 0x91 && op <= 0x97) || (op >= 0xb0 && op <= 0xbf) ||
           (op >= 0x0fc8 && op <= 0x0fcf);
}

class Decoder {
  public:
    explicit Decoder(Bytes code) : code_(code.first(code.size() < kLongest ? code.size() : kLongest)) {}

    std::optional<X86Instruction> decode() {
        uint8_t op = prefixes();
        Shape shape;
        if (op != 0x0f) {
            shape = shape_of_one(op);
            out_.opcode = op;
        } else if (op = byte(); op == 0x38 || op == 0x3a) {
            shape = op == 0x3a ? kModRmByte : kModRm;
            out_.opcode = static_cast<uint16_t>(op << 8 | byte());
        } else {
            shape = shape_of_two(op);
            out_.opcode = static_cast<uint16_t>(0x0f00 | op);
        }
        if (bad_ || !shape.known) return std::nullopt;
        if (shape.modrm)
            operands();
        else if (names_register(out_.opcode))
            out_.rm = (op & 7) | (rex_ & 1) << 3;
        const bool test = shape.number == Number::if_test && (out_.reg & 7) < 2;
        switch (shape.number) {
        case Number::none: break;
        case Number::byte: out_.immediate = number(1); break;
        case Number::word: out_.immediate = number(narrow_ ? 2 : 4); break;
        case Number::dword: out_.immediate = number(4); break;
        case Number::full: out_.immediate = number(out_.wide ? 8 : narrow_ ? 2 : 4); break;
        case Number::if_test:
            if (test) out_.immediate = number(op == 0xf6 ? 1 : narrow_ ? 2 : 4);
            break;
        }
        out_.length = at_;
        return bad_ ? std::nullopt : std::optional(out_);
    }

  private:
    uint8_t byte() {
        if (at_ >= code_.size()) return bad_ = true, uint8_t{0};
        return static_cast<uint8_t>(code_[at_++]);
    }
    int64_t number(size_t bytes) {
        uint64_t value = 0;
        for (size_t i = 0; i < bytes; ++i) value |= uint64_t{byte()} << (8 * i);
        const unsigned unused = static_cast<unsigned>(64 - 8 * bytes);
        return static_cast<int64_t>(value << unused) >> unused;
    }
    /// The opcode's first byte.
    uint8_t prefixes() {
        for (;;) {
            const uint8_t op = byte();
            if (bad_) return op;
            switch (op) {
            case 0x64: out_.by_fs = true; continue;
            case 0x66: narrow_ = true; continue;
            case 0x26:
            case 0x2e:
            case 0x36:
            case 0x3e:
            case 0x65:
            case 0x67:
            case 0xf0:
            case 0xf2:
            case 0xf3: continue;
            default: break;
            }
            if ((op & 0xf0) != 0x40) return op;
            rex_ = op;
            out_.wide = (op & 8) != 0;
            return byte();
        }
    }
    void operands() {
        const uint8_t modrm = byte(), mod = modrm >> 6;
        out_.reg = (modrm >> 3 & 7) | (rex_ & 4) << 1;
        const int low = modrm & 7;
        if (mod == 3) {
            out_.rm = low | (rex_ & 1) << 3;
            return;
        }
        out_.memory = true;
        bool only_displacement = false;
        if (low == 4) {
            const uint8_t sib = byte();
            const int index = (sib >> 3 & 7) | (rex_ & 2) << 2;
            if (index != X86Instruction::kStackPointer) out_.index = index;
            only_displacement = mod == 0 && (sib & 7) == 5;
            if (!only_displacement) out_.base = (sib & 7) | (rex_ & 1) << 3;
        } else if (mod == 0 && low == 5) {
            out_.by_rip = only_displacement = true;
        } else {
            out_.base = low | (rex_ & 1) << 3;
        }
        if (mod == 1) out_.displacement = number(1);
        if (mod == 2 || only_displacement) out_.displacement = number(4);
    }

    Bytes code_;
    size_t at_ = 0;
    bool bad_ = false, narrow_ = false;
    uint8_t rex_ = 0;
    X86Instruction out_;
};

} // namespace

std::optional<X86Instruction> decode_x86(Bytes code) { return Decoder(code).decode(); }

} // namespace rawbpf::inline v0::labels
