// JSON lines. The formats here are flat, a few fields each, so they are written down directly: it works in every build, also in
// one without the JSON library, and field order is as written, with "type" first.
#include "programs/inspect/json.h"

#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::inspect {

void append_json_string(std::string &out, std::string_view text) {
    std::string clean;
    render::append_printable(clean, text);
    out += '"';
    for (char c : clean) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    out += '"';
}

JsonLine::JsonLine(std::string &out, std::string_view type) : out_(out) {
    out_ += "{\"type\":";
    append_json_string(out_, type);
}
JsonLine::~JsonLine() { out_ += "}\n"; }

std::string &JsonLine::raw(std::string_view name) {
    append(out_, ",\"{}\":", name);
    return out_;
}
JsonLine &JsonLine::text(std::string_view name, std::string_view value) {
    append_json_string(raw(name), value);
    return *this;
}
JsonLine &JsonLine::text_or_null(std::string_view name, std::string_view value) {
    return value.empty() ? null(name) : text(name, value);
}
JsonLine &JsonLine::number(std::string_view name, uint64_t value) {
    append(raw(name), "{}", value);
    return *this;
}
JsonLine &JsonLine::signed_number(std::string_view name, int64_t value) {
    append(raw(name), "{}", value);
    return *this;
}
JsonLine &JsonLine::truth(std::string_view name, bool value) {
    raw(name) += value ? "true" : "false";
    return *this;
}
JsonLine &JsonLine::null(std::string_view name) {
    raw(name) += "null";
    return *this;
}
JsonLine &JsonLine::hex(std::string_view name, uint64_t value) {
    append(raw(name), "\"{:#x}\"", value);
    return *this;
}

void append_header(std::string &out, const RunInfo &run) {
    JsonLine line(out, "header");
    line.number("schema", 1);
    std::string &list = line.raw("command");
    list += '[';
    for (size_t i = 0; i < run.command.size(); ++i) {
        if (i > 0) list += ',';
        append_json_string(list, run.command[i]);
    }
    list += ']';
    line.text_or_null("version", run.version).text_or_null("kernel", run.kernel).text_or_null("arch", run.arch);
    line.number("cpus", run.cpus).text("start", render::rfc3339(run.start_wall_ns));
}

} // namespace rawbpf::inline v0::inspect
