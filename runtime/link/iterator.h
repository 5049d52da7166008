// SPDX-License-Identifier: MIT
// Reads what an iterator program prints.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/link/link.h"

namespace rawbpf::inline v0 {

/// Runs an iterator's program once over everything; what it prints (bpf_seq_printf, bpf_seq_write) goes to `sink` in pieces,
/// whose error ends it. Errors: invalid_argument when the link is no iterator's; the program's own, when it returns one. 5.8.
[[nodiscard]] Result<void> run_iterator(const Link &link, const std::function<Result<void>(std::string_view)> &sink);

/// The same as one text. Errors: no_memory when it is longer than `limit` bytes.
[[nodiscard]] Result<std::string> read_iterator(const Link &link, size_t limit = 64 << 20);

} // namespace rawbpf::inline v0
