// What a program may read and write through its context, by its type. PURE.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/object/spec.h"
#include "runtime/verifier/value.h"

namespace rawbpf::inline v0::verifier {

/// What a load from the context gives.
enum class ContextAnswer : uint8_t {
    refused, ///< "invalid bpf_context access"
    number,  ///< any number of that size
    packet,  ///< a pointer
    packet_meta,
    packet_end,
    undecided, ///< a pointer that isn't modelled
};

/// Whether programs of this type are modelled; empty: yes, else what isn't.
[[nodiscard]] std::string_view not_modelled(const ProgramSpec &program);
/// An access of `size` bytes at `offset` of the context. `registers_size`: of struct pt_regs.
[[nodiscard]] ContextAnswer context_access(const ProgramSpec &program, int64_t offset, unsigned size, bool write,
                                           bool extends_sign, uint32_t registers_size);
/// What the packet may be used for directly: nothing, reading, both.
enum class PacketUse : uint8_t { none, read, write };
[[nodiscard]] PacketUse packet_use(uint32_t program_type);
/// The values that r0 must have at the end; nothing: any.
[[nodiscard]] std::optional<Range<int32_t>> returns_of(const ProgramSpec &program);
/// Which letter of prototypes.def such programs have; 0: none.
[[nodiscard]] char helper_set(uint32_t program_type);

} // namespace rawbpf::inline v0::verifier
