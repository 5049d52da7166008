// SPDX-License-Identifier: MIT
// Runs a program of a spec once, in the kernel, without attaching it to anything.
#pragma once

#include <vector>

#include "runtime/kernel/loader.h"

namespace rawbpf::inline v0 {

/// So many times the clock is read while a program is repeated: one figure says nothing of how far others lie from it.
inline constexpr uint32_t kTestRunBatches = 20;
/// How many of `repeat` runs the n-th of the batches has; 0: there is no such batch.
[[nodiscard]] constexpr uint32_t runs_of_batch(uint32_t repeat, uint32_t n) {
    return n >= kTestRunBatches ? 0 : repeat / kTestRunBatches + (n < repeat % kTestRunBatches ? 1 : 0);
}

/// What a test run gives to the program.
struct TestRunOptions {
    /// What r1 points to (r2: its length); or, with `packet`, the packet that the program's own context describes.
    std::vector<std::byte> memory;
    bool packet = false;  ///< `memory` is a packet, Ethernet header included: at least 14 bytes
    uint32_t repeat = 1;  ///< times; maps and memory stay as they are in between; 0 is 1
    std::string btf_path; ///< as LoadOptions::btf_path
};

/// What came of a test run.
struct TestRun {
    uint64_t r0 = 0;               ///< of the last run, all 64 bits
    uint64_t ns = 0;               ///< a run, on average, as the kernel measured it; 0: it didn't
    std::vector<double> batches;   ///< the runs in up to kTestRunBatches parts: nanoseconds of CPU time a run, on average of each
    std::vector<std::byte> memory; ///< afterwards
    LoadedObject object;           ///< with its maps
};

/// Loads the n-th program in a harness (runtime/object/harness.h) with what it tail-calls, and runs it with BPF_PROG_TEST_RUN
/// (4.12). Errors: load()'s; unsupported for types that the kernel doesn't run on request.
[[nodiscard]] Result<TestRun> test_run(ObjectSpec spec, size_t program, const TestRunOptions &options);

} // namespace rawbpf::inline v0
