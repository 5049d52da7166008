// Stands in for response_json.cpp in a build without nlohmann-json (-Djson=disabled) or without a network (-Dotlp=disabled):
// neither gets an answer in JSON.
#include "programs/export/otlp.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::telemetry {

Result<std::optional<PartialSuccess>> read_response_json(std::string_view) {
    return fail(Errc::unsupported, "this build reads no JSON (nlohmann-json)");
}

} // namespace rawbpf::inline v0::telemetry
