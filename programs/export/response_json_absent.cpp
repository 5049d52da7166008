// Stands in for response_json.cpp in a build without nlohmann-json (-Djson=disabled), which sends no JSON either.
#include "programs/export/otlp.h"

namespace rawbpf::inline v0::telemetry {

Result<std::optional<PartialSuccess>> read_response_json(std::string_view) {
    return fail(Errc::unsupported, "this build reads no JSON (nlohmann-json)");
}

} // namespace rawbpf::inline v0::telemetry
