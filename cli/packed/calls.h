// Calls, told by where they lead instead of by how far away that is: what makes a program's code shorter when it is packed.
//
// A call has the distance to its function, which is another number at each call of it. So the packer writes the function's place
// instead, counted from the program's first byte: then all calls of one function are the same four bytes, and a match of LZMA
// (lzma.h). 7 to 8 % of a packed program. Here is the way back, after unpacking:
//
//      packed      call 0x1a40             call 0x1a40             the place
//      program     call +0x0a30            call -0x0110            the distance: the place less the call's own, modulo what fits
//
// Nobody looks where code begins and ends: what stands like a call in data is counted up by the packer and down here, too. A call
// is found by bits that neither changes, and what follows is looked at behind it, so both find the same ones. Sources: Intel's
// Software Developer's Manual (CALL), Arm's manuals (BL of A64; BL of T32, encoding T1), the RISC-V ISA (JAL).
#pragma once

#include <cstddef>
#include <cstdint>

namespace rawbpf::packed {

/// E8, and 32 bits. (E9, a jump, leads to another function too rarely: with it the file is larger.) Distances count from the
/// instruction's end, which is all the same here.
struct CallsOfX86 {
    static constexpr size_t kStep = 1, kBehind = 1; ///< where an instruction may begin; how many bytes stand before the word
    static bool is_call(uint8_t first, uint32_t) { return first == 0xe8; }
    static uint32_t number(uint32_t word) { return word; }
    static uint32_t with(uint32_t, uint32_t number) { return number; }
};

/// BL, and 26 bits that count instructions.
struct CallsOfArm64 {
    static constexpr size_t kStep = 4, kBehind = 0;
    static bool is_call(uint8_t, uint32_t word) { return word >> 26 == 0x25; }
    static uint32_t number(uint32_t word) { return word << 2; }
    static uint32_t with(uint32_t word, uint32_t number) { return (word & 0xfc000000) | (number >> 2 & 0x3ffffff); }
};

/// JAL with ra, and 20 bits that count pairs of bytes, in the order 20, 10 to 1, 11, 19 to 12.
struct CallsOfRiscv {
    static constexpr size_t kStep = 2, kBehind = 0;
    static bool is_call(uint8_t, uint32_t word) { return (word & 0xfff) == 0x0ef; }
    static uint32_t number(uint32_t word) {
        return (word >> 31) << 20 | (word >> 12 & 0xff) << 12 | (word >> 20 & 1) << 11 | (word >> 21 & 0x3ff) << 1;
    }
    static uint32_t with(uint32_t word, uint32_t number) {
        return (word & 0xfff) | (number >> 20) << 31 | (number >> 1 & 0x3ff) << 21 | (number >> 11 & 1) << 20 |
               (number >> 12 & 0xff) << 12;
    }
};

/// BL of T32: two halfwords, the first one low in the word. 24 bits that count pairs of bytes: S, I1, I2, 10, 11 of them, where
/// the instruction has J1 = not I1 xor S, and J2 likewise.
struct CallsOfThumb {
    static constexpr size_t kStep = 2, kBehind = 0;
    static bool is_call(uint8_t, uint32_t word) { return (word & 0xd000f800) == 0xd000f000; }
    static uint32_t number(uint32_t word) {
        const uint32_t s = word >> 10 & 1, i1 = ~(word >> 29 ^ s) & 1, i2 = ~(word >> 27 ^ s) & 1;
        return (s << 23 | i1 << 22 | i2 << 21 | (word & 0x3ff) << 11 | (word >> 16 & 0x7ff)) << 1;
    }
    static uint32_t with(uint32_t word, uint32_t number) {
        const uint32_t half = number >> 1, s = half >> 23 & 1, j1 = ~(half >> 22 ^ s) & 1, j2 = ~(half >> 21 ^ s) & 1;
        return (word & 0xd000f800) | s << 10 | (half >> 11 & 0x3ff) | j1 << 29 | j2 << 27 | (half & 0x7ff) << 16;
    }
};

/// Back from places to distances, in the bytes of a whole program.
template <class Calls> void distances_from_places(uint8_t *program, size_t bytes) {
    for (size_t at = 0; at + Calls::kBehind + 4 <= bytes;) {
        uint8_t *const field = program + at + Calls::kBehind;
        const uint32_t word = uint32_t{field[0]} | uint32_t{field[1]} << 8 | uint32_t{field[2]} << 16 | uint32_t{field[3]} << 24;
        if (!Calls::is_call(program[at], word)) {
            at += Calls::kStep;
            continue;
        }
        const uint32_t changed = Calls::with(word, Calls::number(word) - static_cast<uint32_t>(at));
        for (int i = 0; i < 4; ++i) field[i] = static_cast<uint8_t>(changed >> 8 * i);
        at += Calls::kBehind + 4;
    }
}

} // namespace rawbpf::packed
