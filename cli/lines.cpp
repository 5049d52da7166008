// Who asks for debug info. rawbpf-lines.so reads it; libdw and what that needs would double the start of every command, so it is
// a module that is loaded from the folder of the executable, or where it was installed, when somebody asks. If an option does, a
// module that can't be loaded is an error. If only DEBUGINFOD_URLS does, which a system may set for all users, it is no error:
// symbols then come from the files of this machine.
#include "cli/lines.h"

#include <cstdlib>

#include "cli/own_folder.h"
#include "cli/running.h"
#include "programs/dwarf/debug_info.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli {
namespace {

Result<std::unique_ptr<processes::DebugInfo>> open_debug_info() {
    const dwarf::Lines *lines = TRY(dwarf::load_lines(own_folder(), RAWBPF_VERSION));
    return lines->make_debug_info();
}

} // namespace

Result<std::unique_ptr<processes::DebugInfo>> debug_info_for(const Arguments &a, const LinesIds &ids) {
    const char *servers = std::getenv("DEBUGINFOD_URLS");
    const bool asked = a.has(ids.lines) || a.has(ids.inlined);
    if (!asked && (!servers || *servers == 0)) return nullptr;
    Result<std::unique_ptr<processes::DebugInfo>> opened = open_debug_info();
    if (!opened && !asked) return nullptr;
    if (opened) (*opened)->end_on(stop_wanted);
    return opened;
}

} // namespace rawbpf::inline v0::cli
