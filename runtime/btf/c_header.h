// SPDX-License-Identifier: MIT
// A header of C from BTF: vmlinux.h, or only what a few types need.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::btf {

/// What c_header() writes.
struct HeaderOptions {
    /// Only these types and what they need; empty: all of this BTF's own (a split BTF's base only where it is needed).
    std::span<const TypeId> roots = {};
    bool kfuncs = true; ///< without roots: prototypes of the functions that the kernel offers to programs (tag "bpf_kfunc", 6.10)
    /// For C++: without the frame of guards and pragmas, enums with their sizes, `bool`, one set of names for everything.
    bool cplusplus = false;
};

/// A header that a C11 compiler for BPF takes and that lays every type out as the BTF says: each type after those that it needs,
/// pads and attributes where C would do otherwise, a flavour (___2) where two types share a name. Access to its structs is
/// relocated by CO-RE (preserve_access_index) unless BPF_NO_PRESERVE_ACCESS_INDEX is defined. What C can't say (a member before
/// its predecessor's end) stands there as a comment. A FUNC among the roots gives its prototype, a VAR its declaration.
/// Errors: bad_input for broken BTF, a type that contains itself, nesting deeper than 512, more than 256 MB of text.
[[nodiscard]] Result<std::string> c_header(const Btf &btf, const HeaderOptions &options = {});

/// Whether C or C++ keeps this word for itself, so that nothing can be called so.
[[nodiscard]] bool is_keyword(std::string_view word);

} // namespace rawbpf::inline v0::btf
