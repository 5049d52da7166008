// Loads rawbpf-lines.so from the folder of the executable; only in rawbpf-lab, since rawbpf has no room for it.
#include "cli/lab.h"
#include "cli/lines.h"
#include "programs/dwarf/debug_info.h"

namespace rawbpf::inline v0::cli {

Result<std::unique_ptr<processes::DebugInfo>> open_debug_info() {
    const std::string self = own_path();
    const dwarf::Lines *lines = TRY(dwarf::load_lines(self.substr(0, self.rfind('/')), RAWBPF_VERSION));
    return lines->make_debug_info();
}

} // namespace rawbpf::inline v0::cli
