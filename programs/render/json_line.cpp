// JSON lines, every command's: braces, commas and numbers. What needs care, text of any bytes, is the library's.
#include "programs/render/json_line.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "programs/render/digits.h"
#include "programs/render/run_facts.h"
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
    append_decimal(raw(name), value);
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
    std::string &out = raw(name);
    out += '"';
    append_hex(out, value);
    out += '"';
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

void append_json_labels(std::string &out, const Labels &labels) {
    JsonObject object(out);
    for (const auto &[key, value] : labels) append_json(object.key(key), value);
}

void append_json_frames(std::string &out, const std::vector<FramePtr> &frames) {
    out += '[';
    for (const FramePtr &frame : frames) {
        if (out.back() != '[') out += ',';
        append_json_frame(out, *frame);
    }
    out += ']';
}

namespace {

void append_numbers(std::string &out, std::string_view words) {
    out += '[';
    for (std::string_view rest = words; !rest.empty();) {
        const std::string_view one = rest.substr(0, rest.find(' '));
        if (one.find_first_not_of("0123456789.") == std::string_view::npos)
            append(out, "{}{}", out.ends_with('[') ? "" : ",", one);
        rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    }
    out += ']';
}

void append_texts(std::string &out, const std::vector<std::pair<std::string, std::string>> &texts) {
    JsonObject object(out);
    for (const auto &[name, text] : texts) append_json(object.key(name), text);
}

void append_environment(std::string &out, const Environment &e) {
    JsonObject object(out);
    object.text_or_null("cpu", e.cpu).text_or_null("virtualization", e.virtualization).text_or_null("governor", e.governor);
    object.text_or_null("clock", e.clock);
    e.jit < 0 ? object.null("bpf_jit") : object.number("bpf_jit", static_cast<uint64_t>(e.jit));
    e.jit_harden < 0 ? object.null("bpf_jit_harden") : object.number("bpf_jit_harden", static_cast<uint64_t>(e.jit_harden));
    if (e.load)
        append_numbers(object.raw("load"), *e.load);
    else
        object.null("load");
    if (e.mitigations)
        append_texts(object.raw("mitigations"), *e.mitigations);
    else
        object.null("mitigations");
    append_texts(object.raw("unread"), e.unread);
}

void append_cost(JsonObject &line, const Ledger &ledger, const RunCost &cost) {
    if (cost.seconds <= 0) return;
    line.number("duration_ns", static_cast<uint64_t>(cost.seconds * 1e9));
    append(line.raw("per_second"), "{:.1f}", static_cast<double>(ledger.fired) / cost.seconds);
    JsonObject object(line.raw("cost"));
    object.number("bpf_runs", cost.bpf_runs).number("bpf_ns", cost.bpf_ns);
    if (cost.bpf_runs)
        append(object.raw("bpf_ns_a_run"), "{:.1f}", static_cast<double>(cost.bpf_ns) / static_cast<double>(cost.bpf_runs));
    else
        object.null("bpf_ns_a_run"); // the kernel doesn't count them (before 5.8), or nothing ran
    object.number("cpu_ns", static_cast<uint64_t>(cost.cpu_seconds * 1e9));
    object.number("memory_bytes", cost.memory_bytes)
        .number("table_bytes", cost.table_bytes)
        .number("ring_bytes", cost.ring_bytes);
}

void append_advice(std::string &out, const std::vector<StackAdvice> &advice) {
    out += '[';
    for (const StackAdvice &one : advice) {
        if (out.back() != '[') out += ',';
        JsonObject(out)
            .text("where", one.where)
            .number("stacks", one.stacks)
            .number("early", one.early)
            .text("advice", one.advice);
    }
    out += ']';
}

} // namespace

void append_json_header(std::string &out, const RunInfo &run) {
    JsonLine line(out, "header");
    line.number("schema", 1);
    append_json_texts(line.raw("command"), run.command);
    line.text_or_null("version", run.version).text_or_null("kernel", run.kernel).text_or_null("arch", run.arch);
    line.number("cpus", run.cpus).text("start", rfc3339(run.start_wall_ns));
    if (!run.event.empty()) line.text("event", run.event);
    if (run.period) line.number("period", run.period);
    if (run.environment) append_environment(line.raw("environment"), run.environment());
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
    if (!ledger.languages.empty()) counts(line.raw("languages"), ledger.languages);
    if (!ledger.waits.empty()) counts(line.raw("waits"), ledger.waits);
    if (!ledger.cost) return;
    append_cost(line, ledger, *ledger.cost);
    if (!ledger.cost->advice.empty()) append_advice(line.raw("advice"), ledger.cost->advice);
}

} // namespace rawbpf::inline v0::render
