// A C++ header for one object: `rawbpf gen skeleton`. PURE.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/bytes.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::inspect {

/// "runqlat" for "build/runqlat.bpf.o": a name that C++ takes.
[[nodiscard]] std::string skeleton_name(std::string_view path);

/// A header that stands alone but for <rawbpf/...>: namespace `name` with the types of the object's variables, keys and values,
/// its bytes, and class Skeleton with a member function for each section of variables, map and program. Errors: broken BTF;
/// unsupported for an object without BTF that has variables.
[[nodiscard]] Result<std::string> skeleton_header(const ObjectSpec &spec, Bytes elf, std::string_view name);

} // namespace rawbpf::inline v0::inspect
