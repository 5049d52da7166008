// What assembly text loads as. A test ends where the text isn't right.
#pragma once

#include <string_view>
#include <utility>

#include "asm/assemble.h"
#include "runtime/object/unit_object.h"
#include "tests/support/test.h"

namespace rawbpf::test {

inline ObjectSpec spec_from(std::string_view text) {
    const Assembled made = assemble(text);
    INFO(made.report());
    REQUIRE(made);
    Result<ObjectSpec> spec = object_of(made.unit);
    REQUIRE(spec);
    return std::move(*spec);
}

} // namespace rawbpf::test
