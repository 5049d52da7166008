// Loads rawbpf-lines.so, which reads debug info.
#include "programs/dwarf/debug_info.h"
#include "programs/load_module.h"

namespace rawbpf::inline v0::dwarf {

Result<const Lines *> load_lines(const std::string &folder, std::string_view version) {
    return load_module<Lines>(folder, version, "rawbpf-lines.so", "rawbpf_lines", "reads debug info",
                              "put it beside rawbpf; it needs elfutils' libdw (libdw1 on Debian)");
}

} // namespace rawbpf::inline v0::dwarf
