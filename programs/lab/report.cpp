#include "programs/lab/report.h"

#include "programs/render/json_line.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::lab {

std::string finding_text(const Report &report, const Finding &finding) {
    std::string out = finding.sentence;
    while (out.ends_with('\n')) out.pop_back();
    if (!finding.why.empty()) append(out, ": {}", finding.why);
    const bool named = finding.sentence.find(format("{}:{}", report.file, finding.line)) != std::string::npos;
    if (finding.line != 0 && !named) append(out, ", {}:{}", report.file, finding.line);
    return out;
}

std::string report_text(const Report &report) {
    std::string out;
    for (const Finding &finding : report.findings) {
        append(out, "{}\n", finding_text(report, finding));
        if (!finding.hint.empty()) append(out, "hint: {}\n", finding.hint);
    }
    if (report.passed()) {
        append(out, "lesson {} ({}): solved", report.number, report.lesson);
        if (!report.scripted)
            append(out, ": {} expectation{}", report.expectations, report.expectations == 1 ? " holds" : "s hold");
        out += '\n';
        return out;
    }
    append(out, "rawbpf lab check: lesson {} is not solved yet", report.number);
    if (report.failed != 0) append(out, ": {} of {} expectations failed", report.failed, report.expectations);
    out += '\n';
    return out;
}

std::string report_json(const Report &report) {
    std::string out;
    for (const Finding &finding : report.findings) {
        render::JsonLine line(out, "finding");
        line.text("kind", finding.kind).text("file", report.file);
        finding.line != 0 ? line.number("line", finding.line) : line.null("line");
        line.text("message", finding.sentence).text_or_null("why", finding.why).text_or_null("hint", finding.hint);
    }
    render::JsonLine(out, "result")
        .number("lesson", report.number)
        .text("name", report.lesson)
        .truth("passed", report.passed())
        .number("findings", report.findings.size())
        .number("expectations", report.expectations)
        .number("failed", report.failed);
    return out;
}

} // namespace rawbpf::inline v0::lab
