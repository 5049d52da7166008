#include "programs/session/run_report.h"

#include <utility>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::session {

void RunEnd::set_cost(const Session &session, const RunCost &programs, uint64_t table_bytes,
                      std::vector<render::StackAdvice> advice) {
    cost.seconds = session.seconds();
    cost.bpf_runs = programs.runs;
    cost.bpf_ns = programs.ns;
    cost.cpu_seconds = static_cast<double>(session.cpu_ns()) / 1e9;
    cost.table_bytes = table_bytes;
    cost.advice = std::move(advice);
    ledger.cost = cost;
}

void RunEnd::set_languages(processes::Following &following, const std::string &why_not) {
    ledger.languages = following.scripts().counts();
    languages = following.scripts().learnt();
    if (!why_not.empty()) languages.push_back(why_not);
    for (const std::string &found : following.labels().found()) languages.push_back(found);
}

recording::End RunEnd::recorded() const {
    recording::End out;
    out.ledger = ledger;
    out.bpf_runs = cost.bpf_runs;
    out.bpf_ns = cost.bpf_ns;
    out.cpu_ns = static_cast<uint64_t>(cost.cpu_seconds * 1e9);
    out.elapsed_ns = static_cast<uint64_t>(cost.seconds * 1e9);
    out.warnings = warnings;
    return out;
}

void RunEnd::set_recorded(const recording::End &end, std::vector<render::StackAdvice> advice) {
    cost.seconds = static_cast<double>(end.elapsed_ns) / 1e9;
    cost.bpf_runs = end.bpf_runs;
    cost.bpf_ns = end.bpf_ns;
    cost.cpu_seconds = static_cast<double>(end.cpu_ns) / 1e9;
    cost.advice = std::move(advice);
    ledger.cost = cost;
}

void RunEnd::warn_of_skipped(const RunCost &programs) {
    if (programs.recursion_misses)
        warnings.push_back(
            format("{} more weren't seen: a BPF program was running on that CPU already", programs.recursion_misses));
}

} // namespace rawbpf::inline v0::session
