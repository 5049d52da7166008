// In the place of match_usdt.cpp and known_probes.cpp, in a build without the part `usdt`: no file's probes are looked for.
#include "programs/trace/match.h"
#include "programs/without_part.h"

namespace rawbpf::inline v0::trace {

Result<Matched> match_usdt(const ProbeSpec &, const MatchOptions &) { return Unexpected(without_part("USDT probes", "usdt")); }

const KnownProbes &KnownProbes::built_in() {
    static const KnownProbes none;
    return none;
}
Result<void> KnownProbes::add(std::string_view, std::string_view) { return {}; }
const Signature *KnownProbes::find(std::string_view, std::string_view) const { return nullptr; }

} // namespace rawbpf::inline v0::trace
