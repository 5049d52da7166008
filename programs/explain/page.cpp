// An explanation as one self-contained page: the data as JSON within it, a style sheet and a script (page_assets.cpp).
//
//      {"strings": ["scalar()", ...],                           every text once: values repeat a thousand times
//       "lines": [[file, line, source], ...],
//       "insns": [[number, text, line, visits, jumps, straight, pruned, ends, target, [[place, frame, [values]]]], ...],
//       "path": [[row, way, frame, [[place, frame, value]]], ...],   way: 0 no branch, 1 jumps, 2 straight on
//       "causes": [[step of the path, text], ...]}
//
// Texts are numbers of "strings". A page of 10,000 instructions stays below 3 MB; of a longer path only its last kPathSteps are
// in it.
#include "programs/explain/page.h"

#include <algorithm>
#include <unordered_map>

#include "asm/kinds.h"
#include "programs/explain/summary.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::explain {

namespace {

constexpr size_t kPathSteps = 10'000;

// A string of JSON within HTML: no `<`, which could end the script.
void append_string(std::string &out, std::string_view text) {
    std::string whole;
    render::append_utf8(whole, text);
    out += '"';
    for (char c : whole) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            append(out, "\\{}", c);
        else if (byte < 0x20 || c == '<' || byte == 0x7f)
            append(out, "\\u{:04x}", unsigned(byte));
        else
            out += c;
    }
    out += '"';
}

class Strings {
  public:
    size_t number(std::string_view text) {
        const auto [at, is_new] = numbers_.try_emplace(std::string(text), numbers_.size());
        if (is_new) all_.emplace_back(text);
        return at->second;
    }
    void append_to(std::string &out) const {
        out += "\"strings\":[";
        for (size_t i = 0; i < all_.size(); ++i) {
            if (i) out += ',';
            append_string(out, all_[i]);
        }
        out += ']';
    }

  private:
    std::unordered_map<std::string, size_t> numbers_;
    std::vector<std::string> all_;
};

int64_t target_of(const Insn &insn, uint32_t at) {
    const unsigned kind = insn.code & 7u, operation = insn.code & 0xf0u;
    if ((kind != 5 && kind != 6) || operation == 0x80 || operation == 0x90) return -1;
    return int64_t(at) + 1 + (insn.code == 0x06 ? insn.imm : insn.off);
}

// The path to show: that to the refusal; else the first that came to an end.
std::vector<uint32_t> path_of(const Explanation &e) {
    if (!e.path.empty()) return e.path;
    for (uint32_t n = 1; n < e.trace.steps.size(); ++n)
        if (e.trace.steps[n].end == StepEnd::exit || e.trace.steps[n].end == StepEnd::pruned) return e.trace.path_to(n);
    return e.trace.path_to(static_cast<uint32_t>(e.trace.steps.size() - 1));
}

struct PageWriter {
    const Explanation &e;
    Strings strings;
    std::vector<size_t> rows; ///< of each slot: the row that it is in
    std::string lines, insns, path, causes;

    void write_insns() {
        const std::vector<InsnSummary> all = summarize(e);
        std::unordered_map<std::string, size_t> known_lines;
        rows.assign(e.program.insns.size(), 0);
        size_t row = 0;
        for (uint32_t i = 0; i < e.program.insns.size(); i += is_wide(e.program.insns[i]) ? 2 : 1) {
            rows[i] = row++;
            const ProgramPlace at = e.places.at(i);
            int64_t line = -1;
            if (at.line) {
                const auto [found, is_new] = known_lines.try_emplace(format("{}:{}", at.file, at.line), known_lines.size());
                line = static_cast<int64_t>(found->second);
                if (is_new)
                    append(lines, "{}[{},{},{}]", lines.empty() ? "" : ",", strings.number(at.file), at.line,
                           strings.number(at.source));
            }
            const InsnSummary &here = all[i];
            append(insns, "{}[{},{},{},{},{},{},{},{},{},[", insns.empty() ? "" : ",", i, strings.number(insn_text(e, i)), line,
                   here.visits, here.jumps, here.straight, here.pruned, here.ends, target_of(e.program.insns[i], i));
            for (size_t p = 0; p < here.places.size(); ++p) {
                append(insns, "{}[{},{},[", p ? "," : "", here.places[p].known.place, unsigned(here.places[p].known.frame));
                for (size_t v = 0; v < here.places[p].values.size(); ++v)
                    append(insns, "{}{}", v ? "," : "", strings.number(here.places[p].values[v]));
                insns += "]]";
            }
            insns += "]]";
        }
    }

    void write_path() {
        const std::vector<uint32_t> all = path_of(e);
        const size_t from = all.size() > kPathSteps ? all.size() - kPathSteps : 0;
        for (size_t i = from; i < all.size(); ++i) {
            const TraceStep &step = e.trace.steps[all[i]];
            const bool branch = step.end == StepEnd::split || step.end == StepEnd::decided;
            append(path, "{}[{},{},{},[", i > from ? "," : "", rows[step.insn], branch ? (step.taken ? 1 : 2) : 0,
                   unsigned(step.frame));
            for (uint32_t n = 0; n < step.known_count; ++n) {
                const Known &known = e.trace.known[step.known + n];
                append(path, "{}[{},{},{}]", n ? "," : "", known.place, unsigned(known.frame), strings.number(known.text));
            }
            path += "]]";
        }
        for (const Cause &cause : e.chain.causes)
            if (cause.at >= from)
                append(causes, "{}[{},{}]", causes.empty() ? "" : ",", cause.at - from, strings.number(cause.text));
    }
};

} // namespace

void append_page(std::string &out, const Explanation &e) {
    PageWriter writer{e, {}, {}, {}, {}, {}, {}};
    writer.write_insns();
    writer.write_path();
    const std::string_view verdict = e.trace.outcome == verifier::Outcome::refused    ? "refused"
                                     : e.trace.outcome == verifier::Outcome::accepted ? "accepted"
                                                                                      : "not decided";
    std::string data = "{";
    for (auto [name, text] : {std::pair<std::string_view, std::string_view>{"object", e.spec.name},
                              {"program", e.program.name},
                              {"section", e.program.section},
                              {"verdict", verdict},
                              {"by", e.trace.own ? "the model of the verifier" : "the kernel"},
                              {"reason", e.trace.reason},
                              {"conclusion", e.chain.conclusion},
                              {"remedy", e.remedy.text},
                              {"hint", e.refusal.hint}}) {
        append(data, "\"{}\":", name);
        append_string(data, text);
        data += ',';
    }
    append(data, "\"processed\":{},\"states\":{},\"at\":{},", e.trace.processed, e.trace.states, e.trace.insn);
    writer.strings.append_to(data);
    append(data, ",\"lines\":[{}],\"insns\":[{}],\"path\":[{}],\"causes\":[{}]}}", writer.lines, writer.insns, writer.path,
           writer.causes);
    out += "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
           "content=\"width=device-width\">\n<title>";
    render::append_xml(out, format("{}: {} {}", e.spec.name, e.program.name, verdict));
    out += "</title>\n<style>";
    out += kPageStyle;
    out += "</style>\n</head>\n<body>\n";
    out += kPageBody;
    out += "<script type=\"application/json\" id=\"data\">";
    out += data;
    out += "</script>\n<script>";
    out += kPageScript;
    out += "</script>\n</body>\n</html>\n";
}

} // namespace rawbpf::inline v0::explain
