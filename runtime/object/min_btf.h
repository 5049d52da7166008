// SPDX-License-Identifier: MIT
// The part of a kernel's BTF that an object's CO-RE relocations need: a few kilobytes instead of five megabytes, to ship with
// a program for kernels without BTF of their own.
#pragma once

#include <span>
#include <vector>

#include "runtime/object/core.h"

namespace rawbpf::inline v0 {

/// A kernel's BTF cut down to what some objects need.
struct MinimalBtf {
    std::vector<std::byte> btf; ///< as in a file of /sys/kernel/btf; for LoadOptions::btf_path
    size_t types = 0;           ///< in it
    size_t relocations = 0;     ///< that found something in the kernel's types
    size_t missing = 0;         ///< that found nothing: with the small BTF as with the whole one
    size_t type_ids = 0;        ///< that ask for a type's id, which is another one in the small BTF
};

/// Gives all objects' relocations, those of "?" sections too, the answers that `kernel` gives, type ids excepted. Pointers in it
/// lead to void unless a relocation looks behind them. Errors: bad_input (an object that contradicts itself, broken BTF).
[[nodiscard]] Result<MinimalBtf> minimal_btf(std::span<const ObjectSpec> objects, const btf::Btf &kernel);

} // namespace rawbpf::inline v0
