// SPDX-License-Identifier: MIT
// One function of a BPF program, under construction: the instructions that refer to something (labels, maps, functions, fields),
// blocks, calls, and the patterns that programs are made of. builder.h shows a whole program.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "asm/encode.h"
#include "asm/handles.h"
#include "asm/helpers.h"
#include "asm/instructions.h"
#include "asm/unit.h"
#include "asm/where.h"

namespace rawbpf::inline v0 {

/// One function under construction: a program, or one that programs call. Made by Builder, which owns it.
class Code : public Instructions<Code> {
  public:
    Code(const Code &) = delete;
    Code &operator=(const Code &) = delete;

    /// What comes after an if: nothing, or .else_([&] { ... }).
    class Else {
      public:
        Else(const Else &) = delete;
        Else &operator=(const Else &) = delete;
        ~Else() {
            code_.else_pending_ = false;
            code_.end_if(end_);
        }
        /// Writes `body` as the other branch. Call it at once, on what if_, lookup or reserve returned: an Else that is kept
        /// while instructions are written is a complaint.
        template <class Body> void else_(Body &&body, Where where = Where::current()) && {
            code_.else_pending_ = false;
            end_ = code_.begin_else(end_, where);
            body();
        }

      private:
        friend class Code;
        Else(Code &code, uint32_t end) : code_(code), end_(end) { code_.else_pending_ = true; }
        Code &code_;
        uint32_t end_;
    };

    // Single instructions (mov, add, load, store ...) come from Instructions.

    // --- Pointers into registers

    /// dst = a map, as the helpers want it; two slots.
    void load_map(WritableReg dst, MapRef map, Where where = Where::current());
    /// dst = the address of a global variable (5.2); two slots. A complaint beyond the variable's end.
    void load_global(WritableReg dst, GlobalRef global, Where where = Where::current());
    /// dst = the address of a function, for helpers that call back (5.13); two slots.
    void load_function(WritableReg dst, const Code &function, Where where = Where::current());
    /// dst = the address of a kernel variable, by its name in the kernel's BTF (5.10); two slots.
    void load_ksym(WritableReg dst, std::string name, Where where = Where::current());
    /// The address of a place in memory: dst = base; dst += distance. Up to two instructions: the first is left out when dst is
    /// the base, the second when the distance is zero.
    void address(WritableReg dst, Mem mem, Where where = Where::current());

    /// dst = a field, read directly, of a kernel structure that `base` points at. The field has its BTF name
    /// ("task_struct.tgid"); the loader fills in the offset that the running kernel has (CO-RE). T is uint8_t to uint64_t and has
    /// the field's width.
    template <class T> void load_field(WritableReg dst, Reg base, std::string field, Where where = Where::current()) {
        static_assert(std::is_unsigned_v<T>, "load_field<uint8_t .. uint64_t>");
        load_field_size(sizeof(T) * 8, dst, base, std::move(field), where);
    }
    /// dst += the field's byte offset in the running kernel (CO-RE).
    void add_field(WritableReg dst, std::string field, Where where = Where::current());

    // --- The stack: 512 bytes

    /// Bytes of the function's stack frame, whose content is not set: `size` of them, 1 to 512, aligned to `align` (1, 2, 4 or
    /// 8), or a T. A slot is never given back; more than 512 bytes are a complaint. The name is for comments and complaints.
    ///@{
    [[nodiscard]] Slot stack(uint32_t size, uint32_t align, std::string name = {}, Where where = Where::current());
    template <class T> [[nodiscard]] SlotOf<T> stack(std::string name = {}, Where where = Where::current()) {
        static_assert(sizeof(T) <= 512, "the stack has 512 bytes; larger things live in a per-CPU array");
        return SlotOf<T>(stack(sizeof(T), alignof(T) > 8 ? 8 : alignof(T), std::move(name), where));
    }
    ///@}
    /// Fills a slot with zeroes: one store for each eight bytes, and narrower ones for the rest.
    void zero(Slot slot, Where where = Where::current());

    // --- Jumps

    /// A place to jump to, not bound yet. The name is for complaints. A label that is jumped to must be bound once, or finish()
    /// complains; one that isn't used need not be.
    [[nodiscard]] Label label(std::string name = {}, Where where = Where::current());
    /// The label is here, at the next instruction. A complaint: a second time, or a label of another function.
    void bind(Label label, Where where = Where::current());
    /// Jumps always; -32768 to 32767 instructions far, which finish() checks. What follows needs a label to be reachable.
    void jump(Label to, Where where = Where::current());
    /// Jumps always, with 32 bits of reach (6.6).
    void jump_long(Label to, Where where = Where::current());
    /// Jumps if the condition holds. One instruction; two for the opposite of `&`, !(r1 & 4), which the machine doesn't have.
    void jump_if(Condition condition, Label to, Where where = Where::current());
    /// Jumps when the program has looped for too long, else goes on (6.9).
    void may_goto(Label to, Where where = Where::current());
    /// Returns r0 from the function. A complaint: r0 is not set (programs and global functions), a ring buffer record is held.
    void exit(Where where = Where::current());
    /// r0 = value, exit: two instructions.
    void ret(Value64 value, Where where = Where::current());

    /// Writes `body` to run if the condition holds: f.if_(r0 != 0, [&] { ... }).else_([&] { ... });
    template <class Body> Else if_(Condition condition, Body &&body, Where where = Where::current()) {
        uint32_t end = begin_if(condition, where);
        body();
        return Else(*this, end);
    }
    // --- Loops; break_ and continue_ leave the innermost one, or go to its next round

    /// Runs `body` as long as the condition, tested before each round, holds. The verifier must see that it ends (5.3).
    template <class Body> void while_(Condition condition, Body &&body, Where where = Where::current()) {
        begin_while(condition, where);
        body();
        end_while(where);
    }
    /// Runs `body` with counter = 0, 1 .. rounds - 1. The verifier goes through every round (5.3), so a few thousand of them at
    /// most. Where the body calls something, the counter must be one of r6 to r9.
    template <class Body> void loop(WritableReg counter, Value64 rounds, Body &&body, Where where = Where::current()) {
        begin_count(counter, rounds, where);
        body();
        end_count(counter, where);
    }
    /// Runs `body` until break_. The kernel ends it after 8 million rounds or a quarter of a second; the verifier needs no proof
    /// (6.9).
    template <class Body> void may_loop(Body &&body, Where where = Where::current()) {
        begin_may(where);
        body();
        end_while(where);
    }
    /// A loop by the helper bpf_loop (5.17). body(g) writes a function of its own, g, which the verifier sees once. It is called
    /// for each round, with the round's number in r1 and `context` in r2: the address of what it shares with this function, or
    /// nullptr. Afterwards r0 is the number of rounds, or -errno (more than 8 million are E2BIG), and r1 to r5 are gone.
    template <class Body> void bpf_loop(Arg rounds, Arg context, Body &&body, Where where = Where::current()) {
        Code &round = begin_round(where);
        body(round);
        end_round(round, rounds, context, where);
    }
    /// Jumps behind the innermost loop (break_), or to its next round (continue_). Without a loop around it: a complaint.
    ///@{
    void break_(Where where = Where::current());
    void continue_(Where where = Where::current());
    ///@}

    // --- Calls

    // After any call r0 is the result and r1 to r5 are gone; r6 to r9 keep their values.

    /// Calls a helper whose arguments are already in r1 to r5 (checked: each of them must have been set).
    template <Helper H> void call(H, Where where = Where::current()) { call_helper(H::id, nullptr, 0, where); }
    /// Calls a helper with its arguments: they are moved to r1 to r5, in an order that loses none of them. The number of
    /// arguments is checked by the compiler (with six it is always wrong). Several instructions.
    ///@{
    template <Helper H> void call(H, Arg a, Where where = Where::current()) {
        H::template check<1>();
        Arg args[] = {a};
        call_helper(H::id, args, 1, where);
    }
    template <Helper H> void call(H, Arg a, Arg b, Where where = Where::current()) {
        H::template check<2>();
        Arg args[] = {a, b};
        call_helper(H::id, args, 2, where);
    }
    template <Helper H> void call(H, Arg a, Arg b, Arg c, Where where = Where::current()) {
        H::template check<3>();
        Arg args[] = {a, b, c};
        call_helper(H::id, args, 3, where);
    }
    template <Helper H> void call(H, Arg a, Arg b, Arg c, Arg d, Where where = Where::current()) {
        H::template check<4>();
        Arg args[] = {a, b, c, d};
        call_helper(H::id, args, 4, where);
    }
    template <Helper H> void call(H, Arg a, Arg b, Arg c, Arg d, Arg e, Where where = Where::current()) {
        H::template check<5>();
        Arg args[] = {a, b, c, d, e};
        call_helper(H::id, args, 5, where);
    }
    template <Helper H> void call(H, Arg, Arg, Arg, Arg, Arg, Arg, Where = Where::current()) { H::template check<6>(); }
    ///@}
    /// Calls a function of this unit (4.16), with as many arguments as it was declared with.
    void call(const Code &function, std::initializer_list<Arg> arguments = {}, Where where = Where::current());
    /// Calls a kernel function, a kfunc, by name (5.13), with five arguments at most.
    void call_kfunc(const std::string &name, std::initializer_list<Arg> arguments, Where where = Where::current());

    // --- Patterns

    /// r0 = the address of the map's value for the key; `found` runs when there is one, .else_ when there is none. `key` is the
    /// key's address, as bpf_map_lookup_elem takes it. r1 to r5 are gone.
    template <class Body> Else lookup(MapRef map, Arg key, Body &&found, Where where = Where::current()) {
        call(helper::map_lookup_elem, map, key, where);
        return if_(r0 != 0, std::forward<Body>(found), where);
    }
    /// A record in a ring buffer (5.8): reserves `size` bytes (1 to 2^30), points `record` (r6 to r9) at them, runs `fill`,
    /// submits. Where the ring is full, .else_ runs. The record can't leak: the ways out of `fill` are its end, which submits,
    /// and discard(); leaving it by exit or by a jump is a complaint. r0 to r5 are gone.
    template <class Body>
    Else reserve(WritableReg record, MapRef ring, int64_t size, Body &&fill, Where where = Where::current()) {
        if (size <= 0 || size > (int64_t{1} << 30)) complain(where, "a record of " + std::to_string(size) + " bytes");
        return reserve_argument(record, ring, size, fill, where);
    }
    /// The same with the size in a register, for a size that depends on the way that led here. On each way the verifier must know
    /// which number it is.
    template <class Body> Else reserve(WritableReg record, MapRef ring, Reg size, Body &&fill, Where where = Where::current()) {
        return reserve_argument(record, ring, size, fill, where);
    }
    /// Gives the record of the innermost reserve() back, without showing it to the reader, and goes to the end of its block.
    /// Elsewhere: a complaint. r0 to r5 are gone.
    void discard(Where where = Where::current());

    /// dst = argument `number` (1 is the first) of the traced function, found as the program's section says. kprobes and uprobes:
    /// from the registers at the function's entry (x86_64 has six there, arm64 and riscv64 eight, 32-bit ARM four). fentry,
    /// fexit, fmod_ret, lsm, tp_btf and raw_tp: from the context, up to 12. Other sections are a complaint. `context` holds what
    /// r1 was at the program's entry.
    void argument(WritableReg dst, Reg context, int number, Where where = Where::current());
    /// dst = what the traced function returned: in kretprobes and uretprobes one load; in fexit and fmod_ret a call of
    /// bpf_get_func_ret (5.17), after which r0 to r5 are gone. Other sections are a complaint.
    void return_value(WritableReg dst, Reg context, Where where = Where::current());
    /// dst = the traced function's stack pointer, before its first instruction (kprobes, uprobes) or after its last (kretprobes,
    /// uretprobes). Other sections are a complaint.
    void stack_pointer(WritableReg dst, Reg context, Where where = Where::current());
    /// dst = argument `number` (1 to 6) of a system call. The sections: tp/syscalls/sys_enter_*, where it is one load; and
    /// raw_tp/sys_enter, ksyscall, and kprobes on __x64_sys_* or __arm64_sys_* (4.17, 4.19), where the caller's registers are
    /// behind a pointer, so that it takes a read_kernel (5.5) and r0 to r5 are gone.
    void syscall_argument(WritableReg dst, Reg context, int number, Where where = Where::current());

    /// dst = *(T *)from, of kernel memory, by bpf_probe_read_kernel (5.5); 0 where that can't be read. T is uint8_t to uint64_t.
    /// r0 = 0 or -errno (unless dst is r0), r1 to r5 are gone. The function's read_* share 8 bytes of its stack.
    template <class T> void read_kernel(WritableReg dst, Mem from, Where where = Where::current()) {
        static_assert(std::is_unsigned_v<T>, "read_kernel<uint8_t .. uint64_t>");
        probe_read(helper::probe_read_kernel.id, sizeof(T) * 8, dst, from, where);
    }
    /// The same of the current process's memory, by bpf_probe_read_user (5.5).
    template <class T> void read_user(WritableReg dst, Mem from, Where where = Where::current()) {
        static_assert(std::is_unsigned_v<T>, "read_user<uint8_t .. uint64_t>");
        probe_read(helper::probe_read_user.id, sizeof(T) * 8, dst, from, where);
    }
    /// dst = a member of a kernel structure that `base` points at, by its BTF names, wherever the running kernel has it (CO-RE).
    /// Each -> follows a pointer: read_field<uint32_t>(r1, r6, "task_struct.real_parent->tgid"). One read_kernel for each step:
    /// the same registers are gone. T, uint8_t to uint64_t, has the last member's width.
    template <class T> void read_field(WritableReg dst, Reg base, std::string_view path, Where where = Where::current()) {
        static_assert(std::is_unsigned_v<T>, "read_field<uint8_t .. uint64_t>");
        read_field_size(sizeof(T) * 8, dst, base, path, where);
    }
    /// Copies a text, with its zero, from the address in `from` into `size` bytes (5.5); a longer text is cut, and ends in a
    /// zero, too. r0 = the length with the zero, at most `size`, or -errno; r1 to r5 are gone. User: of the current process's
    /// memory. Kernel: of kernel memory.
    ///@{
    void read_user_string(Mem to, uint32_t size, Reg from, Where where = Where::current());
    void read_user_string(Slot to, Reg from, Where where = Where::current()) { read_user_string(to, to.size(), from, where); }
    void read_kernel_string(Mem to, uint32_t size, Reg from, Where where = Where::current());
    void read_kernel_string(Slot to, Reg from, Where where = Where::current()) { read_kernel_string(to, to.size(), from, where); }
    ///@}
    /// bpf_trace_printk (4.1, GPL only) with up to three values. The format is on the stack, in a slot that later prints of the
    /// function share if theirs are not longer. r0 to r5 are gone.
    void print(std::string_view format, std::initializer_list<Arg> values = {}, Where where = Where::current());

    // --- Anything else

    /// An instruction by its name in opcodes.h: f.emit("movsx8", {.dst = 1, .src = 2}). Jumps take distances, not labels. An
    /// unknown name, or an operand that encode() refuses, is a complaint.
    void emit(std::string_view name, const Operands &operands, Where where = Where::current());
    /// A comment on the next instruction, for the printed program (Function::notes). Several are joined by "; ".
    void note(std::string_view text);
    /// False after exit or a jump, until a label is bound.
    [[nodiscard]] bool reachable() const { return reachable_; }
    /// As it was given to Builder; valid until Builder::finish().
    [[nodiscard]] const std::string &name() const { return function_.name; }
    /// Instruction slots so far; a wide instruction is two.
    [[nodiscard]] size_t size() const { return function_.insns.size(); }

  private:
    friend class Builder;
    friend class Instructions<Code>;
    struct LabelState {
        std::string name;
        Where made;
        int64_t at = -1;          ///< instruction, or unbound
        uint16_t live = 0;        ///< registers that may be set on a jump to it
        bool reached = false;     ///< some jump that can be reached goes there
        uint32_t reservation = 0; ///< the record held where it is bound
        bool used = false;
        Where used_where;
    };
    struct Jump {
        uint32_t insn;
        uint32_t label;
        uint32_t reservation;
        Where where;
    };
    struct Lost { ///< why r1 to r5 are not set
        std::string by;
        uint32_t line = 0;
    };

    Code(Builder &builder, std::string section, std::string name, int arguments, Where where);
    void complain(Where where, std::string message);
    void append(const Form &form, const Operands &operands, Where where);
    void push(Insn insn, Where where);
    void use(int reg, Where where, std::string_view what);
    static constexpr uint16_t bit(int reg) { return static_cast<uint16_t>(1u << reg); }
    void set(int reg) { live_ = static_cast<uint16_t>(live_ | bit(reg)); }
    void operate(std::string_view symbol, int bits, int dst, Source source, Where where);
    bool within(const Mem &mem, int64_t size, Where where);
    void load_form(Shape shape, std::string_view symbol, int bits, int dst, const Mem &from, Where where);
    void memory(Shape shape, std::string_view symbol, int bits, const Mem &to, int src, Where where);
    void store_number(int bits, const Mem &to, int64_t number, Where where);
    void load_field_size(int bits, WritableReg dst, Reg base, std::string field, Where where);
    void wide(int dst, Wide kind, Where where);
    void refer(RefKind kind, std::string symbol, int64_t addend = 0);
    bool check_label(Label label, Where where);
    void jump_form(const Form &form, Operands operands, uint32_t label, Where where);
    void end_path() { reachable_ = false; }
    void place(uint32_t label, bool only_forward);
    void call_helper(uint16_t id, const Arg *args, int count, Where where);
    void after_call(std::string_view what, bool returns, Where where);
    void set_arguments(const Arg *args, int count, Where where);
    void set_argument(int to, const Arg &arg, int base, Where where);
    uint32_t begin_if(Condition condition, Where where);
    uint32_t begin_else(uint32_t end, Where where);
    void end_if(uint32_t end) { place(end, true); }
    void begin_while(const Condition &condition, Where where);
    void end_while(Where where);
    void begin_may(Where where);
    void begin_count(WritableReg counter, Value64 rounds, Where where);
    void end_count(WritableReg counter, Where where);
    Code &begin_round(Where where);
    void end_round(Code &round, const Arg &rounds, const Arg &context, Where where);
    Mem scratch(Where where);
    void load_word(WritableReg dst, Mem from, Where where);
    void probe_read(uint16_t helper, int bits, WritableReg dst, Mem from, Where where);
    void read_field_size(int bits, WritableReg dst, Reg base, std::string_view path, Where where);
    void read_string(uint16_t helper, Mem to, uint32_t size, Reg from, Where where);
    template <class Body> Else reserve_argument(WritableReg record, MapRef ring, Arg size, Body &fill, Where where) {
        uint32_t end = begin_reserve(record, ring, size, where);
        fill();
        end_reserve(record, where);
        return Else(*this, end);
    }
    uint32_t begin_reserve(WritableReg record, MapRef ring, Arg size, Where where);
    void end_reserve(WritableReg record, Where where);
    void finish();

    Builder &builder_;
    Function function_;
    Where made_;
    int arguments_;
    bool reachable_ = true;
    bool unreachable_told_ = false;
    bool else_pending_ = false; ///< a block has ended and its Else is still there: nothing may be emitted
    uint16_t live_;
    uint32_t stack_used_ = 0;
    bool stack_told_ = false;
    uint32_t reservation_ = 0, reservations_ = 0; ///< the record held here, and how many there have been
    struct Held { ///< a record: what is held outside, whose register points at it, where discard() goes
        uint32_t outer;
        uint8_t record;
        uint32_t end;
    };
    std::vector<Held> held_;
    struct Loop {
        uint32_t top, next, end; ///< labels: the question, where continue_ goes, where break_ goes
    };
    std::vector<Loop> loops_;
    uint32_t rounds_made_ = 0; ///< functions for bpf_loop
    int32_t scratch_ = 0;      ///< where probe_read puts a number
    Lost lost_[6];
    std::vector<LabelState> labels_;
    std::vector<Jump> jumps_;
    struct Named {
        int32_t off;
        uint32_t size;
        std::string name;
    };
    std::vector<Named> slots_;
    int32_t print_slot_ = 0;
    uint32_t print_size_ = 0;
    std::string note_;
};

} // namespace rawbpf::inline v0

/// The place of a structure's member; `base` is a register that points at the structure, or its slot:
/// f.store<uint32_t>(RAWBPF_AT(r6, Event, pid), r0).
#define RAWBPF_AT(base, type, member) ((base) + static_cast<int64_t>(__builtin_offsetof(type, member)))
