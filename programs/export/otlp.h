// OTLP's two encodings of a batch of spans, and of what a receiver answers. PURE.
//
//      ExportTraceServiceRequest { ResourceSpans { Resource, ScopeSpans { Scope, Span, Span ... } } }
//
// https://opentelemetry.io/docs/specs/otlp/
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "programs/export/span.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::telemetry {

enum class Encoding : uint8_t { protobuf, json };

/// Whom spans are about, and who saw them.
struct Resource {
    std::vector<Attribute> attributes; ///< service.name, host.name ...
    std::string scope = "rawbpf";      ///< the instrumentation scope's name
    std::string scope_version;         ///< and its version; may be empty
};

/// An ExportTraceServiceRequest. JSON needs a build with it: render::writes_json().
[[nodiscard]] std::string otlp_json(const Resource &resource, std::span<const Span> spans);
[[nodiscard]] std::string otlp_protobuf(const Resource &resource, std::span<const Span> spans);
[[nodiscard]] inline std::string otlp_request(Encoding encoding, const Resource &resource, std::span<const Span> spans) {
    return encoding == Encoding::json ? otlp_json(resource, spans) : otlp_protobuf(resource, spans);
}
[[nodiscard]] constexpr std::string_view content_type(Encoding encoding) {
    return encoding == Encoding::json ? "application/json" : "application/x-protobuf";
}

/// What a receiver says when it took less than all, or has something to remark (rejected is 0 then).
struct PartialSuccess {
    uint64_t rejected = 0; ///< spans
    std::string message;   ///< any bytes: not for a terminal as they are
};

/// Reads the body of a 2xx answer, an ExportTraceServiceResponse; nullopt: all was taken. Unknown fields are passed over. Errors:
/// bad_input with the offset; unsupported for JSON in a build without it.
[[nodiscard]] Result<std::optional<PartialSuccess>> read_response_json(std::string_view body);
[[nodiscard]] Result<std::optional<PartialSuccess>> read_response_protobuf(std::string_view body);

} // namespace rawbpf::inline v0::telemetry
