// SPDX-License-Identifier: MIT
// A program made fit for being run once: it gets memory, and leaves all 64 bits of its result behind.
#pragma once

#include <span>

#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

/// Names of the maps that harness() adds: arrays with one element.
///@{
inline constexpr std::string_view kHarnessMemory = "run.memory";
inline constexpr std::string_view kHarnessResult = "run.result";
///@}

/// What the wrapped program is called with.
struct HarnessOptions {
    /// r1 = the address of memory with these contents (0 when empty), r2 = its length; else the program gets its own context.
    bool memory = true;
    std::span<const std::byte> contents; ///< of the memory, copied by harness()
};

/// The spec with its n-th program wrapped, all else as it was: BPF_PROG_TEST_RUN reports 32 bits of r0 at most, so its exits
/// store r0 in map kHarnessResult (one u64); memory is map kHarnessMemory. Programs that TEST_RUN doesn't know (kprobe,
/// tracepoint, perf_event ...) become raw tracepoint programs when they get memory, and those without a type socket filters. A
/// program that reads packets the old way (ldabs, ldind) finds its context in r6. To be called after relocate_core(). PURE.
/// Errors: invalid_argument when there is no such program, or it is empty.
[[nodiscard]] Result<ObjectSpec> harness(const ObjectSpec &spec, size_t program, const HarnessOptions &options);

/// Whether it has loads of the kind that old packet filters have.
[[nodiscard]] bool reads_packet(const ProgramSpec &program);

} // namespace rawbpf::inline v0
