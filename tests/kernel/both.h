// One program, from assembly text, on both engines.
#pragma once

#include "asm/assemble.h"
#include "programs/exec/run.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/unit_elf.h"
#include "runtime/object/unit_object.h"
#include "tests/support/spec_from.h"
#include "tests/support/test.h"

namespace rawbpf::test {

/// By way of an object file, which has the types of its maps.
inline ObjectSpec assembled_with_types(std::string_view text) {
    const Assembled made = assemble(text);
    INFO(made.report());
    REQUIRE(made);
    Result<std::vector<std::byte>> object = write_object(made.unit, nullptr);
    REQUIRE(object);
    Result<ObjectSpec> spec = parse_object(*object, "asm");
    REQUIRE(spec);
    return std::move(*spec);
}

/// Runs the first program on both; what differs, or what the kernel had against it.
struct Both {
    bool refused = false;
    std::string why;
    uint64_t r0 = 0;
};
inline Both both(const ObjectSpec &spec) {
    exec::RunOptions options;
    options.memory.resize(64);
    for (size_t n = 0; n < options.memory.size(); ++n) options.memory[n] = static_cast<std::byte>(n * 37 + 11);
    options.contents = true;
    Both out;
    Result<exec::RunResult> emulated = exec::run_emulated(spec, 0, options);
    if (!emulated) FAIL(emulated.error().message());
    Result<exec::RunResult> kernel = exec::run_in_kernel(spec, 0, options);
    if (!kernel) return {true, kernel.error().message() + kernel.error().log, 0};
    return {false, exec::first_difference(*kernel, *emulated), kernel->r0};
}

} // namespace rawbpf::test
