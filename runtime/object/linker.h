// SPDX-License-Identifier: MIT
// Static linking: several BPF objects become one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// One file to link.
struct LinkInput {
    Bytes bytes;      ///< the whole ELF file; only needed during the call
    std::string name; ///< of the file, for messages
};

/// One relocatable object out of several, as `bpftool gen object` makes it: sections of one name joined in the inputs' order,
/// functions, variables and maps that one file declares and another defines brought together, types merged. What nobody defines
/// stays an extern, for the kernel or a later link. Licenses and kernel versions must agree. Errors: bad_input for a broken or
/// foreign file (named); invalid_argument for two definitions of one name, types or sections that disagree, different licenses:
/// both files are named.
[[nodiscard]] Result<std::vector<std::byte>> link_objects(std::span<const LinkInput> inputs);

} // namespace rawbpf::inline v0
