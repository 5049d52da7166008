// OTLP's HTTP, by cpp-httplib (-Dotlp): the small build has none, and says so.
#pragma once

#include <memory>
#include <vector>

#include "programs/export/exporter.h"
#include "programs/export/settings.h"

namespace rawbpf::inline v0::telemetry {

/// Whether this build sends anything, and whether it speaks TLS.
[[nodiscard]] bool has_http();
[[nodiscard]] bool has_https();

/// One connection, kept alive between requests. Errors: unsupported in a build without HTTP, or for https:// in one without TLS.
[[nodiscard]] Result<std::unique_ptr<Transport>> http_transport(const Endpoint &endpoint, const std::vector<Header> &headers,
                                                                std::string_view version);

} // namespace rawbpf::inline v0::telemetry
