// OTLP's HTTP (-Dotlp). Part of the module (outlets.h).
#pragma once

#include <memory>
#include <vector>

#include "programs/export/exporter.h"
#include "programs/export/settings.h"

namespace rawbpf::inline v0::telemetry {

/// Whether this build speaks TLS.
[[nodiscard]] bool has_https();

/// One connection, kept alive between requests. Errors: unsupported for https:// in a build without TLS, the errno of
/// eventfd2(2).
[[nodiscard]] Result<std::unique_ptr<Transport>> http_transport(const Endpoint &endpoint, const std::vector<Header> &headers,
                                                                std::string_view version);

} // namespace rawbpf::inline v0::telemetry
