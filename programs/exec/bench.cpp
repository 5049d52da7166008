// A run takes some nanoseconds, and other work on the machine disturbs it by more than variants differ. So:
//
//      round 1:  A and an empty program, B and an empty program, in the kernel and in the emulator
//      round 2:  the same in the opposite order ...
//
// The empty program has the type of the variant and only returns. Each round loads the programs anew, so that where their code
// happens to lie is part of what scatters. The median of a round's parts is that round's figure; the medians of the rounds, and
// of what two programs differ by in each round, stand for the variants, with their intervals (programs/measure).
#include "programs/exec/bench.h"

#include <algorithm>
#include <utility>

#include "runtime/kernel/loader.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::exec {
namespace {

constexpr uint32_t kMostRounds = 30, kLeastRounds = 8; // fewer for programs that take long to load
constexpr double kEngineNs = 200e6;                    // that a variant may take in an engine, without loading it
constexpr uint64_t kRoundNs = 40'000'000;              // that a round of a variant should take, with loading it
constexpr uint64_t kTried = 100;                       // runs to learn how long one takes
constexpr uint64_t kLeast = 20, kMost = 2'000'000;     // runs a round

using Run = Result<RunResult> (*)(const ObjectSpec &, size_t, const RunOptions &);

/// One engine, and what it made of all variants.
struct Engine {
    Run run;
    EngineFigures Benched::*figures;
    std::vector<uint64_t> runs_a_round = {}; ///< of each variant
};

RunOptions options_of(const Variant &variant, const BenchOptions &options, uint64_t repeat) {
    RunOptions how;
    how.memory = variant.memory;
    how.packet = variant.packet;
    how.limit = options.limit;
    how.repeat = static_cast<uint32_t>(repeat);
    return how;
}

/// Warms up, and finds out how many runs a round can have. Returns how long that took.
uint64_t attempt(const Variant &variant, Engine &engine, const BenchOptions &options, EngineFigures &figures) {
    const uint64_t started = sys::monotonic_ns();
    const Result<RunResult> tried =
        engine.run(variant.spec, variant.program, options_of(variant, options, options.repeat == 0 ? kTried : 1));
    if (!tried) figures.failed = tried.error();
    const double rounds = kMostRounds, once = tried ? std::max(tried->ns, 1.0) : 1;
    engine.runs_a_round.push_back(std::clamp(static_cast<uint64_t>(kEngineNs / rounds / once), kLeast, kMost));
    return sys::monotonic_ns() - started;
}

void measure_round(const Variant &variant, const Engine &engine, const BenchOptions &options, uint64_t runs,
                   EngineFigures &figures) {
    if (figures.failed) return;
    RunOptions how = options_of(variant, options, runs);
    how.compare = true;
    Result<RunResult> result = engine.run(variant.spec, variant.program, how);
    if (!result) {
        figures.failed = std::move(result).error();
        return;
    }
    figures.rounds.push_back(result->batches.empty() ? result->ns : measure::median(std::move(result->batches)));
    if (!result->empty.empty()) figures.empty.push_back(measure::median(std::move(result->empty)));
    figures.runs += runs;
    figures.r0 = result->r0;
    figures.instructions = result->instructions;
}

void finish(EngineFigures &figures) {
    if (figures.failed || figures.rounds.empty()) return;
    figures.run = measure::median_interval(figures.rounds);
    if (figures.empty.size() == figures.rounds.size()) figures.own = measure::paired_difference(figures.empty, figures.rounds);
}

// As it is, without what test runs wrap around it.
Result<KernelFigures> load_plain(const Variant &variant) {
    LoadOptions loading;
    loading.programs = {variant.spec.programs[variant.program].name};
    loading.pin_by_name = false;
    loading.log_level = uapi::BPF_LOG_STATS;
    Result<LoadedObject> loaded = load(variant.spec, loading);
    if (!loaded) return std::move(loaded).failure();
    KernelFigures out;
    for (const Program &program : loaded->programs) {
        if (program.name != loading.programs.front()) continue;
        Result<sys::ProgInfo> info = sys::prog_info(program.fd.get());
        if (!info) return std::move(info).failure();
        out.bytes_translated = info->xlated_prog_len;
        out.bytes_jited = info->jited_prog_len;
        out.verifier = load_tool::verifier_figures(program.log);
    }
    return out;
}

} // namespace

std::optional<measure::Interval> more_than(const EngineFigures &a, const EngineFigures &b) {
    if (a.failed || b.failed || a.rounds.empty() || a.rounds.size() != b.rounds.size()) return std::nullopt;
    return measure::paired_difference(a.rounds, b.rounds);
}

std::vector<Benched> bench(const std::vector<Variant> &variants, const BenchOptions &options) {
    std::vector<Benched> out(variants.size());
    std::vector<Engine> engines;
    if (!options.emulator_only) engines.push_back({run_in_kernel, &Benched::kernel});
    engines.push_back({run_emulated, &Benched::emulator});
    uint64_t rounds = options.repeat == 0 ? kMostRounds : std::min<uint64_t>(kMostRounds, options.repeat);
    for (size_t n = 0; n < variants.size(); ++n) {
        if (!options.emulator_only) {
            Result<KernelFigures> loaded = load_plain(variants[n]);
            if (loaded)
                out[n].loaded = std::move(*loaded);
            else
                out[n].not_loaded = std::move(loaded).error();
        }
        uint64_t took = 0;
        for (Engine &engine : engines) took += attempt(variants[n], engine, options, out[n].*engine.figures);
        if (options.repeat == 0)
            rounds = std::min(
                rounds, std::clamp<uint64_t>(kMostRounds * kRoundNs / std::max<uint64_t>(took, 1), kLeastRounds, kMostRounds));
    }
    for (uint64_t round = 0; round < rounds; ++round)
        for (const Engine &engine : engines)
            for (size_t turn = 0; turn < variants.size(); ++turn) {
                const size_t n = round % 2 == 0 ? turn : variants.size() - 1 - turn; // none is always the first
                const uint64_t asked = options.repeat / rounds + (round < options.repeat % rounds ? 1 : 0);
                measure_round(variants[n], engine, options, options.repeat == 0 ? engine.runs_a_round[n] : asked,
                              out[n].*engine.figures);
            }
    for (Benched &row : out)
        for (const Engine &engine : engines) finish(row.*engine.figures);
    return out;
}

} // namespace rawbpf::inline v0::exec
