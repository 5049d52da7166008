// A machine's state drifts: it gets warm, caches fill, something else begins to run. If one variant were measured after the
// other, the drift would pass for a difference between them. So the variants take turns, round after round:
//
//      round 0   512   4k   64k
//      round 1   4k    64k  512
//      round 2   64k   512  4k
//
// What a series of values says is programs/measure's.
#include "programs/experiment/series.h"

#include <algorithm>
#include <cmath>

#include "programs/experiment/show.h"
#include "programs/measure/statistics.h"
#include "programs/render/columns.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr size_t kMostVariants = 1000;

std::vector<std::string> values_of(std::string_view text) {
    std::vector<std::string> out(1);
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ',')
            out.back() += text[++i];
        else if (text[i] == ',')
            out.emplace_back();
        else
            out.back() += text[i];
    }
    return out;
}

// A number as JSON and CSV have it: as short as it can be read back.
std::string exact(double value) { return std::isfinite(value) ? format("{}", value) : "null"; }

} // namespace

Result<std::vector<Variant>> variants_of(std::span<const std::string_view> given) {
    std::vector<Variant> out(1);
    for (size_t i = 0; i < given.size(); ++i) {
        const std::string_view text = given[i];
        const size_t at = text.find('=');
        if (at == text.npos || at == 0) return fail(Errc::invalid_argument, "--set {}: expected NAME=VALUE", text);
        const std::string_view name = text.substr(0, at);
        for (const std::string_view other : given.first(i))
            if (other.substr(0, other.find('=')) == name)
                return Unexpected(make_error(Errc::invalid_argument, format("--set {} is given twice", name),
                                             format("several values are separated by commas: --set {}=1,2", name)));
        const std::vector<std::string> values = values_of(text.substr(at + 1));
        if (values.size() > 1 && std::find(values.begin(), values.end(), "") != values.end())
            return Unexpected(make_error(Errc::invalid_argument, format("--set {}: one of its values is empty", text),
                                         "a comma within a value is written \\,"));
        if (out.size() * values.size() > kMostVariants)
            return fail(Errc::invalid_argument, "--set: more than {} combinations of values", kMostVariants);
        std::vector<Variant> all;
        for (const Variant &before : out)
            for (const std::string &value : values) {
                Variant &one = all.emplace_back(before);
                one.settings.push_back({std::string(name), value});
                if (values.size() > 1) append(one.name, "{}{}={}", one.name.empty() ? "" : " ", name, value);
            }
        out = std::move(all);
    }
    return out;
}

size_t turn_of(size_t round, size_t n, size_t variants) { return (round + n) % variants; }

Series::Row &Series::row_of(size_t variant, const std::string &measure) {
    const auto same = [&](const Row &row) { return row.variant == variant && row.measure == measure; };
    const auto row = std::find_if(rows_.begin(), rows_.end(), same);
    if (row != rows_.end()) return *row;
    const auto later = [&](const Row &other) { return other.variant > variant; };
    return *rows_.insert(std::find_if(rows_.begin(), rows_.end(), later), Row{variant, measure});
}

void Series::add(size_t variant, std::span<const std::pair<std::string, Number>> measures) {
    for (const auto &[measure, value] : measures) row_of(variant, measure).values.push_back(static_cast<double>(value));
}

void Series::add(size_t variant, const std::string &measure, std::span<const double> values) {
    std::vector<double> &all = row_of(variant, measure).values;
    all.insert(all.end(), values.begin(), values.end());
}

void Series::append_text(std::string &out) const {
    render::Columns table{{variants_.size() > 1 ? "variant" : "", false},
                          {"figure"},
                          {"values", true},
                          {"minimum", true},
                          {"median", true},
                          {"95 % interval"},
                          {"MAD", true}};
    bool few = false;
    for (const Row &row : rows_) {
        const measure::Summary summary = measure::summary(row.values);
        few |= !summary.median.enough;
        table.row(
            {variants_[row.variant], row.measure, format("{}", summary.count), number_text(summary.least),
             number_text(summary.median.value),
             summary.median.enough ? format("{} to {}", number_text(summary.median.low), number_text(summary.median.high)) : "-",
             number_text(summary.deviation)});
    }
    table.append_to(out);
    if (few)
        append(out, "An interval takes {} values or more (--repeat {}).\n", measure::kLeastForInterval,
               measure::kLeastForInterval);
}

void Series::append_csv(std::string &out) const {
    out += "variant,figure,values,minimum,median,low,high,mad\n";
    for (const Row &row : rows_) {
        const measure::Summary s = measure::summary(row.values);
        render::append_csv(out, variants_[row.variant]);
        render::append_csv(out += ',', row.measure);
        append(out, ",{},{},{},{},{},{}\n", s.count, exact(s.least), exact(s.median.value),
               s.median.enough ? exact(s.median.low) : "", s.median.enough ? exact(s.median.high) : "", exact(s.deviation));
    }
}

void Series::append_json(std::string &out) const {
    for (const Row &row : rows_) {
        const measure::Summary s = measure::summary(row.values);
        render::JsonLine line(out, "figure");
        line.text("variant", variants_[row.variant]).text("figure", row.measure);
        std::string &values = line.raw("values");
        for (size_t i = 0; i < row.values.size(); ++i) append(values, "{}{}", i == 0 ? "[" : ",", exact(row.values[i]));
        values += ']';
        line.raw("minimum") += exact(s.least);
        line.raw("median") += exact(s.median.value);
        line.raw("low") += s.median.enough ? exact(s.median.low) : "null";
        line.raw("high") += s.median.enough ? exact(s.median.high) : "null";
        line.raw("mad") += exact(s.deviation);
    }
}

} // namespace rawbpf::inline v0::experiment
