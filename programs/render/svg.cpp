// The flame graph: one SVG file that is a picture everywhere and an application in a browser.
//
//      y
//      |  title, subtitle, legend
//      |            +-----------+
//      |            | sys_read  |            kernel: blue
//      |  +---------+-----------+---+
//      |  |  hot_a              |hot_b|      user: orange
//      |  +---------------------+-----+
//      |  |  main                     |
//      |  +---------------------------+
//      |  |  split                    |      a process
//      |  +---------------------------+
//      |  |  all                      |
//      |  +---------------------------+
//      |  details of the frame under the pointer
//
// Width is share of samples; the order from left to right is by name and means nothing. Stacks are merged first, so the file
// grows with the number of distinct stacks and not with samples. Each frame is
//
//      <g class="f u3" data-x="120" data-w="45"><title>hot_a(long) LF user, split LF 45 samples, 12.30 %</title>
//          <rect .../><text ...>hot_a</text></g>
//
// where data-x and data-w are in samples: the script (svg_assets.cpp) lays the same frames out again for a zoom or another
// window. An icicle is the same with its root at the top, under the head. Without the script, as an <img> or in a viewer, the
// picture stands as written. Colours come from a hash of the name, so a function keeps its colour from graph to graph. Nothing
// refers to anything outside the file.
#include "programs/render/svg.h"

#include <algorithm>

#include "programs/render/flame_graph.h"
#include "programs/render/ledger.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::render {
namespace {

using Kind = StackTree::Kind;

constexpr double kWidth = 1200, kMargin = 12, kTop = 74, kBottom = 34, kRow = 18;
constexpr double kCharacter = 7.23; // of 12 px monospace; the widest of the fonts in the style sheet
constexpr double kNarrowest = 0.25; // pixels: what is narrower isn't drawn
constexpr uint32_t kColors = 10;

// FNV-1a with murmur3's final mix, so that names that differ in one letter differ in colour too. The same on every machine.
uint32_t color_of(std::string_view name) {
    uint32_t hash = 2166136261u;
    for (unsigned char c : name) hash = (hash ^ c) * 16777619u;
    hash = (hash ^ hash >> 16) * 0x85ebca6b;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35;
    return (hash ^ hash >> 16) % kColors;
}

} // namespace

void FlameGraph::end(const Ledger &ledger) {
    total_ = tree_.totals();
    lay_out();
    std::string title = title_.empty() ? default_title() : title_;
    open(title);
    for (const Box &box : boxes_) frame(box);
    head(title, ledger);
    foot();
}

// Parents before children, left before right: the order that the script relies on.
void FlameGraph::lay_out() {
    uint64_t all = std::max<uint64_t>(total_[0], 1);
    double least = kNarrowest * static_cast<double>(all) / (kWidth - 2 * kMargin);
    std::vector<Box> work{{0, 0, 0}};
    uint32_t deepest = 0;
    while (!work.empty()) {
        Box box = work.back();
        work.pop_back();
        boxes_.push_back(box);
        deepest = std::max(deepest, box.depth);
        uint64_t x = box.x;
        size_t first = work.size();
        for (uint32_t child : tree_.children(box.node)) {
            if (total_[child] == 0) continue; // of a differential one
            if (static_cast<double>(total_[child]) >= least)
                work.push_back({child, box.depth + 1, x});
            else
                ++left_out_;
            x += total_[child];
        }
        std::reverse(work.begin() + static_cast<ptrdiff_t>(first), work.end());
    }
    height_ = kTop + (deepest + 1) * kRow + kBottom;
}

void FlameGraph::open(const std::string &title) {
    std::string &text = out_.text();
    append(text,
           "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
           "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\"{2} width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
           "{0:.0f} {1:.0f}\">\n<title>",
           kWidth, height_, icicle_ ? " class=\"icicle\"" : "");
    append_xml(text, title);
    append(text, "</title>\n<desc>A flame graph by rawbpf ");
    append_xml(text, run_.version);
    append(text, ". Width is the share of {}, the order from left to right is by name.", run_.waits() ? "time" : "samples");
    if (left_out_ > 0) append(text, " {} stacks narrower than a quarter of a pixel are left out.", grouped(left_out_));
    text += " Recorded by: ";
    append_xml(text, shell_words(run_.command));
    append(text, "</desc>\n<style><![CDATA[{}{}]]></style>\n", kFlameGraphStyle, style());
    text += "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n<g class=\"frames\">\n";
    out_.commit();
}
// Head and foot come after the frames, and on a background of their own: in a graph taller than its window the script keeps
// them in sight, over the frames.
void FlameGraph::head(const std::string &title, const Ledger &ledger) {
    std::string &text = out_.text();
    append(text,
           "</g>\n<g class=\"head\"><rect class=\"page\" width=\"100%\" height=\"{:.0f}\"/><text class=\"title\" x=\"12\" "
           "y=\"30\">",
           kTop - 8);
    append_xml(text, cut(title, 90, "…"));
    text += "</text><text class=\"subtitle\" x=\"12\" y=\"52\">";
    append_xml(text, subtitle(ledger));
    text += "</text><g class=\"legend\">";
    legends(text);
    text += "</g></g>\n";
}
void FlameGraph::legends(std::string &text) const {
    legend(text, 950, "u4", "user");
    legend(text, 1012, "k4", "kernel");
    legend(text, 1088, "n", "no symbol");
}
void FlameGraph::foot() {
    append(out_.text(),
           "<g class=\"foot\"><rect class=\"page\" y=\"{:.0f}\" width=\"100%\" height=\"{:.0f}\"/><text class=\"details\" "
           "x=\"12\" "
           "y=\"{:.0f}\"></text></g>\n<script><![CDATA[{}]]></script>\n</svg>\n",
           height_ - kBottom + 4, kBottom - 4, height_ - 12, kFlameGraphScript);
    out_.commit();
}
void FlameGraph::legend(std::string &text, int x, std::string_view color, std::string_view label) {
    append(text, "<rect class=\"{}\" x=\"{}\" y=\"42\" width=\"12\" height=\"12\" rx=\"2\"/><text x=\"{}\" y=\"52\">{}</text>",
           color, x, x + 17, label);
}
std::string FlameGraph::kind_of_graph() const {
    if (run_.counts_events()) return format("{} flame graph", run_.event);
    return run_.waits() ? "Off-CPU flame graph" : "CPU flame graph";
}
std::string FlameGraph::counted(uint64_t count) const {
    if (run_.counts_events()) {
        std::string out = grouped(count) + " ";
        append_printable(out, run_.event);
        return out;
    }
    if (run_.waits()) return duration_text(static_cast<double>(count) / 1e9);
    return format("{} sample{}", grouped(count), count == 1 ? "" : "s");
}
// The workload when there was one: what stands behind "--" on rawbpf's command line.
std::string FlameGraph::default_title() const {
    auto dashes = std::find(run_.command.begin(), run_.command.end(), "--");
    if (dashes == run_.command.end() || dashes + 1 == run_.command.end()) return kind_of_graph();
    return format("{}: {}", kind_of_graph(), shell_words({dashes + 1, run_.command.end()}));
}
std::string FlameGraph::subtitle(const Ledger &ledger) const {
    std::string out = counted(total_[0]);
    if (run_.waits()) append(out, " in {} wait{}", grouped(ledger.shown), ledger.shown == 1 ? "" : "s");
    if (run_.period > 1) append(out, ", one in {} sampled", grouped(run_.period));
    if (run_.frequency > 0 && !run_.counts_events()) append(out, " at {:.0f} Hz", run_.frequency);
    uint64_t lost = 0;
    for (auto &[reason, n] : ledger.lost) lost += n;
    if (lost > 0) append(out, ", {} lost", grouped(lost));
    if (!run_.kernel.empty()) append(out, " · Linux {} {}", run_.kernel, run_.arch);
    if (run_.cpus > 0) append(out, " · {} CPU{}", run_.cpus, run_.cpus == 1 ? "" : "s");
    if (run_.start_wall_ns > 0) {
        std::string when = rfc3339(run_.start_wall_ns);
        append(out, " · {} {} UTC", when.substr(0, 10), when.substr(11, 5));
    }
    return out;
}

void FlameGraph::frame(const Box &box) {
    const StackTree::Node &node = tree_.nodes()[box.node];
    Kind kind = tree_.kind(node);
    std::string_view module = tree_.module(node);
    std::string name;
    append_printable(name, tree_.name(node)); // no line ends: the script splits the title at them
    bool unnamed = name.empty() || kind == Kind::note || (name.front() == '[' && !module.empty() && name.find(module) <= 1);
    if (name.empty()) name = "[unknown]";
    const uint32_t shade = color_of(name);
    if (kind == Kind::inlined) name += "_[i]";

    uint64_t samples = total_[box.node], all = std::max<uint64_t>(total_[0], 1);
    double scale = (kWidth - 2 * kMargin) / static_cast<double>(all);
    double x = kMargin + static_cast<double>(box.x) * scale, width = static_cast<double>(samples) * scale;
    double y = icicle_ ? kTop + box.depth * kRow : height_ - kBottom - (box.depth + 1) * kRow;

    std::string &text = out_.text();
    std::string plain = unnamed ? "n" : format("{}{}", kind == Kind::kernel ? 'k' : 'u', shade);
    if (kind < Kind::user) plain = kind == Kind::root ? "r" : "p";
    append(text, "<g class=\"f {}", color(box, std::move(plain)));
    append(text, "\" data-x=\"{}\" data-w=\"{}\"><title>", box.x, samples);
    append_xml(text, name);
    text += '\n';
    if (kind == Kind::kernel) text += "kernel";
    if (kind == Kind::process) text += "process";
    if (kind == Kind::label) text += "label";
    if (kind == Kind::user || kind == Kind::note) text += "user";
    if (kind == Kind::inlined) text += "user, inlined";
    if (!module.empty() && !unnamed && module != "vmlinux") {
        text += ", ";
        append_xml(text, module);
    }
    append(text, "\n{}, {:.2f} %", counted(samples), 100.0 * static_cast<double>(samples) / static_cast<double>(all));
    if (const std::string more = remark(box); !more.empty()) append(text, "\n{}", more);
    append(text, "</title><rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{:.0f}\" rx=\"2\"/>", x, y,
           std::max(width - 0.5, 0.2), kRow - 1);
    // The script reads the full name from the title; a label is there only where it can be read.
    if (size_t room = width > 8 ? static_cast<size_t>((width - 8) / kCharacter) : 0; room >= 3) {
        append(text, "<text x=\"{:.1f}\" y=\"{:.0f}\">", x + 4, y + 13);
        append_xml(text, cut(name, room, "…"));
        text += "</text>";
    }
    text += "</g>\n";
    out_.commit();
}

std::unique_ptr<Renderer> make_svg(const RenderOptions &options, Writer &out) {
    return std::make_unique<FlameGraph>(options, out);
}

} // namespace rawbpf::inline v0::render
