// SPDX-License-Identifier: MIT
// What the verifier knows about the content of a register or a stack slot. PURE.
//
//      number       Bounds                                         r1 = 5; what a load or a helper gave
//      pointer      a kind, a fixed offset, and a variable one     r0: map_value, off 8, plus something from 0 to 7
//
// Every pointer has the bounds of its variable part (0 alone, mostly), so that arithmetic on it is arithmetic on these.
#pragma once

#include <cstdint>

#include "runtime/verifier/bounds.h"

namespace rawbpf::inline v0::verifier {

/// What sort of value it is.
enum class Sort : uint8_t {
    unset,       ///< nothing was written to it: it can't be read
    number,      ///< no pointer
    context,     ///< what the program was called with
    map,         ///< a map, for helpers
    map_value,   ///< into a value of a map
    map_key,     ///< into a key of a map: an argument of bpf_for_each_map_elem()'s callback
    stack,       ///< into the stack
    packet,      ///< into the packet, from its data on
    packet_meta, ///< into the metadata in front of it
    packet_end,  ///< just behind it
    memory,      ///< into so many bytes: a ring buffer's record, a global function's argument
    object,      ///< to a struct of the kernel, known by BTF
    function,    ///< to a function of the program, for helpers that call back
    socket,      ///< to a socket, as the structs that programs see in its place have it
    flow_keys,   ///< to the struct bpf_flow_keys of a flow dissector
    buffer,      ///< to so many bytes that whoever attaches the program has: `size` isn't known
    arena,       ///< into an arena: any access is good, since the kernel catches those that aren't
    dynptr,      ///< a dynptr: in the stack, or what a callback is given
    iterator,    ///< an iterator, in the stack
    irq_flag,    ///< saved interrupt flags, in the stack
};

/// How far a pointer to an object may be believed.
enum class Trust : uint8_t {
    plain,     ///< got by walking, from before kernels told these apart: it may be read, and helpers take it
    trusted,   ///< the object is there
    rcu,       ///< it is there until the end of the RCU section
    untrusted, ///< it may be read, nothing more
};
/// Which of the structs for sockets.
enum class SocketKind : uint8_t { common, full, tcp, xdp };
/// Where a dynptr's bytes are.
enum class DynptrKind : uint8_t { none, memory, ring, packet, xdp };

/// Numbers for what must be told apart: two registers with the same id hold the same number, or the same pointer with other
/// fixed offsets. 0: none.
using ValueId = uint32_t;

/// No node (Node).
inline constexpr uint32_t kNoNode = 0;

/// Ranges of packet pointers that aren't a number of bytes.
///@{
inline constexpr int32_t kAtEnd = -1;     ///< compared: at the end of the packet or behind it
inline constexpr int32_t kBehindEnd = -2; ///< compared: behind it
///@}

/// One value.
struct Value {
    Sort sort = Sort::unset;                ///< what it is: nothing yet, a number, or a kind of pointer
    bool maybe_null = false;                ///< not compared with 0 yet
    bool read_only = false;                 ///< memory that can't be written to
    bool ring_record = false;               ///< memory: a ring buffer's reserved record
    bool sum = false;                       ///< number: its id's number plus `off`
    bool owned = false;                     ///< object: the program's own, of a type of its BTF
    bool shared = false;                    ///< object: reached through a list or a tree that has it: good while the lock is held
    bool per_cpu = false;                   ///< object: each processor has one
    bool user = false;                      ///< object: in the memory of user space
    bool first = false;                     ///< dynptr, iterator: the slot that counts
    Trust trust = Trust::plain;             ///< object
    SocketKind socket = SocketKind::common; ///< socket
    DynptrKind dynptr = DynptrKind::none;   ///< dynptr
    uint8_t frame = 0;                      ///< stack: of which frame
    int32_t off = 0;                        ///< pointer: the fixed part; number with `sum`: the constant that was added
    int32_t range = 0;       ///< packet: so many bytes from where its id's variable part ends are inside of the packet
    uint32_t map = 0;        ///< map, map_value, map_key: which of the object's maps
    uint32_t size = 0;       ///< memory: how many bytes; iterator: how often it went on
    uint32_t type = 0;       ///< object: BTF id; function: its first instruction; iterator: which (kfuncs.h)
    ValueId id = 0;          ///< for `same as`
    ValueId ref = 0;         ///< the reference that it is
    ValueId parent = 0;      ///< memory, dynptr: the dynptr that it is a part of
    uint32_t node = kNoNode; ///< where it came from
    Bounds bounds;           ///< number: what it is; pointer: the variable part

    /// Whether it is a number.
    [[nodiscard]] bool is_number() const { return sort == Sort::number; }
    /// Whether it is a pointer of any kind.
    [[nodiscard]] bool is_pointer() const { return sort != Sort::number && sort != Sort::unset; }
    /// Whether it points into a packet or its metadata.
    [[nodiscard]] bool is_packet() const { return sort == Sort::packet || sort == Sort::packet_meta; }
    /// The number 0, and nothing else.
    [[nodiscard]] bool is_zero() const { return is_number() && bounds.is_known() && bounds.number() == 0; }
    /// Forgets which number it is equal to, or so much larger than.
    void unlink() {
        id = 0;
        sum = false;
        off = 0;
    }
};

/// A number of which nothing is known, from that node.
[[nodiscard]] inline Value any_number(uint32_t node) {
    Value out;
    out.sort = Sort::number;
    out.node = node;
    return out;
}
/// Exactly that number.
[[nodiscard]] inline Value known_number(uint64_t number, uint32_t node) {
    Value out = any_number(node);
    out.bounds = Bounds::of(number);
    return out;
}
/// A pointer without a variable part.
[[nodiscard]] inline Value pointer(Sort sort, uint32_t node) {
    Value out;
    out.sort = sort;
    out.node = node;
    out.bounds = Bounds::of(0);
    return out;
}

} // namespace rawbpf::inline v0::verifier
