// A dot plot: each value is a faint dot, the median a large one, its interval a line. Unlike bars, dots need no axis that begins
// at zero, so that a difference of 2 % can be seen; where zero is near it is shown. The position of each element follows from its
// index, so nothing is searched for and nothing overlaps:
//
//      title
//      reads                                      <- a panel: one figure
//        6.1    block=4k   ..o--O--o..      1,204     rows: document, variant; values, median with interval
//        6.1    block=64k      .o-O-o.      1,377
//                       |----|----|----|              axis
#include "programs/compare/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>

#include "programs/experiment/show.h"
#include "programs/measure/statistics.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::compare {
namespace {

constexpr int kMargin = 24, kIndent = 12, kRow = 20, kPlot = 460, kPanelGap = 26, kTick = 18;
constexpr size_t kMostPanels = 40, kMostRows = 200, kMostLabel = 48, kMostTitle = 300, kColours = 8;
constexpr double kLargest = 1e300; // beyond this, the difference of two values may be no number

// c0 to c7: at least 3 : 1 against the panel, light and dark (WCAG 2.2, 1.4.11).
constexpr std::string_view kStyle =
    R"css(
svg { --ink: #1d2430; --faint: #68707d; --page: #ffffff; --panel: #f5f6f8; --edge: #c3cad5; font: 12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace; }
.c0 { --dot: #1f6feb; } .c1 { --dot: #c92a2a; } .c2 { --dot: #2b8a3e; } .c3 { --dot: #9c36b5; } .c4 { --dot: #b35900; } .c5 { --dot: #0b7285; } .c6 { --dot: #a61e4d; } .c7 { --dot: #5c677d; }
@media (prefers-color-scheme: dark) { svg { --ink: #e4e7ec; --faint: #98a1b0; --page: #14171c; --panel: #1c2027; --edge: #454c59; }
.c0 { --dot: #6ea8ff; } .c1 { --dot: #ff8787; } .c2 { --dot: #69db7c; } .c3 { --dot: #da77f2; } .c4 { --dot: #ffa94d; } .c5 { --dot: #3bc9db; } .c6 { --dot: #f783ac; } .c7 { --dot: #adb5bd; } }
.page { fill: var(--page); } .panel { fill: var(--panel); } .edge { stroke: var(--edge); } text { fill: var(--ink); white-space: pre; } .faint { fill: var(--faint); }
.row { fill: var(--dot); stroke: var(--dot); } .row circle { stroke: none; } .value { opacity: .6; }
.title { font: 600 18px system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; } .name { font-weight: 600; } .right { text-anchor: end; } .middle { text-anchor: middle; }
)css";

struct Line {
    size_t document = 0;
    std::string thing; ///< what else the row is of: "block=4k"
    const Figure *figure = nullptr;
};
struct Panel {
    std::string_view name;
    std::vector<Line> rows;
    size_t document = 0, drawn = 0; ///< of the document that is being read
    size_t more = 0;                ///< rows that aren't drawn
};

// The kernel only where a document has several: elsewhere it is the document's, or the same of all.
std::string thing_of(const Figure &f, bool kernels) {
    std::string out;
    for (const std::string *part : {kernels ? &f.kernel : nullptr, &f.file, &f.subject})
        if (part && !part->empty()) append(out, "{}{}", out.empty() ? "" : " ", *part);
    return out;
}

struct Panels {
    std::vector<Panel> all;
    size_t more = 0;      ///< panels that aren't drawn
    size_t too_large = 0; ///< figures that aren't drawn
};

Panels panels_of(std::span<const Document> documents, std::span<const std::string_view> only) {
    Panels out;
    const bool kernels =
        std::any_of(documents.begin(), documents.end(), [](const Document &d) { return several(d, &Figure::kernel); });
    // Each document has its share: a file of 1,000 programs leaves room for the one that it is compared with.
    const size_t most_rows = std::max<size_t>(1, kMostRows / std::max<size_t>(1, documents.size()));
    std::map<std::string_view, size_t> known; // a figure's name -> its panel
    for (size_t i = 0; i < documents.size(); ++i)
        for (const Figure &figure : documents[i].figures) {
            if (figure.values.empty()) continue;
            if (!only.empty() && std::find(only.begin(), only.end(), figure.name) == only.end()) continue;
            if (std::any_of(figure.values.begin(), figure.values.end(), [](double x) { return !(std::abs(x) < kLargest); })) {
                ++out.too_large;
                continue;
            }
            const auto [at, added] = known.emplace(figure.name, known.size());
            if (at->second >= kMostPanels) continue;
            if (added) out.all.push_back({figure.name, {}});
            Panel &panel = out.all[at->second];
            if (panel.document != i) panel.document = i, panel.drawn = 0;
            if (++panel.drawn <= most_rows)
                panel.rows.push_back({i, thing_of(figure, kernels), &figure});
            else
                ++panel.more;
        }
    out.more = known.size() - out.all.size();
    return out;
}

// What tells names apart stands at their end as often as at their beginning (paths, parameters).
std::string shortened(std::string_view text, size_t most = kMostLabel) {
    constexpr size_t kPart = 2048; // of a longer name the first and the last bytes
    size_t tail = text.size() - std::min(text.size(), kPart);
    while (tail < text.size() && (text[tail] & 0xc0) == 0x80) ++tail;
    const std::string one = render::printable(
        text.size() <= 2 * kPart ? std::string(text) : format("{}...{}", text.substr(0, kPart), text.substr(tail)));
    const size_t columns = render::columns(one);
    if (columns <= most) return one;
    size_t end = one.size();
    for (size_t kept = 0; kept < most / 2 && end > 0;)
        if ((one[--end] & 0xc0) != 0x80) ++kept;
    return format("{}{}", render::cut(one, most - most / 2, "..."), std::string_view(one).substr(end));
}

// Where a value lies in a panel: from its axis' low end to its high one.
struct Axis {
    double low = 0, high = 1;
    int left = 0;
    [[nodiscard]] double x(double value) const { return left + (value - low) / (high - low) * kPlot; }
};

Axis axis_of(const Panel &panel, int left) {
    double least = kLargest, most = -kLargest;
    for (const Line &row : panel.rows)
        for (const double value : row.figure->values) least = std::min(least, value), most = std::max(most, value);
    if (least > 0 && least < most / 2) least = 0; // zero is near
    double space = (most - least) * 0.04;
    if (space == 0) space = std::abs(most) * 0.1;
    if (!(most + space > least - space)) space = 1; // all are 0, or as good as 0
    return {least == 0 ? 0 : least - space, most + space, left};
}

// A number of an axis, with as many digits as its steps need.
std::string tick_text(double value, double step) {
    int decimals = 0;
    for (double scaled = step; scaled < 0.999 && decimals < 9; scaled *= 10) ++decimals;
    if (decimals == 9 || std::abs(value) >= 1e18) return format("{:.17g}", value);
    return format("{:.{}f}", value, decimals);
}

class Chart {
  public:
    Chart(std::span<const Document> documents, Panels panels) : documents_(documents), panels_(std::move(panels)) {
        for (const Panel &panel : panels_.all)
            for (const Line &row : panel.rows) things_.emplace(row.thing, things_.size());
        if (named() && things_.size() == 1) things_.clear(); // what is the same of all tells nothing
        size_t document = 0, thing = 0, value = 6;
        for (const Document &each : documents_) {
            names_.push_back(shortened(each.name));
            if (named()) document = std::max(document, render::columns(names_.back()));
        }
        for (const auto &[each, colour] : things_) thing = std::max(thing, render::columns(shortened(each)));
        for (const Panel &panel : panels_.all)
            for (const Line &row : panel.rows)
                value = std::max(value, experiment::number_text(measure::median(row.figure->values)).size());
        thing_x_ = kMargin + kIndent + (document ? render::svg_width(document + 2) : 0);
        plot_ = thing_x_ + (thing ? render::svg_width(thing + 2) : 0);
        width_ = std::max(plot_ + kPlot + 16 + render::svg_width(value) + kMargin,
                          2 * kMargin + render::svg_width(96)); // the words below the title
    }

    std::string draw() {
        y_ = kMargin + 16;
        text(kMargin, y_, "title", panels_.all.empty() ? "No figure with numbers" : "Figures");
        y_ += 20;
        text(kMargin, y_, "faint",
             "small dots: values; large dot: median; line (six values or more): its 95 % confidence interval");
        y_ += kPanelGap;
        for (const Panel &each : panels_.all) panel(each);
        if (panels_.more != 0) remark(format("{} more figures: --figure NAME chooses", panels_.more));
        if (panels_.too_large != 0) remark(format("{} not drawn: a value is beyond 1e300", panels_.too_large));
        std::string out = format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
                                 "role=\"group\" aria-label=\"figures with their medians and intervals\">\n<style>{2}</style>\n"
                                 "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
                                 width_, y_, kStyle);
        return out + body_ + "</svg>\n";
    }

  private:
    [[nodiscard]] bool named() const { return documents_.size() > 1; }

    void panel(const Panel &p) {
        text(kMargin, y_, "name", shortened(p.name));
        y_ += 8;
        const int top = y_, height = static_cast<int>(p.rows.size()) * kRow;
        const Axis axis = axis_of(p, plot_);
        append(body_, "<rect class=\"panel\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", plot_, top, kPlot, height);
        const std::vector<double> marks = ticks(axis.low, axis.high);
        double taken = 0; // up to there stands the last mark's number
        for (const double mark : marks) {
            const double x = axis.x(mark);
            append(body_, "<line class=\"edge\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>\n", x, top, top + height);
            const std::string number = tick_text(mark, marks.size() > 1 ? marks[1] - marks[0] : 1);
            const double half = render::svg_width(number.size()) / 2.0;
            if (x - half < taken) continue;
            text(static_cast<int>(x), top + height + kTick - 4, "faint middle", number);
            taken = x + half + 6;
        }
        for (size_t i = 0; i < p.rows.size(); ++i) row(p.rows[i], axis, i == 0 || p.rows[i].document != p.rows[i - 1].document);
        y_ += kTick + kPanelGap;
        if (p.more != 0) remark(format("{} more rows aren't drawn", p.more));
    }

    void row(const Line &each, const Axis &axis, bool first) {
        const double middle = y_ + kRow / 2.0;
        const int base = y_ + kRow - 6;
        const std::vector<double> &values = each.figure->values;
        const measure::Interval median = measure::median_interval(values);
        if (named() && first) text(kMargin + kIndent, base, "", names_[each.document]);
        if (!things_.empty()) text(thing_x_, base, "", shortened(each.thing));
        append(body_, "<g class=\"row c{}\">", (things_.empty() ? each.document : things_.find(each.thing)->second) % kColours);
        if (values.size() > 1) {
            // The same place is drawn once, however many values there are.
            std::set<int> drawn;
            for (const double value : values)
                if (const double x = axis.x(value); drawn.insert(static_cast<int>(x * 2)).second)
                    append(body_, "<circle class=\"value\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\"/>", x, middle);
        }
        if (median.enough)
            append(body_, "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke-width=\"2\"/>",
                   axis.x(median.low), axis.x(median.high), middle, middle);
        append(body_, "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\"><title>", axis.x(median.value), middle);
        std::string of = shortened(each.figure->name, kMostTitle);
        if (named()) append(of, " {}", shortened(documents_[each.document].name, kMostTitle));
        if (!each.thing.empty()) append(of, " {}", shortened(each.thing, kMostTitle));
        render::append_xml(body_, format("{}: {}, of {} values", of, experiment::number_text(median.value), values.size()));
        body_ += "</title></circle></g>\n";
        text(width_ - kMargin, base, "right", experiment::number_text(median.value));
        y_ += kRow;
    }

    void remark(std::string_view words) {
        text(kMargin, y_, "faint", words);
        y_ += kPanelGap;
    }
    void text(int x, int y, std::string_view cls, std::string_view words) { render::append_svg_text(body_, x, y, cls, words); }

    std::span<const Document> documents_;
    Panels panels_;
    std::vector<std::string> names_;       ///< the documents', shortened
    std::map<std::string, size_t> things_; ///< -> its colour
    int thing_x_ = 0, plot_ = 0, width_ = 0, y_ = 0;
    std::string body_;
};

} // namespace

std::vector<double> ticks(double low, double high) {
    // Without pow() and log(): no command needs libm.
    const double rough = (high - low) / 5;
    std::vector<double> out;
    if (!(rough > 1e-300)) return out; // no step could be added to anything
    double power = 1;
    while (power > rough) power /= 10;
    while (power * 10 <= rough) power *= 10;
    double step = power * 10;
    for (const double round : {1.0, 2.0, 5.0})
        if (power * round >= rough) {
            step = power * round;
            break;
        }
    if (std::abs(low / step) > 1e15) return out;    // steps that are too small to change such a number
    auto number = static_cast<int64_t>(low / step); // by number, so that rounding errors don't add up
    if (static_cast<double>(number) * step < low) ++number;
    for (; static_cast<double>(number) * step <= high; ++number) out.push_back(static_cast<double>(number) * step);
    return out;
}

std::string chart(std::span<const Document> documents, std::span<const std::string_view> only) {
    return Chart(documents, panels_of(documents, only)).draw();
}

} // namespace rawbpf::inline v0::compare
