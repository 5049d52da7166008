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
#include <set>

#include "programs/experiment/show.h"
#include "programs/measure/statistics.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::compare {
namespace {

constexpr int kMargin = 24, kRow = 20, kPlot = 460, kPanelGap = 26, kTick = 18;
constexpr size_t kMostPanels = 40, kMostLabel = 48;
constexpr const char *kColours[] = {"#1f6feb", "#d9480f", "#2b8a3e", "#9c36b5", "#e67700", "#0b7285", "#c2255c", "#5c677d"};

constexpr std::string_view kStyle =
    R"css(
svg { --ink: #1d2430; --faint: #68707d; --page: #ffffff; --panel: #f5f6f8; --edge: #c3cad5; font: 12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace; }
@media (prefers-color-scheme: dark) { svg { --ink: #e4e7ec; --faint: #98a1b0; --page: #14171c; --panel: #1c2027; --edge: #454c59; } }
.page { fill: var(--page); } .panel { fill: var(--panel); } .edge { stroke: var(--edge); } text { fill: var(--ink); white-space: pre; } .faint { fill: var(--faint); }
.title { font: 600 18px system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; } .name { font-weight: 600; } .right { text-anchor: end; } .middle { text-anchor: middle; }
)css";

struct Line {
    std::string document, thing; ///< what the row is of: "6.1.0", "block=4k"
    const Figure *figure = nullptr;
    measure::Interval median;
};
struct Panel {
    std::string_view name;
    std::vector<Line> rows;
};

std::string thing_of(const Figure &f) {
    std::string out;
    for (const std::string *part : {&f.kernel, &f.file, &f.subject})
        if (!part->empty()) append(out, "{}{}", out.empty() ? "" : " ", *part);
    return out;
}

// Beyond this, the difference of two values may be no number.
bool is_too_large(double value) { return !(std::abs(value) < 1e300); }

std::vector<Panel> panels_of(std::span<const Document> documents, std::span<const std::string_view> only) {
    std::vector<Panel> out;
    for (const Document &document : documents)
        for (const Figure &figure : document.figures) {
            if (figure.values.empty() || std::any_of(figure.values.begin(), figure.values.end(), is_too_large)) continue;
            if (!only.empty() && std::find(only.begin(), only.end(), figure.name) == only.end()) continue;
            auto panel = std::find_if(out.begin(), out.end(), [&](const Panel &p) { return p.name == figure.name; });
            if (panel == out.end()) panel = out.insert(out.end(), {figure.name, {}});
            panel->rows.push_back({document.name, thing_of(figure), &figure, measure::median_interval(figure.values)});
        }
    return out;
}

std::string shortened(std::string_view text) { return render::cut(text, kMostLabel, "..."); }
int width_of(size_t columns) { return static_cast<int>(columns * 724 / 100) + 1; } // of the widest of these fonts

// Where a value lies in a panel: from its axis' low end to its high one.
struct Axis {
    double low = 0, high = 1;
    int left = 0;
    [[nodiscard]] double x(double value) const { return left + (value - low) / (high - low) * kPlot; }
};

Axis axis_of(const Panel &panel, int left) {
    double least = INFINITY, most = -INFINITY;
    for (const Line &row : panel.rows)
        for (const double value : row.figure->values) least = std::min(least, value), most = std::max(most, value);
    if (least > 0 && least < most / 2) least = 0; // zero is near
    double space = (most - least) * 0.04;
    if (space == 0) space = most == 0 ? 1 : std::abs(most) * 0.1;
    return {least == 0 ? 0 : least - space, most + space, left};
}

const char *colour_of(const std::set<std::string> &all, const std::string &one) {
    return kColours[static_cast<size_t>(std::distance(all.begin(), all.find(one))) % std::size(kColours)];
}

class Chart {
  public:
    Chart(std::span<const Document> documents, std::vector<Panel> panels) : panels_(std::move(panels)) {
        more_ = panels_.size() > kMostPanels ? panels_.size() - kMostPanels : 0;
        panels_.resize(panels_.size() - more_);
        named_ = documents.size() > 1;
        for (const Panel &panel : panels_)
            for (const Line &row : panel.rows) things_.insert(row.thing), names_.insert(row.document);
        if (named_ && things_.size() == 1) things_.clear(); // what is the same of all tells nothing
        for (const Panel &panel : panels_)
            for (const Line &row : panel.rows) {
                document_ = std::max(document_, named_ ? render::columns(shortened(row.document)) : 0);
                thing_ = std::max(thing_, things_.empty() ? 0 : render::columns(shortened(row.thing)));
                value_ = std::max(value_, experiment::number_text(row.median.value).size());
            }
        plot_ = kMargin + 12 + (document_ ? width_of(document_ + 2) : 0) + (thing_ ? width_of(thing_ + 2) : 0);
        width_ = plot_ + kPlot + 16 + width_of(std::max<size_t>(value_, 6)) + kMargin;
        width_ = std::max(width_, 2 * kMargin + width_of(88)); // the words below the title
    }

    std::string draw() {
        y_ = kMargin + 16;
        text(kMargin, y_, "title", panels_.empty() ? "No figure with numbers" : "Figures");
        y_ += 20;
        text(kMargin, y_, "faint", "small dots: values; large dot: median; line: its 95 % confidence interval");
        y_ += kPanelGap;
        for (const Panel &each : panels_) panel(each);
        if (more_ != 0) text(kMargin, y_, "faint", format("{} more figures: --figure NAME chooses", more_)), y_ += kPanelGap;
        std::string out = format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
                                 "role=\"img\" aria-label=\"figures with their medians and intervals\">\n<style>{2}</style>\n"
                                 "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
                                 width_, y_, kStyle);
        return out + body_ + "</svg>\n";
    }

  private:
    void panel(const Panel &p) {
        text(kMargin, y_, "name", shortened(p.name));
        y_ += 8;
        const int top = y_, height = static_cast<int>(p.rows.size()) * kRow;
        const Axis axis = axis_of(p, plot_);
        append(body_, "<rect class=\"panel\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", plot_, top, kPlot, height);
        for (const double tick : ticks(axis.low, axis.high)) {
            append(body_, "<line class=\"edge\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>\n", axis.x(tick), top,
                   top + height);
            text(static_cast<int>(axis.x(tick)), top + height + kTick - 4, "faint middle", experiment::number_text(tick));
        }
        std::string_view last;
        for (const Line &each : p.rows) {
            row(each, axis, each.document != last);
            last = each.document;
        }
        y_ += kTick + kPanelGap;
    }

    void row(const Line &each, const Axis &axis, bool first) {
        const double middle = y_ + kRow / 2.0;
        const int base = y_ + kRow - 6;
        const char *colour = things_.empty() ? colour_of(names_, each.document) : colour_of(things_, each.thing);
        if (document_ && first) text(kMargin + 12, base, "", shortened(each.document));
        if (thing_) text(kMargin + 12 + (document_ ? width_of(document_ + 2) : 0), base, "", shortened(each.thing));
        append(body_, "<g fill=\"{0}\" stroke=\"{0}\">", colour);
        if (each.figure->values.size() > 1) {
            // The same place is drawn once, however many values there are.
            std::set<int> drawn;
            for (const double value : each.figure->values)
                if (const double x = axis.x(value); drawn.insert(static_cast<int>(x * 2)).second)
                    append(body_, "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\" stroke=\"none\" opacity=\".35\"/>", x, middle);
            append(body_, "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke-width=\"2\"/>",
                   axis.x(each.median.low), axis.x(each.median.high), middle, middle);
        }
        append(body_, "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\" stroke=\"none\"><title>", axis.x(each.median.value), middle);
        render::append_xml(body_,
                           format("{} {}{}{}: {}, of {} values", shortened(each.figure->name),
                                  named_ ? shortened(each.document) : std::string(), named_ ? " " : "", shortened(each.thing),
                                  experiment::number_text(each.median.value), each.figure->values.size()));
        body_ += "</title></circle></g>\n";
        text(width_ - kMargin, base, "right", experiment::number_text(each.median.value));
        y_ += kRow;
    }

    void text(int x, int y, std::string_view cls, std::string_view words) {
        append(body_, "<text x=\"{}\" y=\"{}\" class=\"{}\">", x, y, cls);
        render::append_xml(body_, words);
        body_ += "</text>\n";
    }

    std::vector<Panel> panels_;
    size_t more_ = 0, document_ = 0, thing_ = 0, value_ = 0; ///< columns of each label
    bool named_ = false;
    std::set<std::string> names_, things_; ///< the documents', and what else rows are of
    int plot_ = 0, width_ = 0, y_ = 0;
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
