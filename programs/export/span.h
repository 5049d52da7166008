// A span: something that took a while, in one process, with what is known of it. The model is OpenTelemetry's, as far as probes
// can fill it (https://opentelemetry.io/docs/specs/otel/trace/api/#span).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::telemetry {

using TraceId = std::array<std::byte, 16>; ///< all zero: none
using SpanId = std::array<std::byte, 8>;   ///< all zero: none

using Value = std::variant<std::string, int64_t, double, bool>;

struct Attribute {
    std::string key;
    Value value;
    bool operator==(const Attribute &) const = default;
};

/// Numbers as in OTLP.
enum class SpanKind : uint8_t { internal = 1, server = 2, client = 3 };
enum class Status : uint8_t { unset = 0, ok = 1, error = 2 };

struct Span {
    TraceId trace_id{};
    SpanId span_id{};
    SpanId parent{}; ///< none: the first of its trace
    std::string name;
    SpanKind kind = SpanKind::internal;
    uint64_t start = 0, end = 0; ///< ns of Unix time; end >= start
    std::vector<Attribute> attributes;
    Status status = Status::unset;
    std::string status_message; ///< only of an error

    /// Replaces an attribute of that name, or adds one.
    void set(std::string_view key, Value value);
    /// nullptr when there is none.
    [[nodiscard]] const Value *find(std::string_view key) const;
};

[[nodiscard]] inline bool is_set(std::span<const std::byte> id) {
    for (std::byte one : id)
        if (one != std::byte{0}) return true;
    return false;
}

/// Where ids come from.
class IdSource {
  public:
    virtual ~IdSource() = default;
    [[nodiscard]] virtual uint64_t next() = 0;
};
/// Random ones: xoshiro256**, seeded once by getrandom(2). Ids have to be different, not secret. Errors: the errno.
[[nodiscard]] Result<std::unique_ptr<IdSource>> random_ids();

[[nodiscard]] TraceId make_trace_id(IdSource &ids);
[[nodiscard]] SpanId make_span_id(IdSource &ids);

} // namespace rawbpf::inline v0::telemetry
