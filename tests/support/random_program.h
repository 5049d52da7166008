// Random programs that a verifier takes: every instruction that computes, loads, stores, branches and calls, on values at the
// edges.
//
//      r6 = the memory        r9 counts a loop        r10 the stack, its last 64 bytes filled
//      r0 to r5, r7, r8: numbers, never addresses; at the end all of them are mixed into r0
//
// The same seed gives the same program, on any machine.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "asm/encode.h"

namespace rawbpf::test {

class RandomProgram {
  public:
    RandomProgram(uint64_t seed, int memory, bool newest)
        : state_(seed * 0x9e3779b97f4a7c15 + 1), memory_(memory), newest_(newest) {}

    std::vector<Insn> make() {
        add("mov_reg", {.dst = 6, .src = 1});
        for (int reg : {0, 1, 2, 3, 4, 5, 7, 8}) constant(reg);
        for (int at = -64; at < 0; at += 8) add("stxdw", {.dst = 10, .src = number(), .off = at});
        const bool calls = below(2);
        std::vector<size_t> to_function;
        const int blocks = 2 + below(6);
        for (int n = 0; n < blocks; ++n) {
            switch (below(calls ? 4 : 3)) {
            case 0: straight(4 + below(12)); break;
            case 1: branch(); break;
            case 2: loop(); break;
            default:
                to_function.push_back(code_.size());
                code_.push_back(encode("call_local", {}).insn);
                for (int reg = 1; reg <= 5; ++reg) constant(reg);
            }
        }
        for (int reg : {1, 2, 3, 4, 5, 7, 8}) {
            add("mul", {.dst = 0, .imm = 31});
            add("xor_reg", {.dst = 0, .src = reg});
        }
        for (int at = -64; at < 0; at += 8) {
            add("ldxdw", {.dst = 1, .src = 10, .off = at});
            add("add_reg", {.dst = 0, .src = 1});
        }
        add("exit", {});
        for (size_t from : to_function) code_[from].imm = static_cast<int32_t>(code_.size() - from - 1);
        if (!to_function.empty()) function();
        return std::move(code_);
    }

  private:
    uint64_t next() { // splitmix64, Steele and others 2014
        uint64_t z = (state_ += 0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }
    int below(int n) { return static_cast<int>(next() % static_cast<uint64_t>(n)); }
    int number() { // a register that holds one
        static constexpr int kNumbers[] = {0, 1, 2, 3, 4, 5, 7, 8};
        return kNumbers[below(8)];
    }
    int64_t value() {
        static constexpr int64_t kEdges[] = {0,          1,         -1,        2,         7,           8,
                                             31,         32,        63,        64,        0x7f,        0x80,
                                             0xff,       0x7fff,    0x8000,    0xffff,    0x7fffffff,  0x80000000,
                                             0xffffffff, INT32_MIN, INT64_MIN, INT64_MAX, -2147483649, 0x100000000};
        return below(2) ? kEdges[below(sizeof kEdges / sizeof *kEdges)] : static_cast<int64_t>(next());
    }
    int32_t small() { return static_cast<int32_t>(value()); }
    void add(std::string_view name, Operands operands) {
        const Encoded encoded = encode(name, operands);
        if (!encoded) std::abort(); // a fault of this generator
        code_.push_back(encoded.insn);
        if (is_wide(encoded.insn)) code_.push_back(encoded.second);
    }
    void constant(int reg) { add("lddw", {.dst = reg, .imm = value()}); }

    void compute() {
        static constexpr std::string_view kOps[] = {"add", "sub", "mul", "div", "or",   "and",  "lsh",
                                                    "rsh", "mod", "xor", "mov", "arsh", "sdiv", "smod"};
        const std::string_view op = kOps[below(sizeof kOps / sizeof *kOps)];
        const bool narrow = below(2), shift = op == "lsh" || op == "rsh" || op == "arsh";
        const std::string name = std::string(op) + (narrow ? "32" : "");
        if (below(2)) return add(name + "_reg", {.dst = number(), .src = number()});
        int32_t imm = shift ? below(narrow ? 32 : 64) : small();
        if (imm == 0 && (op == "div" || op == "mod" || op == "sdiv" || op == "smod")) imm = -1;
        add(name, {.dst = number(), .imm = imm});
    }
    void convert() {
        static constexpr std::string_view kOne[] = {"neg",  "neg32", "le16",    "le32",    "le64",   "be16",
                                                    "be32", "be64",  "bswap16", "bswap32", "bswap64"};
        static constexpr std::string_view kTwo[] = {"movsx8", "movsx16", "movsx32", "movsx8_32", "movsx16_32"};
        if (below(2)) return add(kOne[below(11)], {.dst = number()});
        add(kTwo[below(5)], {.dst = number(), .src = number()});
    }
    /// A place of `size` bytes: on the stack, aligned, or in memory, aligned only where it has to be.
    Operands place(int size, bool aligned) {
        if (below(2)) return {.dst = 10, .off = -64 + below(64 / size) * size};
        if (aligned) return {.dst = 6, .off = below(memory_ / size) * size};
        return {.dst = 6, .off = below(memory_ - size + 1)};
    }
    void access() {
        static constexpr std::string_view kSize[] = {"b", "h", "w", "dw"};
        const int n = below(4);
        Operands where = place(1 << n, false);
        switch (below(4)) {
        case 0:
        case 1: return add(std::string("ldx") + std::string(kSize[n]), {.dst = number(), .src = where.dst, .off = where.off});
        case 2:
            where.imm = n == 0 ? static_cast<int8_t>(small()) : n == 1 ? static_cast<int16_t>(small()) : small();
            return add(std::string("st") + std::string(kSize[n]), where);
        default: where.src = number(); return add(std::string("stx") + std::string(kSize[n]), where);
        }
    }
    void access_signed() {
        const int n = below(3);
        const Operands where = place(1 << n, false);
        static constexpr std::string_view kNames[] = {"ldxsb", "ldxsh", "ldxsw"};
        add(kNames[n], {.dst = number(), .src = where.dst, .off = where.off});
    }
    void atomic() {
        static constexpr std::string_view kOps[] = {
            "atomic_add",      "atomic_or",        "atomic_and",       "atomic_xor", "atomic_fetch_add",
            "atomic_fetch_or", "atomic_fetch_and", "atomic_fetch_xor", "xchg",       "cmpxchg"};
        const bool narrow = below(2);
        if (newest_ && below(6) == 0) {
            const int n = below(4);
            static constexpr std::string_view kWidth[] = {"8", "16", "32", "64"};
            Operands where = place(1 << n, true);
            if (below(2))
                return add("load_acquire" + std::string(kWidth[n]), {.dst = number(), .src = where.dst, .off = where.off});
            where.src = number();
            return add("store_release" + std::string(kWidth[n]), where);
        }
        Operands where = place(narrow ? 4 : 8, true);
        where.src = number();
        const std::string_view op = kOps[below(10)];
        add(std::string(op) + (narrow ? "32" : ""), where);
        // Linux 6.18 forgets to clear the upper half of r0 when a way to here was pruned (runtime/emulator/README.md).
        if (narrow && op == "cmpxchg") add("mov32_reg", {.dst = 0, .src = 0});
    }
    void one() {
        switch (below(8)) {
        case 0: return convert();
        case 1: return access();
        case 2: return access_signed();
        case 3: return atomic();
        case 4: return constant(number());
        default: return compute();
        }
    }
    void straight(int count) {
        for (int n = 0; n < count; ++n) one();
    }
    std::string condition() {
        static constexpr std::string_view kOps[] = {"jeq",  "jgt", "jge", "jset", "jne", "jsgt",
                                                    "jsge", "jlt", "jle", "jslt", "jsle"};
        return std::string(kOps[below(11)]) + (below(2) ? "32" : "");
    }
    void branch() {
        const size_t at = code_.size();
        if (below(2))
            add(condition() + "_reg", {.dst = number(), .src = number()});
        else
            add(condition(), {.dst = number(), .imm = small()});
        straight(1 + below(6));
        const bool otherwise = below(2);
        const size_t end = code_.size();
        if (otherwise) add(newest_ && below(2) ? "ja32" : "ja", {});
        code_[at].off = static_cast<int16_t>(code_.size() - at - 1);
        if (!otherwise) return;
        straight(1 + below(6));
        const auto distance = static_cast<int32_t>(code_.size() - end - 1);
        if (code_[end].code == 0x06)
            code_[end].imm = distance;
        else
            code_[end].off = static_cast<int16_t>(distance);
    }
    void loop() {
        add("mov", {.dst = 9, .imm = 1 + below(6)});
        const size_t top = code_.size();
        straight(1 + below(8));
        add("sub", {.dst = 9, .imm = 1});
        const auto back = static_cast<int64_t>(top) - static_cast<int64_t>(code_.size()) - 1;
        add("jne", {.dst = 9, .off = back});
    }
    /// r0 of r1 to r5, on a frame of its own.
    void function() {
        add("mov_reg", {.dst = 0, .src = 1});
        add("stxdw", {.dst = 10, .src = 2, .off = -8});
        add("mov", {.dst = 6, .imm = 5}); // the caller's must survive
        static constexpr std::string_view kOps[] = {"add_reg", "xor32_reg", "sub_reg", "or_reg", "mul32_reg"};
        for (int n = 0; n < 4 + below(6); ++n) add(kOps[below(5)], {.dst = below(6), .src = 1 + below(5)});
        add("ldxw", {.dst = 3, .src = 10, .off = -8});
        add("add_reg", {.dst = 0, .src = 3});
        add("exit", {});
    }

    uint64_t state_;
    int memory_;
    bool newest_;
    std::vector<Insn> code_;
};

/// `memory` bytes are at r1; `newest`: with load_acquire, store_release (6.15) and gotol (6.6).
inline std::vector<Insn> random_program(uint64_t seed, int memory, bool newest) {
    return RandomProgram(seed, memory, newest).make();
}

} // namespace rawbpf::test
