// BPF programs written in C++.
//
//     using namespace rawbpf;
//     Builder b("hello");
//     auto counts = b.hash<uint32_t, uint64_t>("counts", 1024);
//
//     Code &f = b.program("perf_event", "on_tick");
//     auto pid = f.stack<uint32_t>("pid");
//     f.call(helper::get_current_pid_tgid);
//     f.rsh(r0, 32);
//     f.store<uint32_t>(pid, r0);
//     f.lookup(counts, pid, [&] {                   // r0 points at the value, and isn't null, in here
//         f.mov(r1, 1);
//         f.atomic_add<uint64_t>(r0, r1);
//     });
//     f.ret(0);
//
//     Built built = b.finish();                     // a Unit, or everything that is wrong with it
//     if (!built) puts(built.report().c_str());
//
// Each method emits one instruction unless it says otherwise. What C++ can know is checked when it compiles (writing r10, mixing
// r and w registers, a helper's number of arguments); the rest when the program is put together: numbers out of range, labels
// unbound or out of reach, the stack used up, registers that are read without having been set or after a call has taken them,
// code that is never reached, ring buffer records that leak. A complaint carries the file and line of the C++ statement, and so
// does every instruction: that is its line info, which the verifier shows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "asm/encode.h"
#include "asm/helpers.h"
#include "asm/registers.h"
#include "asm/unit.h"
#include "asm/where.h"

namespace rawbpf::inline v0 {

class Builder;
class Code;

/// A map of the unit under construction.
class MapRef {
  private:
    friend class Builder;
    friend class Code;
    friend class Arg;
    MapRef(const Builder *owner, uint32_t index) : owner_(owner), index_(index) {}
    const Builder *owner_;
    uint32_t index_;
};

/// A global variable: the value of a one-entry array map.
class GlobalRef {
  public:
    /// The place `distance` bytes into it.
    [[nodiscard]] GlobalRef operator+(uint32_t distance) const {
        GlobalRef moved = *this;
        moved.off_ += distance;
        return moved;
    }

  private:
    friend class Builder;
    friend class Code;
    friend class Arg;
    GlobalRef(const Builder *owner, uint32_t index) : owner_(owner), index_(index) {}
    const Builder *owner_;
    uint32_t index_;
    uint32_t off_ = 0;
};

/// A place in the code to jump to; belongs to the Code that made it.
class Label {
  private:
    friend class Code;
    Label(const Code *owner, uint32_t index) : owner_(owner), index_(index) {}
    const Code *owner_;
    uint32_t index_;
};

/// Bytes on the program's stack. Goes wherever a Mem goes; accesses beyond its end are complaints.
class Slot {
  public:
    operator Mem() const { return at(0); } // NOLINT: implicit
    [[nodiscard]] Mem operator+(int64_t distance) const { return at(distance); }
    [[nodiscard]] uint32_t size() const { return size_; }

  private:
    friend class Code;
    Slot(const Code *owner, int32_t off, uint32_t size) : owner_(owner), off_(off), size_(size) {}
    [[nodiscard]] Mem at(int64_t distance) const {
        Mem mem(fp, off_ + distance);
        mem.low = off_;
        mem.limit = off_ + static_cast<int64_t>(size_);
        mem.owner = owner_;
        return mem;
    }
    const Code *owner_;
    int32_t off_;
    uint32_t size_;
};

/// One argument of a call: a register, a number of up to 64 bits, a pointer (stack slot, register + distance, global), a map, a
/// function.
class Arg {
  public:
    Arg(Reg reg) : kind_(Kind::reg), mem_(reg) {} // NOLINT: implicit, all of these
    template <Number T> Arg(T number) : kind_(Kind::number), number_(static_cast<int64_t>(number)) {} // NOLINT
    Arg(std::nullptr_t) : kind_(Kind::number) {}                                                      // NOLINT
    Arg(Mem mem) : kind_(Kind::address), mem_(mem) {}                                                 // NOLINT
    Arg(Slot slot) : Arg(static_cast<Mem>(slot)) {}                                                   // NOLINT
    Arg(MapRef map) : kind_(Kind::map), index_(map.index_), owner_(map.owner_) {}                     // NOLINT
    Arg(GlobalRef global)                                                                             // NOLINT
        : kind_(Kind::global), index_(global.index_), owner_(global.owner_), number_(global.off_) {}
    Arg(const Code &function) : kind_(Kind::function), function_(&function) {} // NOLINT

  private:
    friend class Code;
    enum class Kind : uint8_t { reg, number, address, map, global, function };
    Kind kind_;
    uint32_t index_ = 0;
    Mem mem_{fp};
    const Builder *owner_ = nullptr;
    int64_t number_ = 0;
    const Code *function_ = nullptr;
};

/// One function under construction: a program, or one that programs call. Made by Builder, which owns it.
class Code {
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

    // --- Numbers and pointers into registers

    void mov(WritableReg dst, Value64 value, Where where = Where::current()) { alu("=", dst, value, where); }
    void mov(Reg32 dst, Value32 value, Where where = Where::current()) { alu("=", dst, value, where); }
    /// Any 64-bit number; two slots.
    void load_imm64(WritableReg dst, uint64_t number, Where where = Where::current());
    /// A map, as the helpers want it; two slots.
    void load_map(WritableReg dst, MapRef map, Where where = Where::current());
    /// The address of a global variable (kernel 5.2); two slots.
    void load_global(WritableReg dst, GlobalRef global, Where where = Where::current());
    /// The address of a function, for helpers that call back (5.13); two slots.
    void load_function(WritableReg dst, const Code &function, Where where = Where::current());
    /// The address of a kernel variable; two slots.
    void load_ksym(WritableReg dst, std::string name, Where where = Where::current());
    /// The address of a place in memory: dst = base; dst += distance (left out when zero).
    void address(WritableReg dst, Mem mem, Where where = Where::current());

    // --- Arithmetic; the first parameter is the left-hand side and takes the result

    void add(WritableReg dst, Value64 value, Where where = Where::current()) { alu("+=", dst, value, where); }
    void add(Reg32 dst, Value32 value, Where where = Where::current()) { alu("+=", dst, value, where); }
    void sub(WritableReg dst, Value64 value, Where where = Where::current()) { alu("-=", dst, value, where); }
    void sub(Reg32 dst, Value32 value, Where where = Where::current()) { alu("-=", dst, value, where); }
    void mul(WritableReg dst, Value64 value, Where where = Where::current()) { alu("*=", dst, value, where); }
    void mul(Reg32 dst, Value32 value, Where where = Where::current()) { alu("*=", dst, value, where); }
    void div(WritableReg dst, Value64 value, Where where = Where::current()) { alu("/=", dst, value, where); }
    void div(Reg32 dst, Value32 value, Where where = Where::current()) { alu("/=", dst, value, where); }
    void mod(WritableReg dst, Value64 value, Where where = Where::current()) { alu("%=", dst, value, where); }
    void mod(Reg32 dst, Value32 value, Where where = Where::current()) { alu("%=", dst, value, where); }
    /// Signed division and remainder: kernel 6.6.
    void sdiv(WritableReg dst, Value64 value, Where where = Where::current()) { alu("s/=", dst, value, where); }
    void sdiv(Reg32 dst, Value32 value, Where where = Where::current()) { alu("s/=", dst, value, where); }
    void smod(WritableReg dst, Value64 value, Where where = Where::current()) { alu("s%=", dst, value, where); }
    void smod(Reg32 dst, Value32 value, Where where = Where::current()) { alu("s%=", dst, value, where); }
    void or_(WritableReg dst, Value64 value, Where where = Where::current()) { alu("|=", dst, value, where); }
    void or_(Reg32 dst, Value32 value, Where where = Where::current()) { alu("|=", dst, value, where); }
    void and_(WritableReg dst, Value64 value, Where where = Where::current()) { alu("&=", dst, value, where); }
    void and_(Reg32 dst, Value32 value, Where where = Where::current()) { alu("&=", dst, value, where); }
    void xor_(WritableReg dst, Value64 value, Where where = Where::current()) { alu("^=", dst, value, where); }
    void xor_(Reg32 dst, Value32 value, Where where = Where::current()) { alu("^=", dst, value, where); }
    void lsh(WritableReg dst, Value64 value, Where where = Where::current()) { alu("<<=", dst, value, where); }
    void lsh(Reg32 dst, Value32 value, Where where = Where::current()) { alu("<<=", dst, value, where); }
    void rsh(WritableReg dst, Value64 value, Where where = Where::current()) { alu(">>=", dst, value, where); }
    void rsh(Reg32 dst, Value32 value, Where where = Where::current()) { alu(">>=", dst, value, where); }
    void arsh(WritableReg dst, Value64 value, Where where = Where::current()) { alu("s>>=", dst, value, where); }
    void arsh(Reg32 dst, Value32 value, Where where = Where::current()) { alu("s>>=", dst, value, where); }
    void neg(WritableReg dst, Where where = Where::current()) { one(Shape::negate, "-", 64, dst.number(), where); }
    void neg(Reg32 dst, Where where = Where::current()) { one(Shape::negate, "-", 32, dst.number(), where); }
    /// dst = the lowest `bits` (8, 16, 32) of src as a signed number: kernel 6.6.
    void sign_extend(WritableReg dst, Reg src, int bits, Where where = Where::current());
    void sign_extend(Reg32 dst, Reg32 src, int bits, Where where = Where::current());
    /// The lowest `bits` (16, 32, 64) to little- or big-endian (a no-op or a swap), the rest becomes zero.
    void to_le(WritableReg dst, int bits, Where where = Where::current());
    void to_be(WritableReg dst, int bits, Where where = Where::current());
    /// Swapped unconditionally: kernel 6.6.
    void bswap(WritableReg dst, int bits, Where where = Where::current());

    // --- Memory; T is uint8_t to uint64_t

    template <class T> void load(WritableReg dst, Mem from, Where where = Where::current()) {
        static_assert(std::is_unsigned_v<T>, "load<uint8_t .. uint64_t>; load_signed extends the sign (kernel 6.6)");
        load_size(false, sizeof(T) * 8, dst, from, where);
    }
    template <class T> void load_signed(WritableReg dst, Mem from, Where where = Where::current()) {
        static_assert(std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) < 8, "load_signed<int8_t .. int32_t>");
        load_size(true, sizeof(T) * 8, dst, from, where);
    }
    template <class T> void store(Mem to, Value64 value, Where where = Where::current()) {
        static_assert(std::is_integral_v<T>, "store<uint8_t .. uint64_t>");
        store_size(sizeof(T) * 8, to, value, where);
    }
    /// lock *(T *)to op= value. 32 and 64 bits; all but add need kernel 5.12.
    template <class T> void atomic_add(Mem to, Reg value, Where where = Where::current()) { atomic<T>("+=", to, value, where); }
    template <class T> void atomic_or(Mem to, Reg value, Where where = Where::current()) { atomic<T>("|=", to, value, where); }
    template <class T> void atomic_and(Mem to, Reg value, Where where = Where::current()) { atomic<T>("&=", to, value, where); }
    template <class T> void atomic_xor(Mem to, Reg value, Where where = Where::current()) { atomic<T>("^=", to, value, where); }
    /// The same, and `value` becomes what was there before: kernel 5.12.
    template <class T> void fetch_add(Mem to, WritableReg value, Where where = Where::current()) {
        fetch<T>(Shape::atomic_fetch, "atomic_fetch_add", to, value, where);
    }
    template <class T> void fetch_or(Mem to, WritableReg value, Where where = Where::current()) {
        fetch<T>(Shape::atomic_fetch, "atomic_fetch_or", to, value, where);
    }
    template <class T> void fetch_and(Mem to, WritableReg value, Where where = Where::current()) {
        fetch<T>(Shape::atomic_fetch, "atomic_fetch_and", to, value, where);
    }
    template <class T> void fetch_xor(Mem to, WritableReg value, Where where = Where::current()) {
        fetch<T>(Shape::atomic_fetch, "atomic_fetch_xor", to, value, where);
    }
    template <class T> void exchange(Mem to, WritableReg value, Where where = Where::current()) {
        fetch<T>(Shape::exchange, sizeof(T) == 4 ? "xchg32_32" : "xchg_64", to, value, where);
    }
    /// If *to is r0, it becomes `value`; r0 becomes what was there: kernel 5.12.
    template <class T> void compare_exchange(Mem to, Reg value, Where where = Where::current()) {
        static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomics are 32 or 64 bits");
        memory(Shape::compare_swap, sizeof(T) == 4 ? "cmpxchg32_32" : "cmpxchg_64", sizeof(T) * 8, to, value.number(), where);
    }
    /// Loads and stores that order the ones around them: kernel 6.15.
    template <class T> void load_acquire(WritableReg dst, Mem from, Where where = Where::current()) {
        static_assert(std::is_unsigned_v<T>, "load_acquire<uint8_t .. uint64_t>");
        load_form(Shape::load_acquire, "load_acquire", sizeof(T) * 8, dst, from, where);
    }
    template <class T> void store_release(Mem to, Reg value, Where where = Where::current()) {
        static_assert(std::is_integral_v<T>, "store_release<uint8_t .. uint64_t>");
        memory(Shape::store_release, "store_release", sizeof(T) * 8, to, value.number(), where);
    }
    /// r0 = the packet's bytes at a constant, or at a register; r6 must be the context. Ends the program beyond the packet's end.
    template <class T> void load_packet(int64_t off, Where where = Where::current()) {
        static_assert(std::is_unsigned_v<T> && sizeof(T) <= 4, "load_packet<uint8_t .. uint32_t>");
        packet(Shape::packet_abs, sizeof(T) * 8, 0, off, where);
    }
    template <class T> void load_packet(Reg at, int64_t off = 0, Where where = Where::current()) {
        static_assert(std::is_unsigned_v<T> && sizeof(T) <= 4, "load_packet<uint8_t .. uint32_t>");
        packet(Shape::packet_ind, sizeof(T) * 8, at.number(), off, where);
    }
    /// A field of a kernel structure by its BTF name ("task_struct.tgid"), wherever the running kernel has it (CO-RE).
    template <class T> void load_field(WritableReg dst, Reg base, std::string field, Where where = Where::current()) {
        static_assert(std::is_unsigned_v<T>, "load_field<uint8_t .. uint64_t>");
        load_field_size(sizeof(T) * 8, dst, base, std::move(field), where);
    }
    /// dst += the field's offset.
    void add_field(WritableReg dst, std::string field, Where where = Where::current());

    // --- The stack: 512 bytes

    /// So many bytes, aligned; their content is not set. The name is for comments and complaints.
    [[nodiscard]] Slot stack(uint32_t size, uint32_t align, std::string name = {}, Where where = Where::current());
    template <class T> [[nodiscard]] Slot stack(std::string name = {}, Where where = Where::current()) {
        return stack(sizeof(T), alignof(T), std::move(name), where);
    }
    /// Fills a slot with zeroes; one instruction for eight bytes.
    void zero(Slot slot, Where where = Where::current());

    // --- Jumps

    [[nodiscard]] Label label(std::string name = {}, Where where = Where::current());
    void bind(Label label, Where where = Where::current());
    void jump(Label to, Where where = Where::current());
    /// 32 bits of reach: kernel 6.6.
    void jump_long(Label to, Where where = Where::current());
    /// Two instructions for conditions that have no opposite (!(r1 & 4)).
    void jump_if(Condition condition, Label to, Where where = Where::current());
    /// Jumps when the program has looped for too long: kernel 6.9.
    void may_goto(Label to, Where where = Where::current());
    void exit(Where where = Where::current());
    /// r0 = value; exit
    void ret(Value64 value, Where where = Where::current());

    /// f.if_(r0 != 0, [&] { ... }).else_([&] { ... });
    template <class Body> Else if_(Condition condition, Body &&body, Where where = Where::current()) {
        uint32_t end = begin_if(condition, where);
        body();
        return Else(*this, end);
    }
    /// Asks before each round; the verifier must see that it ends (5.3).
    template <class Body> void while_(Condition condition, Body &&body, Where where = Where::current()) {
        Label top = label("while", where), end = label("end of while", where);
        bind(top, where);
        jump_if(!condition, end, where);
        body();
        if (reachable()) jump(top, where);
        bind(end, where);
    }

    // --- Calls

    /// A helper whose arguments are already in r1 to r5 (checked: each of them must have been set).
    template <uint16_t Id, int Least, int Most> void call(Helper<Id, Least, Most>, Where where = Where::current()) {
        call_helper(Id, nullptr, 0, where);
    }
    /// A helper with its arguments: they are moved to r1 to r5, in an order that loses none of them.
    template <uint16_t Id, int Least, int Most> void call(Helper<Id, Least, Most>, Arg a, Where where = Where::current()) {
        static_assert(Least <= 1 && 1 <= Most, "this helper doesn't take 1 argument");
        Arg args[] = {a};
        call_helper(Id, args, 1, where);
    }
    template <uint16_t Id, int Least, int Most> void call(Helper<Id, Least, Most>, Arg a, Arg b, Where where = Where::current()) {
        static_assert(Least <= 2 && 2 <= Most, "this helper doesn't take 2 arguments");
        Arg args[] = {a, b};
        call_helper(Id, args, 2, where);
    }
    template <uint16_t Id, int Least, int Most>
    void call(Helper<Id, Least, Most>, Arg a, Arg b, Arg c, Where where = Where::current()) {
        static_assert(Least <= 3 && 3 <= Most, "this helper doesn't take 3 arguments");
        Arg args[] = {a, b, c};
        call_helper(Id, args, 3, where);
    }
    template <uint16_t Id, int Least, int Most>
    void call(Helper<Id, Least, Most>, Arg a, Arg b, Arg c, Arg d, Where where = Where::current()) {
        static_assert(Least <= 4 && 4 <= Most, "this helper doesn't take 4 arguments");
        Arg args[] = {a, b, c, d};
        call_helper(Id, args, 4, where);
    }
    template <uint16_t Id, int Least, int Most>
    void call(Helper<Id, Least, Most>, Arg a, Arg b, Arg c, Arg d, Arg e, Where where = Where::current()) {
        static_assert(Least <= 5 && 5 <= Most, "this helper doesn't take 5 arguments");
        Arg args[] = {a, b, c, d, e};
        call_helper(Id, args, 5, where);
    }
    /// A function of this unit (4.16), with as many arguments as it was declared with.
    void call(const Code &function, std::initializer_list<Arg> arguments = {}, Where where = Where::current());
    /// A kernel function by name (5.13).
    void call_kfunc(const std::string &name, std::initializer_list<Arg> arguments, Where where = Where::current());

    // --- Patterns

    /// r0 = the map's value for the key; `found` runs when there is one, .else_ when there is none. The r1 to r5 are gone.
    template <class Body> Else lookup(MapRef map, Arg key, Body &&found, Where where = Where::current()) {
        call(helper::map_lookup_elem, map, key, where);
        return if_(r0 != 0, std::forward<Body>(found), where);
    }
    /// A record in a ring buffer (5.8): reserves `size` bytes, points `record` (r6 to r9) at them, runs `fill`, submits. Where
    /// the ring is full, .else_ runs. The record can't leak: leaving `fill` by exit or by a jump is a complaint.
    template <class Body>
    Else reserve(WritableReg record, MapRef ring, int64_t size, Body &&fill, Where where = Where::current()) {
        uint32_t end = begin_reserve(record, ring, size, where);
        fill();
        end_reserve(record, where);
        return Else(*this, end);
    }
    /// bpf_trace_printk with the format on the stack (shared by all prints of the function); up to three values.
    void print(std::string_view format, std::initializer_list<Arg> values = {}, Where where = Where::current());

    // --- Anything else

    /// An instruction by its name in opcodes.h: f.emit("movsx8", {.dst = 1, .src = 2}). Jumps take distances, not labels.
    void emit(std::string_view name, const Operands &operands, Where where = Where::current());
    /// A comment on the next instruction, for the printed program.
    void note(std::string_view text);
    /// False after exit or a jump, until a label is bound.
    [[nodiscard]] bool reachable() const { return reachable_; }
    [[nodiscard]] const std::string &name() const { return function_.name; }
    /// Instruction slots so far.
    [[nodiscard]] size_t size() const { return function_.insns.size(); }

  private:
    friend class Builder;
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
    void alu(std::string_view symbol, Reg dst, Value64 value, Where where) {
        alu(symbol, 64, dst.number(), value.is_register, value.reg, value.number, where);
    }
    void alu(std::string_view symbol, Reg32 dst, Value32 value, Where where) {
        alu(symbol, 32, dst.number(), value.is_register, value.reg, value.number, where);
    }
    void alu(std::string_view symbol, int bits, int dst, bool is_register, int src, int64_t imm, Where where);
    void one(Shape shape, std::string_view symbol, int bits, int dst, Where where);
    bool within(Mem mem, int64_t size, Where where);
    void load_size(bool is_signed, int bits, WritableReg dst, Mem from, Where where);
    void load_form(Shape shape, std::string_view symbol, int bits, WritableReg dst, Mem from, Where where);
    void load_field_size(int bits, WritableReg dst, Reg base, std::string field, Where where);
    void store_size(int bits, Mem to, Value64 value, Where where);
    void memory(Shape shape, std::string_view symbol, int bits, Mem to, int src, Where where);
    template <class T> void atomic(std::string_view symbol, Mem to, Reg value, Where where) {
        static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomics are 32 or 64 bits");
        memory(Shape::atomic, symbol, sizeof(T) * 8, to, value.number(), where);
    }
    template <class T> void fetch(Shape shape, std::string_view symbol, Mem to, WritableReg value, Where where) {
        static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomics are 32 or 64 bits");
        memory(shape, symbol, sizeof(T) * 8, to, value.number(), where);
    }
    void packet(Shape shape, int bits, int src, int64_t off, Where where);
    void wide(int dst, Wide kind, uint64_t number, Where where);
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
    uint32_t begin_reserve(WritableReg record, MapRef ring, int64_t size, Where where);
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
    std::vector<uint32_t> outer_reservations_;
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

/// What finish() gives: a unit, or complaints.
class Built {
  public:
    [[nodiscard]] explicit operator bool() const { return problems.empty(); }
    [[nodiscard]] Unit &operator*() { return unit_; }
    [[nodiscard]] Unit *operator->() { return &unit_; }
    /// All complaints, one a line.
    [[nodiscard]] std::string report() const;

    std::vector<Diagnostic> problems; ///< in the order of the statements

  private:
    friend class Builder;
    Unit unit_;
};

/// A unit under construction: maps, globals, programs. Handles that it gives are valid for it only, and as long as it lives.
class Builder {
  public:
    explicit Builder(std::string name, std::string license = "Dual MIT/GPL");
    Builder(const Builder &) = delete;
    Builder &operator=(const Builder &) = delete;
    ~Builder();

    /// A program: its section says what it attaches to, as in C ("perf_event", "kprobe/vfs_read"). r1 is the context.
    Code &program(std::string section, std::string name, Where where = Where::current());
    /// A function that programs call, or give to a helper; its arguments arrive in r1 and following.
    Code &function(std::string name, int arguments, Where where = Where::current());

    MapRef ringbuf(std::string name, uint32_t bytes, Where where = Where::current());
    template <class K, class V> MapRef hash(std::string name, uint32_t entries, Where where = Where::current()) {
        return map(1, std::move(name), sizeof(K), sizeof(V), entries, where);
    }
    template <class V> MapRef array(std::string name, uint32_t entries, Where where = Where::current()) {
        return map(2, std::move(name), 4, sizeof(V), entries, where);
    }
    template <class K, class V> MapRef percpu_hash(std::string name, uint32_t entries, Where where = Where::current()) {
        return map(5, std::move(name), sizeof(K), sizeof(V), entries, where);
    }
    template <class V> MapRef percpu_array(std::string name, uint32_t entries, Where where = Where::current()) {
        return map(6, std::move(name), 4, sizeof(V), entries, where);
    }
    template <class K, class V> MapRef lru_hash(std::string name, uint32_t entries, Where where = Where::current()) {
        return map(9, std::move(name), sizeof(K), sizeof(V), entries, where);
    }
    MapRef prog_array(std::string name, uint32_t entries, Where where = Where::current()) {
        return map(3, std::move(name), 4, 4, entries, where);
    }
    /// `entries` 0: one for each possible CPU, which the loader fills in.
    MapRef perf_event_array(std::string name, uint32_t entries = 0, Where where = Where::current()) {
        return map(4, std::move(name), 4, 4, entries, where);
    }
    MapRef cgroup_array(std::string name, uint32_t entries, Where where = Where::current()) {
        return map(8, std::move(name), 4, 4, entries, where);
    }
    /// Any other kind, by its BPF_MAP_TYPE_ number.
    MapRef map(uint32_t type, std::string name, uint32_t key_size, uint32_t value_size, uint32_t entries,
               Where where = Where::current());
    MapRef map(MapDef def, Where where = Where::current());

    /// A global constant, frozen before the program loads (5.2); T must be trivially copyable.
    template <class T> GlobalRef constant(const std::string &name, const T &value, Where where = Where::current()) {
        static_assert(std::is_trivially_copyable_v<T>);
        return global(name, &value, sizeof(T), true, where);
    }
    /// A global variable that programs and user space share (5.2).
    template <class T> GlobalRef variable(const std::string &name, const T &value = {}, Where where = Where::current()) {
        static_assert(std::is_trivially_copyable_v<T>);
        return global(name, &value, sizeof(T), false, where);
    }

    /// Checks everything that needs the whole program and hands the unit out. Once; the builder is empty afterwards.
    [[nodiscard]] Built finish();

  private:
    friend class Code;
    GlobalRef global(const std::string &name, const void *value, size_t size, bool read_only, Where where);
    void complain(Where where, std::string message);
    void check_name(std::string_view what, const std::string &name, Where where);

    Unit unit_;
    std::vector<std::unique_ptr<Code>> codes_;
    std::vector<Diagnostic> problems_;
};

} // namespace rawbpf::inline v0

/// A member of a structure that a register or slot points at: f.store<uint32_t>(RAWBPF_AT(r6, Event, pid), r0).
#define RAWBPF_AT(base, type, member) ((base) + static_cast<int64_t>(__builtin_offsetof(type, member)))
