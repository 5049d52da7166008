// Probes as text and as JSON lines: what `rawbpf usdt list` and `validate` print.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "programs/usdt/check.h"
#include "programs/usdt/fetch.h"

namespace rawbpf::inline v0::usdt {

/// Of every argument its spec, what it means, and the instructions that fetch it.
void append_explanation(std::string &out, std::span<const Argument> arguments, Explain explain);
/// A line a probe, below the file's; with `explain` (nullptr: without) below that every argument's spec, meaning, instructions.
void append_list_text(std::string &out, const Binary &binary, const std::vector<Probe> &probes, Explain explain);
/// {"type":"usdt","path","provider","name","address","file_offset","semaphore","args":[{"spec","size","signed","location"}]};
/// with `explain` an argument has "instructions" too. One that can't be fetched has "location": null and a "problem".
void append_list_json(std::string &out, const Binary &binary, const std::vector<Probe> &probes, Explain explain);

/// Counts for the last line.
struct Tally {
    size_t sites = 0, bad = 0;
};
/// The same with a verdict on each.
void append_check_text(std::string &out, const Binary &binary, const std::vector<Probe> &probes, Explain explain, Tally &tally);
/// As the list's, with "insns" (how many) for each argument, and "nop", "ok", "problems".
void append_check_json(std::string &out, const Binary &binary, const std::vector<Probe> &probes, Explain explain, Tally &tally);
void append_tally_text(std::string &out, const Tally &tally);
void append_tally_json(std::string &out, const Tally &tally);

} // namespace rawbpf::inline v0::usdt
