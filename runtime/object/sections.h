// SPDX-License-Identifier: MIT
// What the loader asks of a section's name (asm/section_names.h has the list): its target, what has to be named for its
// attachment, and, of a name that isn't in the list, what was probably meant.
#pragma once

#include <string>
#include <string_view>

#include "asm/section_names.h"

namespace rawbpf::inline v0 {

/// What has to be named for it: "a network interface"; empty where the section's name says it.
[[nodiscard]] std::string_view attachment_needs(Attachment attachment);

/// What follows the slash of a name of that kind; empty without one.
[[nodiscard]] std::string_view section_target(const SectionKind &kind, std::string_view section);

/// True where the program is verified against a kernel function, tracepoint, hook or iterator found by BTF id.
[[nodiscard]] bool needs_attach_btf(const SectionKind &kind);

/// For messages: "no section is called "kprob/x"; the nearest are kprobe/..., uprobe/...".
[[nodiscard]] std::string explain_unknown_section(std::string_view section);

} // namespace rawbpf::inline v0
