// The interpreter: one function with one label per instruction, and no switch.
//
//      op:   [ handler | ... ] [ handler | ... ] [ handler | ... ]
//               |
//               +--> label: does its work, then `++op; goto *op->handler`
//
// Each label ends with a jump of its own, so that the processor predicts the successor of an add separately from that of a
// load (Ertl, Gregg: "The structure and performance of efficient interpreters", 2003). GCC merges such jumps again unless it
// is told not to, at -Os always; that is why run() has the attribute.
//
// Instructions are counted only at taken jumps: a jump adds the number of instructions that ran since the last one. So the
// count is exact, and straight code costs nothing. The limit is checked there too, since every loop has a jump.
//
// Semantics: RFC 9669, sections 4 and 5. Shifts use the low five or six bits of their operand. A division by zero gives 0, a
// remainder by zero gives the dividend; the most negative number divided by -1 is itself. Atomic instructions are implemented
// as plain ones, as a machine has one thread.
#include <bit>
#include <type_traits>

#include "runtime/base/format.h"
#include "runtime/emulator/machine.h"

#if defined(__GNUC__) && !defined(__clang__)
#define RAWBPF_INTERPRETER [[gnu::optimize("O2", "no-gcse", "no-crossjumping")]]
#else
#define RAWBPF_INTERPRETER
#endif
#pragma GCC diagnostic ignored "-Wpedantic" // labels as values, everywhere in this file

namespace rawbpf::inline v0::emulator {

namespace {

static_assert(std::endian::native == std::endian::little, "le and be would change places");

#define RAWBPF_COMPUTE(name, expression)                                                                                         \
    template <class T> [[gnu::always_inline]] inline T do_##name(T a, T b) {                                                     \
        using S [[maybe_unused]] = std::make_signed_t<T>;                                                                        \
        return static_cast<T>(expression);                                                                                       \
    }
RAWBPF_COMPUTE(add, a + b)
RAWBPF_COMPUTE(sub, a - b)
RAWBPF_COMPUTE(mul, a *b)
RAWBPF_COMPUTE(div, b ? a / b : 0)
RAWBPF_COMPUTE(mod, b ? a % b : a)
RAWBPF_COMPUTE(sdiv, b == 0 ? 0 : b == static_cast<T>(-1) ? T{0} - a : static_cast<T>(static_cast<S>(a) / static_cast<S>(b)))
RAWBPF_COMPUTE(smod, b == 0 ? a : b == static_cast<T>(-1) ? 0 : static_cast<T>(static_cast<S>(a) % static_cast<S>(b)))
RAWBPF_COMPUTE(or, a | b)
RAWBPF_COMPUTE(and, a &b)
RAWBPF_COMPUTE(xor, a ^ b)
RAWBPF_COMPUTE(mov, (static_cast<void>(a), b))
RAWBPF_COMPUTE(lsh, a << (b & (8 * sizeof(T) - 1)))
RAWBPF_COMPUTE(rsh, a >> (b & (8 * sizeof(T) - 1)))
RAWBPF_COMPUTE(arsh, static_cast<S>(a) >> (b & (8 * sizeof(T) - 1)))
RAWBPF_COMPUTE(jeq, a == b)
RAWBPF_COMPUTE(jne, a != b)
RAWBPF_COMPUTE(jgt, a > b)
RAWBPF_COMPUTE(jge, a >= b)
RAWBPF_COMPUTE(jlt, a < b)
RAWBPF_COMPUTE(jle, a <= b)
RAWBPF_COMPUTE(jset, (a & b) != 0)
RAWBPF_COMPUTE(jsgt, static_cast<S>(a) > static_cast<S>(b))
RAWBPF_COMPUTE(jsge, static_cast<S>(a) >= static_cast<S>(b))
RAWBPF_COMPUTE(jslt, static_cast<S>(a) < static_cast<S>(b))
RAWBPF_COMPUTE(jsle, static_cast<S>(a) <= static_cast<S>(b))
#undef RAWBPF_COMPUTE

template <class T> [[gnu::always_inline]] inline T get(const uint8_t *at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}
template <class T> [[gnu::always_inline]] inline void put(uint8_t *at, T value) { std::memcpy(at, &value, sizeof value); }

/// Memory::find() with the table in a register and the size known.
template <unsigned N, bool Write> [[gnu::always_inline]] inline uint8_t *at(const Slot *slots, Memory &memory, uint64_t address) {
    if (const uint64_t n = address >> kSlotBits; n < kSlots) [[likely]] {
        const uint64_t offset = address & ((uint64_t{1} << kSlotBits) - 1);
        if (offset + N <= (Write ? slots[n].writable : slots[n].readable)) [[likely]]
            return slots[n].bytes + offset;
    }
    return memory.resolve(address, N, Write);
}

} // namespace

RAWBPF_INTERPRETER Event Interpreter::run(Machine *machine, uint64_t &executed, const void *const **table) {
    static const void *const labels[] = {
#define RAWBPF_LABEL(name) &&do_##name,
        RAWBPF_EMULATED(RAWBPF_LABEL)
#undef RAWBPF_LABEL
    };
    if (!machine) {
        *table = labels;
        return Event::none;
    }

    Machine &m = *machine;
    uint64_t *const r = m.cpu_.r;
    const Slot *const slots = m.memory_.slots();
    const Op *op = m.cpu_.op;
    const Op *start = op; // the code since here ran without a jump
    constexpr int64_t kMost = INT64_MAX / 2;
    // What was executed before counts, as a timer's callback goes on where the program ended.
    const uint64_t limit = m.options_.limit == 0 ? 0 : m.options_.limit > executed ? m.options_.limit - executed : 1;
    const int64_t all = limit && limit < kMost / sizeof(Op) ? static_cast<int64_t>(limit * sizeof(Op)) : kMost;
    int64_t budget = all; // in bytes of Ops, which saves a division at each jump
    uint8_t *p;
    Event event;

#define D r[op->dst]
#define S r[op->src]
#define I op->imm
#define OFF static_cast<uint64_t>(int64_t{op->off})
#define GO goto * op->handler
#define NEXT                                                                                                                     \
    do {                                                                                                                         \
        ++op;                                                                                                                    \
        GO;                                                                                                                      \
    } while (0)
#define COUNT (budget -= reinterpret_cast<const char *>(op + 1) - reinterpret_cast<const char *>(start))
#define JUMP(target)                                                                                                             \
    do {                                                                                                                         \
        const Op *const to = (target);                                                                                           \
        COUNT;                                                                                                                   \
        start = op = to;                                                                                                         \
        if (budget < 0) [[unlikely]]                                                                                             \
            goto over_limit;                                                                                                     \
        GO;                                                                                                                      \
    } while (0)

    GO;

#define ALU(name)                                                                                                                \
    do_##name : D = do_##name<uint64_t>(D, I);                                                                                   \
    NEXT;                                                                                                                        \
    do_##name##_reg : D = do_##name<uint64_t>(D, S);                                                                             \
    NEXT;                                                                                                                        \
    do_##name##32 : D = do_##name<uint32_t>(static_cast<uint32_t>(D), static_cast<uint32_t>(I));                                 \
    NEXT;                                                                                                                        \
    do_##name##32_reg : D = do_##name<uint32_t>(static_cast<uint32_t>(D), static_cast<uint32_t>(S));                             \
    NEXT;
    ALU(add)
    ALU(sub)
    ALU(mul)
    ALU(div)
    ALU(or)
    ALU(and)
    ALU(lsh)
    ALU(rsh)
    ALU(mod)
    ALU(xor)
    ALU(mov)
    ALU(arsh)
    ALU(sdiv)
    ALU(smod)
#undef ALU

#define SET(name, value)                                                                                                         \
    do_##name : D = (value);                                                                                                     \
    NEXT;
#define SIGNED(type, value) static_cast<uint64_t>(int64_t{static_cast<type>(value)})
    SET(neg, uint64_t{0} - D)
    SET(neg32, uint32_t{0} - static_cast<uint32_t>(D))
    SET(movsx8, SIGNED(int8_t, S))
    SET(movsx16, SIGNED(int16_t, S))
    SET(movsx32, SIGNED(int32_t, S))
    SET(movsx8_32, static_cast<uint32_t>(SIGNED(int8_t, S)))
    SET(movsx16_32, static_cast<uint32_t>(SIGNED(int16_t, S)))
    SET(le16, static_cast<uint16_t>(D))
    SET(le32, static_cast<uint32_t>(D))
do_le64:
    NEXT;
do_be16:
    SET(bswap16, __builtin_bswap16(static_cast<uint16_t>(D)))
do_be32:
    SET(bswap32, __builtin_bswap32(static_cast<uint32_t>(D)))
do_be64:
    SET(bswap64, __builtin_bswap64(D))
do_lddw:
    D = I;
    op += op->jump;
    GO;

    // ---- memory
#define FIND(bytes, write, reg)                                                                                                  \
    p = at<bytes, write>(slots, m.memory_, (reg) + OFF);                                                                         \
    if (!p) [[unlikely]]                                                                                                         \
    goto bad_access
#define LOAD(name, type)                                                                                                         \
    do_##name : FIND(sizeof(type), false, S);                                                                                    \
    D = static_cast<uint64_t>(get<type>(p)); /* signed types extend themselves */                                                \
    NEXT;
#define STORE(name, type, value)                                                                                                 \
    do_##name : FIND(sizeof(type), true, D);                                                                                     \
    put<type>(p, static_cast<type>(value));                                                                                      \
    NEXT;
do_load_acquire8:
    LOAD(ldxb, uint8_t)
do_load_acquire16:
    LOAD(ldxh, uint16_t)
do_load_acquire32:
    LOAD(ldxw, uint32_t)
do_load_acquire64:
    LOAD(ldxdw, uint64_t)
    LOAD(ldxsb, int8_t) // its sign extends, as it should. NOLINT(bugprone-signed-char-misuse)
    LOAD(ldxsh, int16_t)
    LOAD(ldxsw, int32_t)
    STORE(stb, uint8_t, I)
    STORE(sth, uint16_t, I)
    STORE(stw, uint32_t, I)
    STORE(stdw, uint64_t, I)
do_store_release8:
    STORE(stxb, uint8_t, S)
do_store_release16:
    STORE(stxh, uint16_t, S)
do_store_release32:
    STORE(stxw, uint32_t, S)
do_store_release64:
    STORE(stxdw, uint64_t, S)

    // Packets are read in network order; a read behind the end is the function's exit, with 0.
#define PACKET(name, type, swap)                                                                                                 \
    do_ldabs##name : {                                                                                                           \
        const uint64_t offset = static_cast<uint32_t>(I);                                                                        \
        if (offset + sizeof(type) > m.packet_.size()) goto no_packet;                                                            \
        r[0] = swap(get<type>(m.packet_.data() + offset));                                                                       \
        NEXT;                                                                                                                    \
    }                                                                                                                            \
    do_ldind##name : {                                                                                                           \
        const uint64_t offset = static_cast<uint32_t>(S + I);                                                                    \
        if (offset + sizeof(type) > m.packet_.size()) goto no_packet;                                                            \
        r[0] = swap(get<type>(m.packet_.data() + offset));                                                                       \
        NEXT;                                                                                                                    \
    }
    PACKET(b, uint8_t, )
    PACKET(h, uint16_t, __builtin_bswap16)
    PACKET(w, uint32_t, __builtin_bswap32)

#define ATOMIC(name, operation)                                                                                                  \
    do_atomic_##name##32 : FIND(4, true, D);                                                                                     \
    put<uint32_t>(p, get<uint32_t>(p) operation static_cast<uint32_t>(S));                                                       \
    NEXT;                                                                                                                        \
    do_atomic_##name : FIND(8, true, D);                                                                                         \
    put<uint64_t>(p, get<uint64_t>(p) operation S);                                                                              \
    NEXT;                                                                                                                        \
    do_atomic_fetch_##name##32 : FIND(4, true, D);                                                                               \
    {                                                                                                                            \
        const uint32_t before = get<uint32_t>(p);                                                                                \
        put<uint32_t>(p, before operation static_cast<uint32_t>(S));                                                             \
        S = before;                                                                                                              \
    }                                                                                                                            \
    NEXT;                                                                                                                        \
    do_atomic_fetch_##name : FIND(8, true, D);                                                                                   \
    {                                                                                                                            \
        const uint64_t before = get<uint64_t>(p);                                                                                \
        put<uint64_t>(p, before operation S);                                                                                    \
        S = before;                                                                                                              \
    }                                                                                                                            \
    NEXT;
    ATOMIC(add, +)
    ATOMIC(or, |)
    ATOMIC(and, &)
    ATOMIC(xor, ^)
#define EXCHANGE(suffix, type)                                                                                                   \
    do_xchg##suffix : FIND(sizeof(type), true, D);                                                                               \
    {                                                                                                                            \
        const type before = get<type>(p);                                                                                        \
        put<type>(p, static_cast<type>(S));                                                                                      \
        S = before;                                                                                                              \
    }                                                                                                                            \
    NEXT;                                                                                                                        \
    do_cmpxchg##suffix : FIND(sizeof(type), true, D);                                                                            \
    {                                                                                                                            \
        const type before = get<type>(p);                                                                                        \
        if (before == static_cast<type>(r[0])) put<type>(p, static_cast<type>(S));                                               \
        r[0] = before;                                                                                                           \
    }                                                                                                                            \
    NEXT;
    EXCHANGE(32, uint32_t)
    EXCHANGE(, uint64_t)

    // ---- control
#define BRANCH(name)                                                                                                             \
    do_##name : if (do_##name<uint64_t>(D, I)) JUMP(op + op->jump);                                                              \
    NEXT;                                                                                                                        \
    do_##name##_reg : if (do_##name<uint64_t>(D, S)) JUMP(op + op->jump);                                                        \
    NEXT;                                                                                                                        \
    do_##name##32 : if (do_##name<uint32_t>(static_cast<uint32_t>(D), static_cast<uint32_t>(I))) JUMP(op + op->jump);            \
    NEXT;                                                                                                                        \
    do_##name##32_reg : if (do_##name<uint32_t>(static_cast<uint32_t>(D), static_cast<uint32_t>(S))) JUMP(op + op->jump);        \
    NEXT;
    BRANCH(jeq)
    BRANCH(jne)
    BRANCH(jgt)
    BRANCH(jge)
    BRANCH(jlt)
    BRANCH(jle)
    BRANCH(jset)
    BRANCH(jsgt)
    BRANCH(jsge)
    BRANCH(jslt)
    BRANCH(jsle)

do_ja:
    JUMP(op + op->jump);
do_may_goto:
    if (m.cpu_.may_goto == 0) JUMP(op + op->jump);
    --m.cpu_.may_goto;
    NEXT;

do_gotox : {
    const Op *target = m.function_at(D);
    if (!target) {
        m.fault_target(op->dst, false);
        goto fault;
    }
    JUMP(target);
}
do_addr_space_cast: // to the kernel's space, which has 32 bits of it; to user space's, but for a null pointer
    D = static_cast<uint32_t>(S) | (I != 1 && static_cast<uint32_t>(S) ? kArenaUser : 0);
    NEXT;

do_callx : {
    const Op *function = m.function_at(D);
    if (!function) { // a helper's number, then
        m.cpu_.op = op;
        const Helper helper = find_emulated(D);
        if (!helper)
            m.fault_target(op->dst, true);
        else
            r[0] = helper(m, r);
        goto called;
    }
    p = nullptr;
    m.cpu_.op = function; // a detour, so that the call's own code is there once
    goto push_frame;
}
do_call_local:
    m.cpu_.op = op + op->jump;
push_frame : {
    const uint32_t depth = m.cpu_.depth + 1;
    const uint32_t base = m.cpu_.frames[depth - 1].base;
    if (depth - base == kCallDepth) {
        m.why_ = format("the calls are nested more than {} functions deep", kCallDepth);
        goto fault;
    }
    Frame &frame = m.cpu_.frames[depth];
    frame = Frame{};
    frame.back = op + 1;
    frame.program = m.cpu_.frames[depth - 1].program;
    frame.base = base;
    for (int n = 0; n < 4; ++n) frame.saved[n] = r[6 + n];
    m.cpu_.depth = depth;
    m.memory_.set_frame(depth, true);
    r[10] = frame_address(depth) + kFrameBytes;
    JUMP(m.cpu_.op);
}
do_exit : {
    if (m.cpu_.depth == 0) {
        COUNT;
        event = Event::finished;
        goto out;
    }
    const Frame &frame = m.cpu_.frames[m.cpu_.depth];
    if (frame.callback != Callback::none) {
        const Op *next = m.next_callback(op);
        if (!next) goto fault;
        JUMP(next);
    }
    for (int n = 0; n < 4; ++n) r[6 + n] = frame.saved[n];
    m.memory_.set_frame(m.cpu_.depth, false);
    --m.cpu_.depth;
    r[10] = frame_address(m.cpu_.depth) + kFrameBytes;
    JUMP(frame.back);
}
do_call : {
    m.cpu_.op = op;
    const Helper helper = find_emulated(I);
    if (!helper) {
        m.fault("the emulator doesn't have this helper");
        goto fault;
    }
    r[0] = helper(m, r);
}
called:
    if (m.overworked()) [[unlikely]] {
        m.signal_ = Event::none;
        COUNT;
        goto over_limit;
    }
    if (m.signal_ == Event::none) [[likely]]
        NEXT;
    if (m.signal_ == Event::fault) goto fault;
    m.signal_ = Event::none; // a tail call, or a callback: elsewhere
    JUMP(m.cpu_.op);

do_kfunc:
    m.cpu_.op = op;
    r[0] = reinterpret_cast<Helper>(I)(m, r); // NOLINT(performance-no-int-to-ptr)
    goto called;
do_refuse:
    m.why_ = "the emulator doesn't have this kernel function";
    goto fault;
no_packet: // the function ends, as in the kernel, which puts an exit there
    r[0] = 0;
    goto do_exit;
bad_access:
    m.why_.clear(); // explain() finds out
    goto fault;
fault:
    m.signal_ = Event::none;
    COUNT;
    event = Event::fault;
    goto out;
over_limit:
    event = Event::limit;
    goto out;
do_stop:
    event = Event::stopped;
out:
    m.cpu_.op = op;
    executed += static_cast<uint64_t>(all - budget) / sizeof(Op);
    return event;
}

const void *const *handlers() {
    static const void *const *const table = [] {
        const void *const *found = nullptr;
        uint64_t none = 0;
        (void)Interpreter::run(nullptr, none, &found);
        return found;
    }();
    return table;
}

} // namespace rawbpf::inline v0::emulator
