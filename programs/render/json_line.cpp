// JSON lines, every command's: braces, commas and numbers. What needs care, text of any bytes, is the library's.
#include "programs/render/json_line.h"

#include <utility>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::render {

std::string &JsonObject::raw(std::string_view name) {
    if (out_.back() != '{') out_ += ',';
    out_ += '"';
    out_ += name;
    out_ += "\":";
    return out_;
}
std::string &JsonObject::key(std::string_view name) {
    if (out_.back() != '{') out_ += ',';
    append_json(out_, name);
    out_ += ':';
    return out_;
}
JsonObject &JsonObject::text(std::string_view name, std::string_view value) {
    append_json(raw(name), value);
    return *this;
}
JsonObject &JsonObject::text_or_null(std::string_view name, std::string_view value) {
    return value.empty() ? null(name) : text(name, value);
}
JsonObject &JsonObject::number(std::string_view name, uint64_t value) {
    append(raw(name), "{}", value);
    return *this;
}
JsonObject &JsonObject::signed_number(std::string_view name, int64_t value) {
    append(raw(name), "{}", value);
    return *this;
}
JsonObject &JsonObject::truth(std::string_view name, bool value) {
    raw(name) += value ? "true" : "false";
    return *this;
}
JsonObject &JsonObject::null(std::string_view name) {
    raw(name) += "null";
    return *this;
}
JsonObject &JsonObject::hex(std::string_view name, uint64_t value) {
    append(raw(name), "\"{:#x}\"", value);
    return *this;
}

void append_json_frame(std::string &out, const Frame &f) {
    JsonObject frame(out);
    frame.hex("addr", f.address).text_or_null("symbol", f.symbol);
    f.symbol.empty() || f.inlined ? frame.null("symbol_offset") : frame.number("symbol_offset", f.symbol_offset);
    frame.text_or_null("module", f.module);
    f.module.empty() || f.kernel ? frame.null("file_offset") : frame.number("file_offset", f.file_offset);
    frame.text_or_null("build_id", f.build_id);
    if (!f.file.empty()) frame.text("file", f.file);
    if (f.line != 0) frame.number("line", f.line);
    if (f.inlined) frame.truth("inlined", true);
}

void append_json_frames(std::string &out, const std::vector<FramePtr> &frames) {
    out += '[';
    for (const FramePtr &frame : frames) {
        if (out.back() != '[') out += ',';
        append_json_frame(out, *frame);
    }
    out += ']';
}

void append_json_header(std::string &out, const RunInfo &run) {
    JsonLine line(out, "header");
    line.number("schema", 1);
    std::string &list = line.raw("command");
    list += '[';
    for (const std::string &word : run.command) {
        if (&word != &run.command.front()) list += ',';
        append_json(list, word);
    }
    list += ']';
    line.text_or_null("version", run.version).text_or_null("kernel", run.kernel).text_or_null("arch", run.arch);
    line.number("cpus", run.cpus).text("start", rfc3339(run.start_wall_ns));
    if (!run.event.empty()) line.text("event", run.event);
    if (run.period) line.number("period", run.period);
}

void append_json_ledger(std::string &out, const Ledger &ledger) {
    const auto counts = [](std::string &list, const std::vector<std::pair<std::string, uint64_t>> &reasons) {
        JsonObject object(list);
        for (auto &[reason, n] : reasons) object.number(reason, n);
    };
    JsonLine line(out, "ledger");
    line.number("fired", ledger.fired).number("shown", ledger.shown).number("filtered", ledger.filtered);
    line.number("sampled_out", ledger.sampled_out);
    counts(line.raw("lost"), ledger.lost);
    counts(line.raw("degraded"), ledger.degraded);
    if (!ledger.stack_ends.empty()) counts(line.raw("stack_ends"), ledger.stack_ends);
    if (!ledger.waits.empty()) counts(line.raw("waits"), ledger.waits);
}

} // namespace rawbpf::inline v0::render
