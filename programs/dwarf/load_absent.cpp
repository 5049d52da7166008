// Stands in for load.cpp in a build without libdw (-Ddwarf=disabled, static ones).
#include "programs/dwarf/debug_info.h"

namespace rawbpf::inline v0::dwarf {

Result<const Lines *> load_lines(const std::string &, std::string_view) {
    return Unexpected(make_error(Errc::unsupported, "this build was made without elfutils' libdw, which reads debug info",
                                 "libdw-dev and -Ddwarf=enabled; static builds never have it"));
}

} // namespace rawbpf::inline v0::dwarf
