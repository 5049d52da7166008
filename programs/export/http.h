// OTLP's HTTP, by cpp-httplib (-Dotlp). Part of the module (outlets.h).
#pragma once

#include <memory>
#include <vector>

#include "programs/export/exporter.h"
#include "programs/export/settings.h"

namespace rawbpf::inline v0::telemetry {

/// Whether this build speaks TLS.
[[nodiscard]] bool has_https();

/// One connection, kept alive between requests. Errors: unsupported for https:// in a build without TLS.
[[nodiscard]] Result<std::unique_ptr<Transport>> http_transport(const Endpoint &endpoint, const std::vector<Header> &headers,
                                                                std::string_view version);

} // namespace rawbpf::inline v0::telemetry
