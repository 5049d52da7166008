// What a program may read and write through its context, by its type. PURE.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/object/spec.h"
#include "runtime/verifier/value.h"

namespace rawbpf::inline v0::verifier {

/// What a load from the context, or from one of the structs that programs see in its place, gives.
enum class ContextAnswer : uint8_t {
    refused, ///< "invalid bpf_context access"
    number,  ///< any number of that size
    packet,  ///< a pointer
    packet_meta,
    packet_end,
    socket,              ///< struct bpf_sock
    socket_or_null,      ///< the same, to be compared with 0 first
    sock_common_or_null, ///< the part that all kinds of sockets have
    flow_keys,           ///< struct bpf_flow_keys
    btf,                 ///< the context is made of the kernel's types: btf_context() says (programs_btf.cpp)
    undecided,           ///< a pointer that isn't modelled
};

/// An access of `size` bytes at `offset` of the context. `registers_size`: of struct pt_regs.
[[nodiscard]] ContextAnswer context_access(const ProgramSpec &program, int64_t offset, unsigned size, bool write,
                                           bool extends_sign, uint32_t registers_size);
/// The same of a socket that a program has a pointer to.
[[nodiscard]] ContextAnswer socket_access(SocketKind kind, int64_t offset, unsigned size, bool write);
/// What the packet may be used for directly: nothing, reading, both.
enum class PacketUse : uint8_t { none, read, write };

/// What is known of a type of programs: one row for each that is modelled.
struct ProgramRow {
    uint32_t type;                         ///< BPF_PROG_TYPE_*
    char set;                              ///< its letter in prototypes.def
    PacketUse packet;                      ///< how packets may be used
    std::optional<Range<int32_t>> returns; ///< the values that r0 must have at the end, if that is all that it depends on
    std::string_view context; ///< the struct that programs call the context by, as functions of the kernel and global
                              ///< functions have it; empty: there is none
    std::string_view kernels; ///< the kernel's own struct behind it, which bpf_cast_to_kern_ctx() gives
};
/// nullptr: such programs aren't modelled.
[[nodiscard]] const ProgramRow *program_row(uint32_t program_type);

/// Whether programs of this type are modelled; empty: yes, else what isn't.
[[nodiscard]] std::string_view not_modelled(const ProgramSpec &program);
[[nodiscard]] PacketUse packet_use(uint32_t program_type);
/// The values that r0 must have at the end; nothing: any.
[[nodiscard]] std::optional<Range<int32_t>> returns_of(const ProgramSpec &program);
/// Which letter of prototypes.def such programs have; 0: none.
[[nodiscard]] char helper_set(const ProgramSpec &program);

} // namespace rawbpf::inline v0::verifier
