// `rawbpf compare`: what differs between results, beyond noise. Reading and judging are programs/compare's; here it is shown.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "cli/suggest.h"
#include "programs/compare/chart.h"
#include "programs/compare/compare.h"
#include "programs/experiment/show.h"
#include "programs/render/columns.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf compare";

constexpr Option kOptions[] = {
    {.name = "figure",
     .kind = OptionKind::text,
     .repeatable = true,
     .argument = "NAME",
     .help = "compare only this figure: verified_insns, 'kernel ns', the name in a line `measure`; several may be given",
     .section = "What to compare"},
    {.name = "least",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "show only differences of at least N percent of the value before",
     .fallback = "0",
     .most = 1'000'000},
    {.name = "all", .help = "also show what doesn't differ, and what can't be decided"},
    {.name = "expect-same", .help = "end with status 4 if the output shows any difference"},
    format_option("text", "text json csv svg"),
    kJsonOption,
    {.name = "csv", .help = "short for --format csv", .stands_for = "format=csv"},
    kOutputOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf compare before.json after.json", "two results of rawbpf run --repeat 20 --json, bench --json or load --json"},
    {"rawbpf compare --figure verified_insns --least 5 5.10.json 6.1.json 6.12.json", "what do newer verifiers go through?"},
    {"rawbpf compare --expect-same before.json after.json", "for scripts: status 4 if anything differs"},
    {"rawbpf compare sweep.json", "the variants of one file: each with the first"},
    {"rawbpf compare sweep.json -f svg -o sweep.svg", "all figures of the sweep as a picture: kernels, variants, intervals"},
};

using compare::Row;
using compare::Verdict;
using experiment::number_text;

bool is_difference(Verdict verdict) {
    return verdict == Verdict::differs || verdict == Verdict::only_before || verdict == Verdict::only_after;
}

std::string side(const compare::Figure *figure, double value) {
    if (!figure) return "-";
    if (figure->values.empty()) return figure->word;
    return figure->exact || figure->values.size() == 1 ? number_text(value)
                                                       : format("{} ({})", number_text(value), figure->values.size());
}

bool has_numbers(const Row &row) { return row.before && row.after && !row.before->values.empty() && !row.after->values.empty(); }

std::string signed_text(double value) { return format("{}{}", value > 0 ? "+" : "", number_text(value)); }

std::string difference_text(const Row &row) {
    if (!has_numbers(row)) return "";
    std::string out = signed_text(row.difference.value);
    if (row.before_value != 0 && row.difference.value != 0) {
        const double percent = row.relative() * 100;
        append(out, " ({}{:.{}f} %)", percent > 0 ? "+" : "", percent, percent > -10 && percent < 10 ? 1 : 0);
    }
    return out;
}

std::string note(const Row &row) {
    if (row.verdict == Verdict::differs)
        return has_numbers(row) && row.difference.low != row.difference.high
                   ? format("{} to {}", signed_text(row.difference.low), signed_text(row.difference.high))
                   : std::string();
    return std::string(compare::verdict_text(row.verdict));
}

struct Shown {
    std::vector<const Row *> rows;
    size_t differ = 0, alike = 0, few = 0, smaller = 0;
};

Shown choose(const compare::Comparison &comparison, const Arguments &a) {
    const std::vector<std::string_view> only = a.all(option("figure"));
    const double least = static_cast<double>(a.count(option("least"))) / 100;
    Shown out;
    for (const Row &row : comparison.rows) {
        if (!only.empty() && std::find(only.begin(), only.end(), row.figure().name) == only.end()) continue;
        const double share = row.relative() < 0 ? -row.relative() : row.relative();
        const bool differs = is_difference(row.verdict);
        // From 0 anything is more than any share.
        if (differs && has_numbers(row) && row.before_value != 0 && share < least) {
            ++out.smaller;
            continue;
        }
        differs ? ++out.differ : row.verdict == Verdict::few ? ++out.few : ++out.alike;
        if (differs || a.has(option("all"))) out.rows.push_back(&row);
    }
    return out;
}

/// --figure names figures that there are.
Result<void> check_figures(const std::vector<compare::Document> &documents, const Arguments &a) {
    std::vector<std::string_view> names;
    for (const compare::Document &document : documents)
        for (const compare::Figure &figure : document.figures)
            if (std::find(names.begin(), names.end(), figure.name) == names.end()) names.push_back(figure.name);
    for (const std::string_view asked : a.all(option("figure"))) {
        if (std::find(names.begin(), names.end(), asked) != names.end()) continue;
        const Suggestion near = nearest(asked, names);
        std::string hint = near.close ? format("did you mean '{}'?", near.word) : std::string("there are:");
        for (size_t i = 0; !near.close && i < names.size() && i < 20; ++i) append(hint, "{} {}", i == 0 ? "" : ",", names[i]);
        return Unexpected(
            make_error(Errc::invalid_argument, format("there is no figure {} in these files", asked), std::move(hint)));
    }
    return {};
}

std::string fact_text(const std::string &text) { return text.empty() ? "not known" : text; }

void append_text(std::string &out, const std::vector<compare::Document> &documents, const compare::Comparison &comparison,
                 const Shown &shown) {
    append(out, "before  {}\n", documents[0].name);
    for (size_t i = 1; i < documents.size(); ++i) {
        append(out, "after   {}\n", documents[i].name);
        for (const compare::Change &change : comparison.changes)
            if (change.other == i)
                append(out, "        {}{}{}: {}, was {}\n", change.kernel, change.kernel.empty() ? "" : " ", change.fact,
                       fact_text(change.after), fact_text(change.before));
    }
    if (!shown.rows.empty()) {
        const bool subjects =
            std::any_of(shown.rows.begin(), shown.rows.end(), [](const Row *row) { return !row->figure().subject.empty(); });
        std::vector<render::Column> columns;
        if (documents.size() > 2) columns.push_back({"AFTER"});
        if (comparison.kernels) columns.push_back({"KERNEL"});
        if (comparison.files) columns.push_back({"FILE"});
        if (subjects) columns.push_back({"OF"});
        for (const render::Column &each :
             {render::Column{"FIGURE"}, {"BEFORE", true}, {"AFTER", true}, {"DIFFERENCE", true}, {"INTERVAL"}})
            columns.push_back(each);
        render::Columns table(std::move(columns));
        for (const Row *row : shown.rows) {
            std::vector<std::string> cells;
            if (documents.size() > 2) cells.push_back(documents[row->other].name);
            if (comparison.kernels) cells.push_back(row->figure().kernel);
            if (comparison.files) cells.push_back(row->figure().file);
            if (subjects) cells.push_back(row->figure().subject);
            for (std::string &cell :
                 std::vector<std::string>{row->figure().name, side(row->before, row->before_value),
                                          side(row->after, row->after_value), difference_text(*row), note(*row)})
                cells.push_back(std::move(cell));
            table.row(std::move(cells));
        }
        out += '\n';
        table.append_to(out);
        out += '\n';
    }
    append(out, "{} figure{} differ{}, {} {}\n", shown.differ, shown.differ == 1 ? "" : "s", shown.differ == 1 ? "s" : "",
           shown.alike, shown.alike == 1 ? "doesn't" : "don't");
    if (shown.smaller != 0) append(out, "{} differ by less than was asked for\n", shown.smaller);
    if (shown.few != 0)
        append(out, "{} can't be told: it takes {} values or more on each side (--repeat {})\n", shown.few,
               comparison.least_values, comparison.least_values);
}

// A number as it can be read back.
std::string exact(double value) { return format("{}", value); }

void append_csv(std::string &out, const std::vector<compare::Document> &documents, const Shown &shown) {
    out += "before_file,after_file,kernel,file,subject,figure,before,after,difference,low,high,relative,verdict\n";
    for (const Row *row : shown.rows) {
        const compare::Figure &f = row->figure();
        const auto value = [](const compare::Figure *figure, double number) {
            return !figure ? std::string() : figure->values.empty() ? figure->word : exact(number);
        };
        std::vector<std::string> cells = {documents[0].name,
                                          documents[row->other].name,
                                          f.kernel,
                                          f.file,
                                          f.subject,
                                          f.name,
                                          value(row->before, row->before_value),
                                          value(row->after, row->after_value)};
        if (has_numbers(*row))
            for (const double number : {row->difference.value, row->difference.low, row->difference.high, row->relative()})
                cells.push_back(exact(number));
        else
            cells.resize(cells.size() + 4);
        cells.emplace_back(compare::verdict_text(row->verdict));
        for (size_t i = 0; i < cells.size(); ++i) render::append_csv(i == 0 ? out : out += ',', cells[i]);
        out += '\n';
    }
}

void append_side(render::JsonLine &line, std::string_view name, const compare::Figure *figure, double value) {
    if (!figure)
        line.null(name);
    else if (figure->values.empty())
        line.text(name, figure->word);
    else
        line.raw(name) += exact(value);
}

void append_json(std::string &out, const std::vector<compare::Document> &documents, const compare::Comparison &comparison,
                 const Shown &shown) {
    for (const compare::Change &change : comparison.changes)
        render::JsonLine(out, "environment")
            .text("before_file", documents[0].name)
            .text("after_file", documents[change.other].name)
            .text_or_null("kernel", change.kernel)
            .text("fact", change.fact)
            .text_or_null("before", change.before)
            .text_or_null("after", change.after);
    for (const Row *row : shown.rows) {
        const compare::Figure &f = row->figure();
        render::JsonLine line(out, "comparison");
        line.text("before_file", documents[0].name).text("after_file", documents[row->other].name);
        line.text_or_null("kernel", f.kernel)
            .text_or_null("file", f.file)
            .text_or_null("subject", f.subject)
            .text("figure", f.name);
        append_side(line, "before", row->before, row->before_value);
        append_side(line, "after", row->after, row->after_value);
        line.number("before_values", row->before ? row->before->values.size() : 0);
        line.number("after_values", row->after ? row->after->values.size() : 0);
        const bool numbers = has_numbers(*row);
        for (const auto &[name, value] : {std::pair<const char *, double>{"difference", row->difference.value},
                                          {"low", row->difference.low},
                                          {"high", row->difference.high},
                                          {"relative", row->relative()}})
            line.raw(name) += numbers ? exact(value) : "null";
        line.text("verdict", compare::verdict_text(row->verdict));
    }
    render::JsonLine(out, "summary")
        .number("differ", shown.differ)
        .number("alike", shown.alike)
        .number("smaller", shown.smaller)
        .number("too_few_values", shown.few);
}

Result<std::vector<compare::Document>> read_documents(const Arguments &a) {
    std::vector<compare::Document> out;
    for (const std::string_view path : a.operands()) {
        const InputFile file = TRY(InputFile::open(path));
        const std::string_view text(reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size());
        out.push_back(TRY(compare::read_document(text, file.name())));
    }
    if (out.size() > 1) return out;
    std::vector<compare::Document> parts = compare::parts_of(out[0]);
    if (parts.size() < 2)
        return Unexpected(make_error(Errc::bad_input,
                                     format("{} holds one variant of one kernel: there is nothing to compare", out[0].name),
                                     "a second file, or a result of rawbpf run --set NAME=A,B --json"));
    return parts;
}

int run_compare(const Arguments &a) {
    Result<std::vector<compare::Document>> documents = read_documents(a);
    if (!documents) return complain(kWho, documents.error());
    if (Result<void> known = check_figures(*documents, a); !known) return complain(kWho, known.error(), 2);
    const compare::Comparison comparison = compare::with_first(*documents);
    const Shown shown = choose(comparison, a);
    std::string text;
    const std::string_view form = a.text(option("format"));
    if (form == "json") {
        append_json_header(text, a);
        append_json(text, *documents, comparison, shown);
    } else if (form == "csv") {
        append_csv(text, *documents, shown);
    } else if (form == "svg") {
        text = compare::chart(*documents, a.all(option("figure")));
    } else {
        append_text(text, *documents, comparison, shown);
        text = printable_lines(text);
    }
    if (const int written = write_result(kWho, a.text(option("output")), text); written != 0) return written;
    return a.has(option("expect-same")) && shown.differ != 0 ? 4 : 0;
}

} // namespace

const Command kCompare{
    .name = "compare",
    .summary = "tell what differs between results, beyond noise, and by how much",
    .description =
        "Compares results of rawbpf run --json, rawbpf bench --json or rawbpf load --json: each FILE with the first. With one "
        "FILE, compare takes the kernels, variants or files in it and compares each with the first. Two figures are compared if "
        "they have the same kernel (where there are several), file (without its folder), program or variant, and name.\n\n"
        "Counts, such as instructions, bytes and states, differ if they aren't equal. Measured figures differ if the confidence "
        "interval of the difference of the medians excludes zero. The intervals are corrected for the number of figures: among "
        "all figures of a comparison, if nothing differs, the chance that compare reports any difference is at most 5 %. This "
        "needs four or more values on "
        "each side, and more if there are many figures: rawbpf run --repeat 20 gives them.\n\n"
        "With -f svg, compare draws the figures instead (all, or those of --figure): one panel per figure, one row per kernel, "
        "file and variant, with all values, the median and its interval. --all and --least choose rows of the table, not of "
        "the picture.\n\n"
        "Above the table, compare lists how the machines differ: kernel, CPU, governor, mitigations, load. Two series that were "
        "measured at different times may also differ because the machine did other work meanwhile. Variants of one run (--set "
        "NAME=A,B) take turns, which avoids this.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "FILE",
    .least_operands = 1,
    .most_operands = 64,
    .operand_is_file = true,
    .run = run_compare,
};

} // namespace rawbpf::inline v0::cli
