// OTLP in protobuf's wire format. The numbers of fields are those of the project's own definitions (opentelemetry/proto/trace/v1,
// common/v1, collector/trace/v1); within one message they are written in ascending order, as its libraries do.
//
// Reading the answer needs little: two fields, and to get past all others.
//
//      ExportTraceServiceResponse { 1: ExportTracePartialSuccess { 1: int64 rejected_spans, 2: string error_message } }
#include <bit>

#include "programs/export/otlp.h"
#include "programs/render/protobuf.h"
#include "programs/render/protobuf_fields.h"
#include "runtime/base/bytes.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::telemetry {
namespace {

using render::Message;
using render::next_field;
using render::ProtobufField;

std::string_view chars_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

// A member of a oneof is written even when it is empty or 0: its presence says which one it is.
void put_value(Message &any, const Value &value) {
    if (const auto *text = std::get_if<std::string>(&value)) {
        if (text->empty())
            any.bytes(1, "");
        else
            any.text(1, *text);
    }
    if (const auto *truth = std::get_if<bool>(&value)) any.present(2, *truth);
    if (const auto *number = std::get_if<int64_t>(&value)) any.present(3, static_cast<uint64_t>(*number));
    if (const auto *real = std::get_if<double>(&value)) any.fixed64(4, std::bit_cast<uint64_t>(*real));
}

void put_attributes(Message &into, uint32_t field, const std::vector<Attribute> &attributes) {
    for (const Attribute &one : attributes)
        into.message(field, [&](Message &pair) {
            pair.text(1, one.key);
            pair.message(2, [&](Message &any) { put_value(any, one.value); });
        });
}

void put_span(Message &one, const Span &span) {
    one.bytes(1, chars_of(span.trace_id)).bytes(2, chars_of(span.span_id));
    if (is_set(span.parent)) one.bytes(4, chars_of(span.parent));
    one.text(5, span.name).number(6, static_cast<uint64_t>(span.kind));
    one.fixed64(7, span.start).fixed64(8, span.end);
    put_attributes(one, 9, span.attributes);
    if (span.status != Status::unset)
        one.message(15,
                    [&](Message &status) { status.text(2, span.status_message).number(3, static_cast<uint64_t>(span.status)); });
}

} // namespace

std::string otlp_protobuf(const Resource &resource, std::span<const Span> spans) {
    std::string out;
    Message(out).message(1, [&](Message &of_resource) {
        of_resource.message(1, [&](Message &whom) { put_attributes(whom, 1, resource.attributes); });
        of_resource.message(2, [&](Message &of_scope) {
            of_scope.message(1, [&](Message &scope) { scope.text(1, resource.scope).text(2, resource.scope_version); });
            for (const Span &span : spans) of_scope.message(2, [&](Message &one) { put_span(one, span); });
        });
    });
    return out;
}

Result<std::optional<PartialSuccess>> read_response_protobuf(std::string_view body) {
    std::optional<PartialSuccess> partial;
    ByteReader in(bytes_of(body), "the receiver's answer");
    while (!in.done()) {
        const ProtobufField outer = TRY(next_field(in));
        if (!outer.is_bytes(1)) continue;
        if (!partial) partial.emplace(); // one that comes in two parts is put together
        ByteReader within(outer.bytes, "the receiver's partial_success");
        while (!within.done()) {
            const ProtobufField field = TRY(next_field(within));
            if (field.number == 1 && field.type == 0) partial->rejected = static_cast<int64_t>(field.value) < 0 ? 0 : field.value;
            if (field.is_bytes(2)) partial->message = field.text();
        }
    }
    // "The server MUST leave it unset in case of success"; an empty one is what some send instead.
    if (partial && partial->rejected == 0 && partial->message.empty()) partial.reset();
    return partial;
}

} // namespace rawbpf::inline v0::telemetry
