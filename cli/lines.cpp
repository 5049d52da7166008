// Who asks for debug info. If an option does, a module that can't be loaded is an error. If only DEBUGINFOD_URLS does, which a
// system may set for all users, it is no error: symbols then come from the files of this machine.
#include "cli/lines.h"

#include <cstdlib>

#include "cli/running.h"

namespace rawbpf::inline v0::cli {

Result<std::unique_ptr<processes::DebugInfo>> debug_info_for(const Arguments &a, const LinesIds &ids) {
    const char *servers = std::getenv("DEBUGINFOD_URLS");
    const bool asked = a.has(ids.lines) || a.has(ids.inlined);
    if (!asked && (!servers || *servers == 0 || !kOpenDebugInfo)) return nullptr;
    if (!kOpenDebugInfo) return fail(Errc::unsupported, "{} is for rawbpf-lab", a.has(ids.lines) ? "--lines" : "--inline");
    Result<std::unique_ptr<processes::DebugInfo>> opened = kOpenDebugInfo();
    if (!opened && !asked) return nullptr;
    if (opened) (*opened)->end_on(stop_wanted);
    return opened;
}

} // namespace rawbpf::inline v0::cli
