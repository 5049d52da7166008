// Settings that the object's own loader would make, from the command line: values of global variables, sizes of maps.
#pragma once

#include <string_view>

#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::load_tool {

/// "NAME=VALUE", "NAME.member[2]=VALUE": a global variable's initial value, by its type (runtime/btf/parse_value.h). Constants
/// (`const volatile`, .rodata) too: the verifier then takes the value as known. Errors: invalid_argument (no such form or value),
/// not_found with the nearest name, unsupported for an object without types.
[[nodiscard]] Result<void> set_variable(ObjectSpec &spec, std::string_view setting);

/// "NAME:entries=N": how many entries a map has; of a ring buffer its bytes. Errors: invalid_argument, not_found.
[[nodiscard]] Result<void> set_map(ObjectSpec &spec, std::string_view setting);

} // namespace rawbpf::inline v0::load_tool
