// Stands in for http.cpp, delivery.cpp and scrape.cpp in a build without cpp-httplib (-Dotlp=disabled).
#include "programs/export/http.h"
#include "programs/export/outlets.h"

namespace rawbpf::inline v0::telemetry {

bool has_http() { return false; }
bool has_https() { return false; }

namespace {
Unexpected none() {
    return Unexpected(make_error(Errc::unsupported, "this build has no HTTP: it was made without cpp-httplib",
                                 "libcpp-httplib-dev and -Dotlp=enabled; static builds never have it"));
}
} // namespace

Result<std::unique_ptr<Transport>> http_transport(const Endpoint &, const std::vector<Header> &, std::string_view) {
    return none();
}
Result<std::unique_ptr<Delivery>> open_delivery(const Settings &, Resource, std::string_view, ExporterOptions) { return none(); }
Result<std::unique_ptr<ScrapePoint>> open_scrape_point(const ListenAddress &) { return none(); }

} // namespace rawbpf::inline v0::telemetry
