// Variants of a program side by side: what a run of each takes, what the kernel makes of it, what verifying it took.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "programs/exec/run.h"
#include "programs/load/verifier_figures.h"
#include "programs/measure/statistics.h"
#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::exec {

/// A program to be measured.
struct Variant {
    std::string name; ///< of its file
    ObjectSpec spec;  ///< relocated
    size_t program = 0;
    std::vector<std::byte> memory;
    bool packet = false;
};

/// What one engine made of a variant.
struct EngineFigures {
    std::optional<Error> failed; ///< it didn't run, and why
    uint64_t runs = 0;           ///< in all
    uint64_t r0 = 0;
    std::vector<double> rounds;           ///< nanoseconds a run, the median of each round
    std::vector<double> empty;            ///< the same of a program that only returns; may be empty: it couldn't be run so
    measure::Interval run;                ///< of the rounds
    std::optional<measure::Interval> own; ///< without what the empty program takes; below 0 is noise
    uint64_t instructions = 0;            ///< executed in a run; emulator only
};
/// What the kernel made of it.
struct KernelFigures {
    uint64_t bytes_translated = 0, bytes_jited = 0;
    std::optional<load_tool::VerifierFigures> verifier;
};
struct Benched {
    EngineFigures kernel, emulator;
    std::optional<KernelFigures> loaded;
    std::optional<Error> not_loaded; ///< why `loaded` isn't there
};

struct BenchOptions {
    uint64_t repeat = 0; ///< runs of each variant in each engine; 0: as many as take a fifth of a second
    bool emulator_only = false;
    uint64_t limit = 0; ///< emulator: instructions a run; 0: none
};

/// Measures all variants: in rounds, in each of which every variant has its turn in every engine, so that whatever else the
/// machine does, and its clock rate, is the same for all. A variant that an engine can't run says so in its figures.
[[nodiscard]] std::vector<Benched> bench(const std::vector<Variant> &variants, const BenchOptions &options);
/// Nanoseconds that a run of `b` takes more than one of `a`; nullopt: one of them wasn't measured. PURE.
[[nodiscard]] std::optional<measure::Interval> more_than(const EngineFigures &a, const EngineFigures &b);

} // namespace rawbpf::inline v0::exec
