// Demangling, against names made by rustc and g++ and against hostile ones.
#include "runtime/symbols/demangle.h"

#include "tests/support/test.h"

using namespace rawbpf::symbols;

TEST_CASE("demangle: C names come back unchanged") {
    for (std::string_view name : {"main", "", "_", "_Z", "_R", "_RN", "_ZN", "foo.cold", "R", "_Rust", "_R1NvC1a1b"})
        CHECK(demangle(name) == name);
}
