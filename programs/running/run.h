// Runs a program that is loaded already.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::running {

struct LoadedRunOptions {
    std::vector<std::byte> packet; ///< for programs that take one; empty: 64 zeros
    std::vector<std::byte>
        context; ///< struct __sk_buff, xdp_md; arguments of a raw tracepoint, 8 bytes each; a syscall program's own
    uint32_t repeat = 1;
};
struct LoadedRun {
    uint32_t result = 0;            ///< what it returned, as the kernel passes it on: 32 bits
    uint32_t ns = 0;                ///< a run, on average; 0: the kernel doesn't say
    std::vector<std::byte> packet;  ///< afterwards; empty: it takes none
    std::vector<std::byte> context; ///< afterwards, if one was given
};

/// BPF_PROG_TEST_RUN (4.12) of somebody's program: with its maps as they are, and with what it does to them. Errors: the
/// kernel's; unsupported for types that it doesn't run on request; invalid_argument for a packet or context that the type doesn't
/// take.
[[nodiscard]] Result<LoadedRun> run_loaded(int fd, const LoadedRunOptions &options);

} // namespace rawbpf::inline v0::running
