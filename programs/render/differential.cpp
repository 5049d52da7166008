// Two profiles in one: what changed from the first to the second.
//
//      folded   split;main;hot_a 2245 1180        stack, samples before, samples after (as FlameGraph's difffolded.pl has it)
//      svg      the second profile's flame graph; red: a larger share of all samples than before, blue: a smaller one
//
// A renderer that is begun and ended twice: first with the earlier profile, then with the later. Profiles differ in length, so
// the picture compares shares, not samples. Two recordings of the same program differ too, by chance: a share p of n samples is
// known to sqrt(p(1-p)/n), so a difference within that much for both together stays without colour. Frames that the later profile
// doesn't have can't be drawn where it is drawn; how many samples they had is in the subtitle.
#include <algorithm>
#include <cmath>

#include "programs/render/flame_graph.h"
#include "programs/render/svg.h"
#include "programs/render/text.h"
#include "programs/render/tool_formats.h"
#include "runtime/base/format.h"
#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0::render {
namespace {

constexpr uint32_t kSteps = 5;

constexpr std::string_view kStyle = R"css(
.z { fill: #dfe1e6; }
.g1 { fill: #ffd9d2; } .g2 { fill: #ffb8ab; } .g3 { fill: #ff9482; } .g4 { fill: #fb6f5b; } .g5 { fill: #ee4b37; }
.s1 { fill: #d6e6fb; } .s2 { fill: #b3d1f8; } .s3 { fill: #8ebaf4; } .s4 { fill: #689fec; } .s5 { fill: #4583e0; }
)css";

double share(uint64_t part, uint64_t all) { return all ? static_cast<double>(part) / static_cast<double>(all) : 0; }

// Samples of the earlier profile by node of the tree of both.
class Before {
  public:
    /// A sample of either profile, into the tree too.
    void add(StackTree &tree, const NamedSample &sample, uint64_t count) {
        const uint32_t node = tree.add(sample, later_ ? count : 0);
        if (later_) return;
        if (self_.size() <= node) self_.resize(node + 1);
        self_[node] += count;
    }
    /// Whether it was the later profile that ended here.
    bool end() { return std::exchange(later_, true); }
    [[nodiscard]] uint64_t self(uint32_t node) const { return node < self_.size() ? self_[node] : 0; }
    [[nodiscard]] std::vector<uint64_t> totals(const StackTree &tree) const {
        std::vector<uint64_t> total(tree.nodes().size());
        for (size_t i = total.size(); i-- > 0;) {
            total[i] += self(static_cast<uint32_t>(i));
            if (i != 0) total[tree.nodes()[i].parent] += total[i];
        }
        return total;
    }

  private:
    std::vector<uint64_t> self_;
    bool later_ = false;
};

class FoldedDifference final : public Renderer {
  public:
    FoldedDifference(const RenderOptions &options, Writer &out)
        : out_(out), tree_({.modules = false, .delimiter = options.delimiter, .threads = options.threads}) {}

    void begin(const RunInfo &) override {}
    void sample(const NamedSample &sample, uint64_t count) override { before_.add(tree_, sample, count); }
    void end(const Ledger &) override {
        if (!before_.end()) return;
        struct Line {
            std::string stack;
            uint64_t before, after;
        };
        std::vector<Line> lines;
        for (uint32_t i = 1; i < tree_.nodes().size(); ++i)
            if (tree_.nodes()[i].self > 0 || before_.self(i) > 0)
                lines.push_back({folded_stack(tree_, i), before_.self(i), tree_.nodes()[i].self});
        stable_sort(lines, [](const Line &a, const Line &b) { return a.stack < b.stack; });
        for (size_t i = 0; i < lines.size();) {
            uint64_t before = 0, after = 0;
            const std::string &stack = lines[i].stack;
            for (; i < lines.size() && lines[i].stack == stack; ++i) before += lines[i].before, after += lines[i].after;
            append(out_.text(), "{} {} {}\n", stack, before, after);
            out_.commit();
        }
    }

  private:
    Writer &out_;
    StackTree tree_;
    Before before_;
};

class FlameGraphDifference final : public FlameGraph {
  public:
    using FlameGraph::FlameGraph;

    void sample(const NamedSample &sample, uint64_t count) override { before_.add(tree_, sample, count); }
    void end(const Ledger &ledger) override {
        if (!before_.end()) return;
        earlier_ = before_.totals(tree_);
        const std::vector<uint64_t> later = tree_.totals();
        for (uint32_t i = 0; i < later.size(); ++i) {
            if (later[i] == 0 && earlier_[tree_.nodes()[i].parent] > 0 && later[tree_.nodes()[i].parent] > 0)
                gone_ += earlier_[i];
            if (tree_.kind(tree_.nodes()[i]) != StackTree::Kind::root)
                largest_ = std::max(largest_, std::abs(difference(earlier_[i], earlier_[0], later[i], later[0])));
        }
        FlameGraph::end(ledger);
    }

  private:
    // Of the shares; 0 where chance explains it.
    static double difference(uint64_t a, uint64_t all_a, uint64_t b, uint64_t all_b) {
        if (all_a == 0 || all_b == 0) return 0;
        const double change = share(b, all_b) - share(a, all_a), both = share(a + b, all_a + all_b);
        const double chance = std::sqrt(both * (1 - both) * (1 / static_cast<double>(all_a) + 1 / static_cast<double>(all_b)));
        return std::abs(change) <= chance ? 0 : change;
    }
    std::string color(const Box &box, std::string &&) const override {
        const double change = difference(earlier_[box.node], earlier_[0], total_[box.node], total_[0]);
        if (change == 0 || box.node == 0) return "z";
        const auto step = static_cast<uint32_t>(std::abs(change) / largest_ * kSteps);
        return format("{}{}", change > 0 ? 'g' : 's', std::min(step + 1, kSteps));
    }
    [[nodiscard]] std::string remark(const Box &box) const override {
        const double before = 100 * share(earlier_[box.node], earlier_[0]), after = 100 * share(total_[box.node], total_[0]);
        return format("before {}, {:.2f} %: {:+.2f} %", counted(earlier_[box.node]), before, after - before);
    }
    void legends(std::string &text) const override {
        legend(text, 890, "g4", "more");
        legend(text, 952, "z", "as before");
        legend(text, 1044, "s4", "less, by share");
    }
    [[nodiscard]] std::string_view style() const override { return kStyle; }
    [[nodiscard]] std::string kind_of_graph() const override { return "Differential flame graph"; }
    [[nodiscard]] std::string subtitle(const Ledger &) const override {
        std::string out = format("before {}", counted(earlier_[0]));
        if (gone_ > 0) append(out, ", {:.1f} % of them in stacks that are gone", 100 * share(gone_, earlier_[0]));
        return out + format(" · now {}", grouped(total_[0]));
    }

    Before before_;
    std::vector<uint64_t> earlier_; // totals by node
    uint64_t gone_ = 0;
    double largest_ = 0;
};

} // namespace

std::unique_ptr<Renderer> make_folded_difference(const RenderOptions &options, Writer &out) {
    return std::make_unique<FoldedDifference>(options, out);
}
std::unique_ptr<Renderer> make_svg_difference(const RenderOptions &options, Writer &out) {
    return std::make_unique<FlameGraphDifference>(options, out);
}

} // namespace rawbpf::inline v0::render
