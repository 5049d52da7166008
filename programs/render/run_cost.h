// What a run cost, as its ledger says it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rawbpf::inline v0::render {

/// User stacks that end early more often than is tolerable in one place, and what would make them whole.
struct StackAdvice {
    std::string where;              ///< "libcrypto.so.3", "code that Java made at run time"
    uint64_t stacks = 0, early = 0; ///< those that come through it; those of them that end in it before their root
    std::string advice;             ///< what would help
    [[nodiscard]] std::string sentence() const;
};

/// What a run cost, and where its stacks broke off; fields that aren't known stay 0 or empty and aren't shown.
struct RunCost {
    double seconds = 0;        ///< wall-clock length of the recording
    uint64_t bpf_runs = 0;     ///< runs of the BPF program, counted by the kernel (BPF_ENABLE_STATS, 5.8)
    uint64_t bpf_ns = 0;       ///< time in it
    double cpu_seconds = 0;    ///< user and system time of rawbpf itself
    uint64_t memory_bytes = 0; ///< RssAnon: the heap and stacks of rawbpf
    uint64_t table_bytes = 0;  ///< unwind tables
    uint64_t ring_bytes = 0;   ///< ring buffers, shared with the kernel
    std::vector<std::pair<std::string, uint64_t>> ended_early = {}; ///< module -> user stacks that ended in it before their root
    std::vector<StackAdvice> advice = {};                           ///< the worst places first
};

} // namespace rawbpf::inline v0::render
