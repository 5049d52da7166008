// Stands in for http.cpp in a build without cpp-httplib (-Dotlp=disabled).
#include "programs/export/http.h"

namespace rawbpf::inline v0::telemetry {

bool has_http() { return false; }
bool has_https() { return false; }

Result<std::unique_ptr<Transport>> http_transport(const Endpoint &, const std::vector<Header> &, std::string_view) {
    return Unexpected(make_error(Errc::unsupported, "this build sends nothing by HTTP (cpp-httplib, -Dotlp=enabled)"));
}

} // namespace rawbpf::inline v0::telemetry
