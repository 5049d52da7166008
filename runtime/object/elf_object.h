// SPDX-License-Identifier: MIT
// A BPF ELF object file as an ObjectSpec.
#pragma once

#include <string_view>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

/// Reads an object compiled by clang or gcc for the BPF target (little-endian). The spec keeps nothing of `elf`.
/// `name` is the file's name: it prefixes messages, and the names of data-section maps are made from its stem.
/// Errors: bad_input names section and offset; unsupported for what this project doesn't do (big-endian objects).
[[nodiscard]] Result<ObjectSpec> parse_object(Bytes elf, std::string_view name);

} // namespace rawbpf::inline v0
