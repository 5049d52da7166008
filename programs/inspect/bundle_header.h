// A C header for one object: `rawbpf bundle`. PURE.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/btf/btf.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::inspect {

/// A kernel that a bundle is made for.
struct BundleKernel {
    std::string name;                ///< for messages: "6.1.0-53-amd64"
    const btf::Btf *types = nullptr; ///< all of /sys/kernel/btf/vmlinux
};
/// A bundle, and what is said of it.
struct BundleHeader {
    std::string text;
    bool needs_kernels = false;     ///< it was relocated for the kernels given, and loads on these only
    std::vector<std::string> notes; ///< sentences: what was left out
};

/// Whether the object's instructions depend on the kernel: fields, types, kernel functions, or a function that it is verified
/// against.
[[nodiscard]] bool depends_on_kernel(const ObjectSpec &spec);

/// A header for <rawbpf/bundle.h> whose names begin with `name`: the tables of the object, its instructions for each kernel, and
/// its bytes for the live fallback. Errors: unsupported (names what only <rawbpf/core.h> can do, or that no kernel is given for
/// an object that depends on one); those of relocating; not_found where a kernel lacks a function that a
/// program calls or is verified against. What CO-RE doesn't find is a note.
[[nodiscard]] Result<BundleHeader> bundle_header(const ObjectSpec &spec, Bytes object, std::string_view name,
                                                 std::span<const BundleKernel> kernels);

} // namespace rawbpf::inline v0::inspect
