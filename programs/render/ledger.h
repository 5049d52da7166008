// What a run did, for people: the ledger and the progress line on stderr.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "programs/render/frame.h"

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

/// Several aligned lines, each ending in a newline. `tool` stands in front of the first ("rawbpf profile").
/// `noun`: what was counted, "sample" or "event".
[[nodiscard]] std::string ledger_text(std::string_view tool, const RunInfo &run, const Ledger &ledger, const RunCost &cost,
                                      std::string_view noun = "sample");

/// "12 s  1,187 samples  34 processes", without a newline.
[[nodiscard]] std::string progress_text(double seconds, uint64_t samples, uint64_t processes);

/// "1.6 us", "312 ns", "4.0 ms", "2.50 s".
[[nodiscard]] std::string duration_text(double seconds);
/// "3.1 MB", "640 KB", "12 bytes" (1 KB = 1024 bytes).
[[nodiscard]] std::string size_text(uint64_t bytes);

} // namespace rawbpf::inline v0::render
