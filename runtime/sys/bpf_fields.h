// The fields of each bpf(2) command's attributes, and how to show them. Part of describe.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace rawbpf::inline v0::sys {

enum class Show : uint8_t {
    number,
    signed_number,
    fd,      ///< a descriptor, with what it is
    pointer, ///< an address
    // What a pointer points at. ..._out: what the kernel wrote, if it did.
    bytes,
    bytes_out,
    key,
    key_out,
    value,
    value_out,
    numbers_32,
    numbers_out,
    addresses, ///< of 64 bits
    strings,   ///< pointers to C strings
    records,   ///< of numbers of 32 bits
    instructions,
    log,
    btf,
    info,       ///< of BPF_OBJ_GET_INFO_BY_FD
    characters, ///< char[16] in the struct
    string,     ///< pointer to a C string
    map_type,
    prog_type,
    attach_type,
    map_flags,
    prog_flags,
    update_flags,
    log_level,
    stats_type,
};

struct Field {
    std::string_view name;
    uint16_t offset;
    uint8_t size;
    Show show;
    bool always;             ///< shown even if it is 0
    uint16_t count = kNone;  ///< the place of the number (of 32 bits) that says how many there are, or bytes
    uint16_t record = kNone; ///< the place of the number that says how many bytes each has
    static constexpr uint16_t kNone = 0xffff;
};

/// The fields of a command's attributes, in the order in which they are shown; `attach_type`: for BPF_LINK_CREATE, whose tail is
/// a union. Empty for a command that isn't known. PURE.
[[nodiscard]] std::span<const Field> fields_of(uint32_t command, uint32_t attach_type);

} // namespace rawbpf::inline v0::sys
