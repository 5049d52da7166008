// There are two kinds of figures. Counts (instructions, bytes, states) are the same in each run, so any difference is real.
// Measurements vary, and programs/measure decides whether two series differ. All figures of a file are judged at once, with a
// Bonferroni correction of the intervals: if nothing differs, a comparison reports no difference in 95 of 100 cases, however many
// figures it has.
#include "programs/compare/compare.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::compare {
namespace {

bool constant(const std::vector<double> &values) {
    return std::all_of(values.begin(), values.end(), [&](double one) { return one == values.front(); });
}

/// How figures of two documents find each other.
class Keys {
  public:
    Keys(bool kernels, bool files) : kernels_(kernels), files_(files) {}
    [[nodiscard]] std::string operator()(const Figure &f) const {
        return format("{}\n{}\n{}\n{}", kernels_ ? f.kernel : std::string(), files_ ? f.file : std::string(), f.subject, f.name);
    }

  private:
    bool kernels_, files_;
};

bool is_measured(const Row &row) {
    return row.before && row.after && row.before->word.empty() && row.after->word.empty() &&
           !(row.before->exact && constant(row.before->values) && constant(row.after->values));
}

void judge(Row &row, size_t comparisons) {
    if (!row.before || !row.after) {
        row.verdict = row.before ? Verdict::only_before : Verdict::only_after;
        return;
    }
    if (row.before->values.empty() || row.after->values.empty()) {
        row.verdict = row.before->word == row.after->word && row.before->values.empty() == row.after->values.empty()
                          ? Verdict::same
                          : Verdict::differs;
        return;
    }
    row.before_value = measure::median(row.before->values);
    row.after_value = measure::median(row.after->values);
    if (is_measured(row)) {
        row.difference = measure::median_difference(row.before->values, row.after->values, comparisons);
        row.verdict = !row.difference.enough ? Verdict::few : row.difference.beyond_zero() ? Verdict::differs : Verdict::within;
        return;
    }
    const double difference = row.after_value - row.before_value;
    row.difference = {difference, difference, difference, true};
    row.verdict = difference == 0 ? Verdict::same : Verdict::differs;
}

const Machine *machine_of(const Document &document, std::string_view kernel) {
    for (const Machine &machine : document.machines)
        if (kernel.empty() || machine.fact("kernel") == kernel) return &machine;
    return nullptr;
}

void compare_machines(const Document &first, const Document &second, size_t other, bool kernels, std::vector<Change> &out) {
    for (const Machine &before : first.machines) {
        const std::string kernel(kernels ? before.fact("kernel") : std::string_view());
        const Machine *after = machine_of(second, kernel);
        if (!after) continue;
        std::vector<std::string_view> names;
        for (const Machine *machine : {&before, after})
            for (const auto &[name, text] : machine->facts)
                if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        for (const std::string_view name : names)
            if (before.fact(name) != after->fact(name))
                out.push_back({other, kernel, std::string(name), std::string(before.fact(name)), std::string(after->fact(name))});
        // Loads are never equal. One more thread that wants to run is worth a word.
        if (const double more = after->load - before.load; before.load >= 0 && after->load >= 0 && (more >= 1 || more <= -1))
            out.push_back({other, kernel, "load", format("{}", before.load), format("{}", after->load)});
    }
}

Document part(const Document &whole, std::string name) {
    Document out;
    out.name = std::move(name);
    out.machines = whole.machines;
    return out;
}

} // namespace

std::string_view verdict_text(Verdict verdict) {
    constexpr std::string_view kTexts[] = {"same", "within noise", "differs", "too few values", "only before", "only after"};
    return kTexts[static_cast<size_t>(verdict)];
}

double Row::relative() const {
    const double base = before_value < 0 ? -before_value : before_value;
    return base == 0 ? 0 : difference.value / base;
}

Comparison with_first(std::span<const Document> documents) {
    Comparison out;
    out.kernels = std::any_of(documents.begin(), documents.end(), [](const Document &d) { return several(d, &Figure::kernel); });
    // What holds one object each is compared whatever the object is called: before.o, after.o.
    out.files = std::any_of(documents.begin(), documents.end(), [](const Document &d) { return several(d, &Figure::file); });
    const Keys key(out.kernels, out.files);
    const Document &first = documents.front();
    for (size_t other = 1; other < documents.size(); ++other) {
        std::map<std::string, const Figure *> there;
        for (const Figure &figure : documents[other].figures) there.emplace(key(figure), &figure);
        for (const Figure &figure : first.figures) {
            const auto found = there.find(key(figure));
            Row &row = out.rows.emplace_back();
            row.other = other, row.before = &figure;
            if (found == there.end()) continue;
            row.after = found->second;
            there.erase(found);
        }
        for (const Figure &figure : documents[other].figures)
            if (const auto left = there.find(key(figure)); left != there.end() && left->second == &figure) {
                Row &row = out.rows.emplace_back();
                row.other = other, row.after = &figure;
            }
        compare_machines(first, documents[other], other, out.kernels, out.changes);
    }
    const auto measured = static_cast<size_t>(std::count_if(out.rows.begin(), out.rows.end(), is_measured));
    out.least_values = measure::least_for_difference(std::max<size_t>(measured, 1));
    for (Row &row : out.rows) judge(row, std::max<size_t>(measured, 1));
    return out;
}

std::vector<Document> parts_of(const Document &document) {
    std::string Figure::*by = several(document, &Figure::kernel)    ? &Figure::kernel
                              : several(document, &Figure::file)    ? &Figure::file
                              : several(document, &Figure::subject) ? &Figure::subject
                                                                    : nullptr;
    std::vector<Document> out;
    if (!by) return out;
    for (const Figure &figure : document.figures) {
        const auto same = [&](const Document &known) { return known.name == figure.*by; };
        auto found = std::find_if(out.begin(), out.end(), same);
        if (found == out.end()) found = out.insert(out.end(), part(document, figure.*by));
        found->figures.push_back(figure);
        (found->figures.back().*by).clear(); // it is the document's name, and no longer what tells figures apart
    }
    for (Document &each : out) {
        if (by == &Figure::kernel)
            std::erase_if(each.machines, [&](const Machine &machine) { return machine.fact("kernel") != each.name; });
    }
    return out;
}

} // namespace rawbpf::inline v0::compare
