// SPDX-License-Identifier: MIT
// Programs that the C++ compiler finishes: arrays of instructions in .rodata, whose mistakes don't compile.
//
//      constexpr auto kProgram = constant_program([](ConstantCode &f) {
//          f.load<uint32_t>(r0, r1 + 0);                   // struct __sk_buff: the packet's length
//          f.if_(r0 > 1500, [&] { f.mov(r0, 0); });
//          f.exit();
//      });
//      static_assert(kProgram[0] == Insn{.code = 0x61, .dst = 0, .src = 1, .off = 0, .imm = 0});
//      Unit unit = constant_unit("short", "socket", kProgram); // and the loader's road from there
//
// The methods are those of Code, without what only the loader knows: no maps, no fields, no other functions. The body is a
// lambda without captures. It runs twice; the first time counts the instructions.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "asm/encode.h"
#include "asm/helpers.h"
#include "asm/instructions.h"
#include "asm/unit.h"

namespace rawbpf::inline v0 {

namespace misuse {
/// Defined nowhere, as number_out_of_range: a constant program that calls it doesn't compile, and the error shows `why`.
void program_is_wrong(const char *why);
} // namespace misuse

/// A T on the stack of a constant program. An access beyond its end doesn't compile.
template <class T> struct ConstantSlot {
    static constexpr size_t kBytes = sizeof(T); ///< what MemOf checks against
    int32_t off;                                ///< of its first byte, from r10: -512 to -1
    /// The slot's beginning.
    [[nodiscard]] constexpr operator Mem() const { return *this + 0; } // NOLINT: implicit
    /// The place so many bytes behind its beginning.
    [[nodiscard]] constexpr Mem operator+(Distance distance) const {
        Mem mem(fp);
        mem.off = off + distance.bytes;
        mem.low = off;
        mem.limit = off + static_cast<int64_t>(sizeof(T));
        return mem;
    }
};

/// A constant program under construction. Everything here happens in the compiler.
class ConstantCode : public Instructions<ConstantCode> {
  public:
    /// What a constant program has room for: instruction slots, labels (an if_ takes one or two, a loop two), jumps.
    ///@{
    static constexpr size_t kMostInsns = 1024, kMostLabels = 128, kMostJumps = 256;
    ///@}

    /// A place to jump to, of the ConstantCode that made it.
    class Label {
        friend class ConstantCode;
        constexpr explicit Label(size_t number) : number_(number) {}
        size_t number_;
    };
    /// As of Code: what if_ returns is for .else_ at once.
    class Else {
      public:
        Else(const Else &) = delete;
        Else &operator=(const Else &) = delete;
        constexpr ~Else() { code_.place(end_, true); }
        /// Writes `body` as the other branch. Call it at once.
        template <class Body> constexpr void else_(Body &&body) && {
            const Label end = code_.label();
            if (code_.reachable_) code_.jump(end);
            code_.place(end_, true);
            end_ = end;
            body();
        }

      private:
        friend class ConstantCode;
        constexpr Else(ConstantCode &code, Label end) : code_(code), end_(end) {}
        ConstantCode &code_;
        Label end_;
    };

    // As the methods of Code with these names, but what Code complains of doesn't compile.

    /// A place to jump to, not bound yet.
    [[nodiscard]] constexpr Label label() {
        if (label_count_ == kMostLabels) misuse::program_is_wrong("a constant program has at most 128 labels");
        return Label(label_count_++);
    }
    /// The label is here, at the next instruction; a second time doesn't compile.
    constexpr void bind(Label label) {
        if (labels_[label.number_].at >= 0) misuse::program_is_wrong("a label is bound a second time");
        place(label, false);
    }
    /// Jumps always.
    constexpr void jump(Label to) {
        jump_form(*find_form("ja"), {}, to);
        reachable_ = false;
    }
    /// Jumps if the condition holds. One instruction; two for the opposite of `&`.
    constexpr void jump_if(Condition condition, Label to) {
        Operands operands = operands_of(condition.left, condition.right);
        const Form &form = form_of(condition);
        if (!condition.inverted) return jump_form(form, operands, to);
        operands.off = 1;
        append(form, operands, Where());
        jump_form(*find_form("ja"), {}, to);
    }
    /// Ends the program, whose result is r0. Whether r0 is set isn't checked.
    constexpr void exit() {
        append(*find_form("exit"), {}, Where());
        reachable_ = false;
    }
    /// r0 = value, exit: two instructions.
    constexpr void ret(Value64 value) {
        mov(r0, value);
        exit();
    }

    /// Writes `body` to run if the condition holds: f.if_(r0 > 1500, [&] { ... }).else_([&] { ... });
    template <class Body> constexpr Else if_(Condition condition, Body &&body) {
        const Label end = label();
        jump_if(!condition, end);
        body();
        return Else(*this, end);
    }
    /// Runs `body` as long as the condition, tested before each round, holds. The verifier must see that it ends (5.3).
    template <class Body> constexpr void while_(Condition condition, Body &&body) {
        const Label top = label(), end = label();
        bind(top);
        jump_if(!condition, end);
        body();
        if (reachable_) jump(top);
        place(end, true);
    }
    /// Runs `body` with counter = 0, 1 .. rounds - 1. The verifier goes through every round (5.3).
    template <class Body> constexpr void loop(WritableReg counter, Value64 rounds, Body &&body) {
        mov(counter, 0);
        while_(counter < rounds, [&] {
            body();
            if (reachable_) add(counter, 1);
        });
    }

    /// A T on the stack, whose content is not set. More than 512 bytes in all don't compile.
    template <class T> [[nodiscard]] constexpr ConstantSlot<T> stack() {
        constexpr uint32_t kAlign = alignof(T) > 8 ? 8 : alignof(T);
        stack_ = (stack_ + static_cast<uint32_t>(sizeof(T)) + kAlign - 1) / kAlign * kAlign;
        if (stack_ > 512) misuse::program_is_wrong("the stack has 512 bytes");
        return {-static_cast<int32_t>(stack_)};
    }
    /// dst = base; dst += distance. Up to two instructions: the first is left out when dst is the base, the second when the
    /// distance is zero.
    constexpr void address(WritableReg dst, Mem mem) {
        if (mem.base != dst.number()) mov(dst, Reg(mem.base));
        if (mem.off != 0) add(dst, runtime(mem.off));
    }

    /// Calls a helper whose arguments are in r1 to r5; the number says how many, for the check:
    /// f.call<2>(helper::map_lookup_elem). Whether the registers are set isn't checked.
    template <int arguments, Helper H> constexpr void call(H) {
        H::template check<arguments>();
        Operands operands;
        operands.imm = H::id;
        append(*find_form("call"), operands, Where());
    }

    /// Instruction slots so far; a wide instruction is two.
    [[nodiscard]] constexpr size_t size() const { return size_; }
    /// Slot `i`, below size(). Jumps have their distances after finish().
    [[nodiscard]] constexpr const Insn &operator[](size_t i) const { return insns_[i]; }

    /// Fills the jumps in, and checks what only the end shows: no instructions, a way past the end, an unbound label.
    constexpr void finish() {
        if (size_ == 0) misuse::program_is_wrong("the program has no instructions");
        if (reachable_) misuse::program_is_wrong("the program runs past its end: it must end with exit or ret");
        for (size_t i = 0; i < jump_count_; ++i) {
            const int64_t at = labels_[jumps_[i].label].at;
            if (at < 0) misuse::program_is_wrong("a jump goes to a label that is never bound");
            insns_[jumps_[i].insn].off = static_cast<int16_t>(at - static_cast<int64_t>(jumps_[i].insn) - 1);
        }
    }

  private:
    friend class Instructions<ConstantCode>;
    struct Jump {
        size_t insn = 0, label = 0;
    };
    struct LabelState {
        int64_t at = -1; ///< instruction; -1: not bound yet
        bool used = false;
    };

    /// As of Code: to a label of the caller's, jumps from further down may come; to the end of a block they don't.
    constexpr void place(Label label, bool only_forward) {
        LabelState &state = labels_[label.number_];
        state.at = static_cast<int64_t>(size_);
        reachable_ = reachable_ || state.used || !only_forward;
    }

    constexpr void complain(Where, const char *why) {
        if (size_ <= kMostInsns) misuse::program_is_wrong(why); // always; a constexpr function that can't be one is an error
    }
    constexpr void push(const Insn &insn) {
        if (size_ == kMostInsns) misuse::program_is_wrong("a constant program has at most 1024 instructions");
        insns_[size_++] = insn;
    }
    constexpr void append(const Form &form, const Operands &operands, Where) {
        if (!reachable_) misuse::program_is_wrong("nothing leads here: the code before ends in an exit or a jump");
        const Encoded encoded = encode(form, operands);
        if (!encoded) refuse(encoded.problem);
        push(encoded.insn);
        if (form.shape == Shape::load_wide) push(encoded.second);
    }
    static constexpr void refuse(Problem problem) {
        switch (problem) {
        case Problem::offset_range: return misuse::number_out_of_range("an offset may be -32768 to 32767");
        case Problem::shift_range: return misuse::number_out_of_range("a shift by the register's width or more");
        case Problem::zero_divisor: return misuse::number_out_of_range("a division by zero, which the verifier refuses");
        default: return misuse::number_out_of_range("a number doesn't fit in the instruction");
        }
    }
    constexpr void operate(std::string_view symbol, int bits, int dst, Source source, Where where) {
        append(*find_form(source.is_register ? Shape::alu_reg : Shape::alu_imm, symbol, bits), operands_of(dst, source), where);
    }
    constexpr void check(const Mem &mem, int64_t size) const {
        if (mem.off < mem.low || (mem.limit != INT64_MAX && mem.off + size > mem.limit))
            misuse::program_is_wrong("this reaches beyond the stack slot");
    }
    constexpr void load_form(Shape shape, std::string_view symbol, int bits, int dst, const Mem &from, Where where) {
        check(from, bits / 8);
        append(*find_form(shape, symbol, bits), operands_of_load(dst, from), where);
    }
    constexpr void memory(Shape shape, std::string_view symbol, int bits, const Mem &to, int src, Where where) {
        check(to, bits / 8);
        append(*find_form(shape, symbol, bits), operands_of_store(to, src), where);
    }
    constexpr void store_number(int bits, const Mem &to, int64_t number, Where where) {
        check(to, bits / 8);
        append(*find_form(Shape::store_imm, unsigned_type(bits), bits), operands_of_store(to, 0, number), where);
    }
    constexpr void jump_form(const Form &form, Operands operands, Label to) {
        if (jump_count_ == kMostJumps) misuse::program_is_wrong("a constant program has at most 256 jumps");
        jumps_[jump_count_].insn = size_;
        jumps_[jump_count_++].label = to.number_;
        labels_[to.number_].used = true;
        append(form, operands, Where());
    }

    std::array<Insn, kMostInsns> insns_{};
    std::array<LabelState, kMostLabels> labels_{};
    std::array<Jump, kMostJumps> jumps_{};
    size_t size_ = 0, label_count_ = 0, jump_count_ = 0;
    uint32_t stack_ = 0;
    bool reachable_ = true;
};

/// The instructions that `body`, a lambda without captures, writes into a ConstantCode: a std::array of Insn. A wide instruction
/// is two of them. Mistakes don't compile.
template <class Body> [[nodiscard]] consteval auto constant_program(Body) {
    constexpr size_t kSize = [] {
        ConstantCode code;
        Body{}(code);
        code.finish();
        return code.size();
    }();
    ConstantCode code;
    Body{}(code);
    code.finish();
    std::array<Insn, kSize> insns{};
    for (size_t i = 0; i < kSize; ++i) insns[i] = code[i];
    return insns;
}

/// A unit of one program, to print, to load (object_of()), to write (write_object()). `name` is the unit's and the program's,
/// `section` says what it attaches to ("socket").
[[nodiscard]] inline Unit constant_unit(std::string_view name, std::string_view section, std::span<const Insn> insns,
                                        std::string_view license = "Dual MIT/GPL") {
    Unit unit;
    unit.name = name;
    unit.license = license;
    unit.functions.resize(1);
    unit.functions[0].name = name;
    unit.functions[0].section = section;
    unit.functions[0].insns.assign(insns.begin(), insns.end());
    return unit;
}

} // namespace rawbpf::inline v0
