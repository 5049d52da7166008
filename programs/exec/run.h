// Runs one program on one engine, and compares the results of two engines.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::exec {

struct RunOptions {
    std::vector<std::byte> memory; ///< what r1 points to; with `packet` the packet
    bool packet = false;           ///< the program gets the context of its type
    uint32_t repeat = 1;
    uint64_t limit = 0;    ///< emulator: instructions a run; 0: none
    bool contents = false; ///< read the maps afterwards
    bool compare = false;  ///< also time a program of the same type that only returns
    std::string btf_path;  ///< kernel: types to relocate against
};

/// A map after a run, comparable: keys ascending; of a per-CPU map the CPU that isn't zero; of a ring buffer its records in
/// order.
struct MapContents {
    std::string name;
    bool known = false; ///< false: of a kind that isn't read here
    std::vector<std::pair<std::string, std::string>> entries;
};

struct RunResult {
    uint64_t r0 = 0;
    double ns = 0;               ///< a run, on average; 0: unknown
    std::vector<double> batches; ///< the repeated runs in parts: nanoseconds a run, of each
    std::vector<double> empty;   ///< the same of a program that only returns; may be empty: it can't be run so
    uint64_t instructions = 0;   ///< of the last run; emulator only
    std::vector<std::byte> memory;
    std::string printed; ///< by bpf_trace_printk(); emulator only
    std::vector<MapContents> maps;
};

/// In user space. `spec` is relocated.
[[nodiscard]] Result<RunResult> run_emulated(const ObjectSpec &spec, size_t program, const RunOptions &options);
/// In the kernel.
[[nodiscard]] Result<RunResult> run_in_kernel(const ObjectSpec &spec, size_t program, const RunOptions &options);

/// The first thing that differs, as a sentence; empty when nothing does.
[[nodiscard]] std::string first_difference(const RunResult &kernel, const RunResult &emulator);

} // namespace rawbpf::inline v0::exec
