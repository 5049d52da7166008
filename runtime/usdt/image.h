// SPDX-License-Identifier: MIT
// A shared object that consists of probes: what <rawbpf/usdt.h> has a compiler make, made without one. PURE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::usdt {

constexpr size_t kMostArguments = 12; ///< of a probe, for every reader

/// What a probe passes in one argument.
struct ArgumentKind {
    uint8_t size = 8;       ///< bytes: 1, 2, 4, 8; 4 or 8 of a float
    bool is_signed = false; ///< readers extend its sign
    bool is_float = false;  ///< the bits of a float or a double
    /// All three agree.
    bool operator==(const ArgumentKind &) const = default;
};

/// A probe to be made.
struct NewProbe {
    std::string name;                    ///< letters, digits and _, not a digit first
    std::vector<ArgumentKind> arguments; ///< in their order; at most kMostArguments
};

/// The file, and where in it things are. Code and data lie kImageAlignment apart, so that each can be mapped by itself.
struct Image {
    /// Where one probe is in the file.
    struct ProbeOffsets {
        uint64_t code = 0;      ///< file offset of a function: its probe, then a return
        uint64_t semaphore = 0; ///< file offset of the two bytes that count who looks at it
    };
    std::vector<std::byte> bytes;     ///< the whole ELF file
    uint64_t code_size = 0;           ///< from 0 on: readable, executable
    uint64_t data_offset = 0,         ///< in the file, of what is readable and writable
        data_size = 0;                ///< in bytes
    std::vector<ProbeOffsets> probes; ///< in the order given
};
constexpr uint64_t kImageAlignment = 0x10000; ///< the largest page of arm64

/// Writes it for a machine, EM_X86_64 or EM_AARCH64. Each function takes its arguments as 64-bit integers by the machine's
/// calling convention (a float's bits are in the lower ones). Errors: invalid_argument for names that tracers couldn't be told
/// (letters, digits and _, not a digit first), for two probes of one name, for more than 12 arguments, for sizes that there
/// aren't; unsupported for another machine.
[[nodiscard]] Result<Image> make_image(std::string_view provider, std::span<const NewProbe> probes, uint16_t machine);

} // namespace rawbpf::inline v0::usdt
