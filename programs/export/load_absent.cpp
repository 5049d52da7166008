// Stands in for load.cpp in a build without cpp-httplib (-Dotlp=disabled, static ones).
#include "programs/export/outlets.h"

namespace rawbpf::inline v0::telemetry {

Result<const Outlets *> load_outlets(const std::string &, std::string_view) {
    return Unexpected(make_error(Errc::unsupported, "this build was made without cpp-httplib",
                                 "libcpp-httplib-dev and -Dotlp=enabled; static builds never have it"));
}

} // namespace rawbpf::inline v0::telemetry
