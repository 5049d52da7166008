// A context that is there and can't be read is told of, too: its writer has a mistake, or it is of a later version.
#include "programs/doctor/context.h"

#include "programs/labels/process_context.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::doctor {
namespace {

using labels::FoundContext;

bool has_none(const Result<FoundContext> &found) { return !found && found.error().kind == Errc::not_found; }

} // namespace

void append_context_text(std::string &out, uint32_t pid) {
    const Result<FoundContext> found = labels::find_context(pid);
    if (has_none(found)) return;
    if (!found) return render::append_line(out, format("  OpenTelemetry context: not read: {}.", found.error().message()));
    const labels::ProcessContext &context = found->context;
    std::string line = "  OpenTelemetry context: ";
    for (const auto &[key, value] : context.attributes) append(line, "{}={}, ", key, value);
    if (context.schema.empty()) {
        line += "no keys of threads.";
    } else if (!context.has_threads()) {
        append(line, "threads have theirs in a form that rawbpf doesn't read: {}.", context.schema);
    } else {
        line += "keys of threads: trace_id, span_id";
        for (const std::string &key : context.keys) append(line, ", {}", key);
        line += ". A profile shows them with --label KEY.";
    }
    render::append_line(out, line);
}

void append_context_json(std::string &out, uint32_t pid) {
    const Result<FoundContext> found = labels::find_context(pid);
    if (has_none(found)) return;
    render::JsonLine line(out, "context");
    line.number("pid", pid);
    if (!found) return void(line.text("unread", found.error().message()));
    {
        render::JsonObject attributes(line.raw("attributes"));
        for (const auto &[key, value] : found->context.attributes) render::append_json(attributes.key(key), value);
    }
    line.text_or_null("schema", found->context.schema).truth("threads", found->context.has_threads());
    render::append_json_texts(line.raw("keys"), found->context.keys);
}

} // namespace rawbpf::inline v0::doctor
