// OTLP in JSON. It is protobuf's JSON mapping with exceptions of its own: ids are hexadecimal (not base64), enumerators are
// numbers, names are lowerCamelCase only; 64-bit numbers are strings, as in the mapping, since JavaScript's numbers end at 2^53
// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).
#include <cmath>

#include "programs/export/otlp.h"
#include "programs/render/json_line.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::telemetry {
namespace {

using render::JsonObject;

template <class Id> void append_id(std::string &out, const Id &id) {
    static constexpr char kDigits[] = "0123456789abcdef";
    out += '"';
    for (std::byte one : id) {
        out += kDigits[static_cast<unsigned>(one) >> 4];
        out += kDigits[static_cast<unsigned>(one) & 15];
    }
    out += '"';
}

void append_value(std::string &out, const Value &value) {
    JsonObject any(out);
    if (const auto *text = std::get_if<std::string>(&value)) any.text("stringValue", *text);
    if (const auto *number = std::get_if<int64_t>(&value)) append(any.raw("intValue"), "\"{}\"", *number);
    if (const auto *truth = std::get_if<bool>(&value)) any.truth("boolValue", *truth);
    if (const auto *real = std::get_if<double>(&value)) {
        std::string &to = any.raw("doubleValue");
        if (std::isnan(*real))
            to += "\"NaN\"";
        else if (std::isinf(*real))
            to += *real > 0 ? "\"Infinity\"" : "\"-Infinity\"";
        else
            append(to, "{}", *real); // the shortest text that reads back as the same number
    }
}

void append_attributes(std::string &out, const std::vector<Attribute> &attributes) {
    out += '[';
    for (const Attribute &one : attributes) {
        if (&one != &attributes.front()) out += ',';
        JsonObject pair(out);
        pair.text("key", one.key);
        append_value(pair.raw("value"), one.value);
    }
    out += ']';
}

void append_span(std::string &out, const Span &span) {
    JsonObject one(out);
    append_id(one.raw("traceId"), span.trace_id);
    append_id(one.raw("spanId"), span.span_id);
    if (is_set(span.parent)) append_id(one.raw("parentSpanId"), span.parent);
    one.text("name", span.name).number("kind", static_cast<uint64_t>(span.kind));
    append(one.raw("startTimeUnixNano"), "\"{}\"", span.start);
    append(one.raw("endTimeUnixNano"), "\"{}\"", span.end);
    append_attributes(one.raw("attributes"), span.attributes);
    if (span.status == Status::unset) return;
    JsonObject status(one.raw("status"));
    if (!span.status_message.empty()) status.text("message", span.status_message);
    status.number("code", static_cast<uint64_t>(span.status));
}

} // namespace

std::string otlp_json(const Resource &resource, std::span<const Span> spans) {
    std::string out = "{\"resourceSpans\":[{\"resource\":{\"attributes\":";
    append_attributes(out, resource.attributes);
    out += "},\"scopeSpans\":[{\"scope\":";
    {
        JsonObject scope(out);
        scope.text("name", resource.scope);
        if (!resource.scope_version.empty()) scope.text("version", resource.scope_version);
    }
    out += ",\"spans\":[";
    for (const Span &span : spans) {
        if (&span != &spans.front()) out += ',';
        append_span(out, span);
    }
    out += "]}]}]}";
    return out;
}

} // namespace rawbpf::inline v0::telemetry
