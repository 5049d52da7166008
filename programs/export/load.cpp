// Loads rawbpf-otlp.so, which sends spans and answers scrapes.
#include "programs/export/outlets.h"
#include "programs/load_module.h"

namespace rawbpf::inline v0::telemetry {

Result<const Outlets *> load_outlets(const std::string &folder, std::string_view version) {
    return load_module<Outlets>(folder, version, "rawbpf-otlp.so", "rawbpf_outlets", "sends spans and answers scrapes",
                                "put it beside rawbpf, or where the build was installed");
}

} // namespace rawbpf::inline v0::telemetry
