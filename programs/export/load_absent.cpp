// Replaces load.cpp in a build without the module (-Dotlp=disabled, static builds).
#include "programs/export/outlets.h"

namespace rawbpf::inline v0::telemetry {

Result<const Outlets *> load_outlets(const std::string &, std::string_view) {
    return Unexpected(make_error(Errc::unsupported, "this build was made without --otlp and --prometheus",
                                 "meson configure -Dotlp=enabled; a static build has them never"));
}

} // namespace rawbpf::inline v0::telemetry
