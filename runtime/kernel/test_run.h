// Runs a program of a spec once, in the kernel, without attaching it to anything.
#pragma once

#include <vector>

#include "runtime/kernel/loader.h"

namespace rawbpf::inline v0 {

struct TestRunOptions {
    /// What r1 points to (r2: its length); or, with `packet`, the packet that the program's own context describes.
    std::vector<std::byte> memory;
    bool packet = false;
    uint32_t repeat = 1; ///< times; maps and memory stay as they are in between
    std::string btf_path;
};

struct TestRun {
    uint64_t r0 = 0;               ///< of the last run, all 64 bits
    uint64_t ns = 0;               ///< a run, on average, as the kernel measured it; 0: it didn't
    std::vector<std::byte> memory; ///< afterwards
    LoadedObject object;           ///< with its maps
};

/// Loads the n-th program in a harness (runtime/object/harness.h) with what it tail-calls, and runs it with BPF_PROG_TEST_RUN
/// (4.12). Errors: load()'s; unsupported for types that the kernel doesn't run on request.
[[nodiscard]] Result<TestRun> test_run(ObjectSpec spec, size_t program, const TestRunOptions &options);

} // namespace rawbpf::inline v0
