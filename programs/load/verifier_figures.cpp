// The last lines of a log at level BPF_LOG_STATS:
//
//      verification time 53 usec
//      stack depth 8+0
//      processed 6 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0
//
// Source: kernel/bpf/verifier.c (print_verification_stats). 6.18's has more lines between them; what isn't known is passed over.
#include "programs/load/verifier_figures.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::load_tool {
namespace {

/// The number behind a word of the line.
std::optional<uint64_t> behind(std::string_view line, std::string_view word) {
    const size_t at = line.find(word);
    if (at == line.npos) return std::nullopt;
    line.remove_prefix(at + word.size());
    uint64_t out = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), out);
    if (error != std::errc() || end == line.data()) return std::nullopt;
    return out;
}

} // namespace

std::optional<VerifierFigures> verifier_figures(std::string_view log) {
    VerifierFigures out;
    bool found = false;
    while (!log.empty()) {
        const size_t end = std::min(log.find('\n'), log.size());
        const std::string_view line = log.substr(0, end);
        log.remove_prefix(std::min(end + 1, log.size()));
        if (line.starts_with("verification time ")) out.time_us = behind(line, "verification time ");
        if (line.starts_with("stack depth ")) {
            const std::string_view depth = line.substr(12);
            out.stack = std::string(depth.substr(0, depth.find_first_not_of("0123456789+")));
        }
        const std::optional<uint64_t> processed = behind(line, "processed ");
        if (!processed || !line.starts_with("processed ")) continue;
        found = true;
        out.instructions = *processed;
        out.states = behind(line, "total_states ").value_or(0);
        out.peak_states = behind(line, "peak_states ").value_or(0);
        out.most_states = behind(line, "max_states_per_insn ").value_or(0);
    }
    return found ? std::optional(out) : std::nullopt;
}

void append_verifier_json(render::JsonObject &out, const std::optional<VerifierFigures> &figures) {
    if (!figures) {
        for (const char *name :
             {"verified_insns", "total_states", "peak_states", "max_states_per_insn", "verification_time_us", "stack_depth"})
            out.null(name);
        return;
    }
    out.number("verified_insns", figures->instructions).number("total_states", figures->states);
    out.number("peak_states", figures->peak_states).number("max_states_per_insn", figures->most_states);
    figures->time_us ? out.number("verification_time_us", *figures->time_us) : out.null("verification_time_us");
    out.text_or_null("stack_depth", figures->stack);
}

std::string verifier_text(const VerifierFigures &figures) {
    std::string out = format("{} instruction{} verified", figures.instructions, figures.instructions == 1 ? "" : "s");
    if (figures.time_us) append(out, " in {} us", *figures.time_us);
    append(out, ", {} state{} ({} at once, {} at most at one instruction)", figures.states, figures.states == 1 ? "" : "s",
           figures.peak_states, figures.most_states);
    if (!figures.stack.empty()) append(out, ", stack {} bytes", figures.stack);
    return out;
}

} // namespace rawbpf::inline v0::load_tool
