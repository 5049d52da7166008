// The hottest functions and stacks, for a person in a terminal.
//
// Self is the share of samples taken in the function itself, total the share with it anywhere on the stack. A function that calls
// itself counts once a sample: in the tree of stacks, total is the sum over those nodes of its name that have no node of the same
// name above them. Off-CPU the shares are of the time that was waited.
#include <algorithm>
#include <vector>

#include "programs/render/ledger.h"
#include "programs/render/renderer.h"
#include "programs/render/stack_tree.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0::render {
namespace {

using Kind = StackTree::Kind;
constexpr size_t kFunctions = 20, kStacks = 5, kWidth = 60;

class Top final : public Renderer {
  public:
    Top(const RenderOptions &options, Writer &out)
        : out_(out), color_(options.color), threads_(options.threads), tree_({.modules = true, .threads = options.threads}) {}
    void begin(const RunInfo &run) override {
        events_ = run.counts_events();
        waits_ = run.waits();
    }
    void sample(const NamedSample &sample, uint64_t count) override { tree_.add(sample, count); }
    void end(const Ledger &) override {
        std::vector<uint64_t> total = tree_.totals();
        all_ = total[0];
        if (all_ == 0) {
            out_.write(waits_ ? "no waits\n" : "no samples\n");
            return;
        }
        functions(total);
        if (threads_) threads(total);
        stacks();
    }

  private:
    struct Function {
        uint32_t node; ///< any node of this name
        uint64_t self = 0, total = 0;
    };
    void functions(const std::vector<uint64_t> &total) {
        const auto &nodes = tree_.nodes();
        constexpr uint32_t kNone = ~0u;
        std::vector<Function> by_name(tree_.name_count(), Function{kNone});
        std::vector<uint32_t> above(tree_.name_count()); // how often each name stands on the path to the current node
        struct Step {
            uint32_t node;
            bool leaving;
        };
        std::vector<Step> work{{0, false}};
        while (!work.empty()) {
            auto [at, leaving] = work.back();
            work.pop_back();
            uint32_t name = nodes[at].name;
            if (leaving) {
                --above[name];
                continue;
            }
            Function &f = by_name[name];
            f.node = at;
            f.self += nodes[at].self;
            if (above[name]++ == 0) f.total += total[at];
            work.push_back({at, true});
            for (uint32_t child = nodes[at].first_child; child != 0; child = nodes[child].next) work.push_back({child, false});
        }
        std::erase_if(by_name, [&](const Function &f) {
            return f.node == kNone || tree_.kind(nodes[f.node]) < Kind::user; // the root, processes and labels aren't functions
        });
        stable_sort(by_name, [&](const Function &a, const Function &b) {
            if (a.self != b.self) return a.self > b.self;
            if (a.total != b.total) return a.total > b.total;
            return tree_.name(nodes[a.node]) < tree_.name(nodes[b.node]);
        });
        heading("   SELF   TOTAL  FUNCTION");
        for (size_t i = 0; i < std::min(by_name.size(), kFunctions); ++i) {
            const Function &f = by_name[i];
            std::string label = node_label(f.node);
            append(out_.text(), "{:5.1f} % {:5.1f} %  ", share(f.self), share(f.total));
            append_padded(cut(label, kWidth), kWidth);
            std::string module = std::string(tree_.module(nodes[f.node]));
            if (!module.empty() && label != module && label != "[" + module + "]") {
                out_.text() += "  ";
                append_printable(out_.text(), module);
            }
            end_line();
        }
    }
    void threads(const std::vector<uint64_t> &total) {
        std::vector<uint32_t> all = tree_.children(0);
        stable_sort(all, [&](uint32_t a, uint32_t b) { return total[a] > total[b]; });
        out_.text() += '\n';
        heading("  TOTAL  THREAD");
        for (size_t i = 0; i < std::min(all.size(), kFunctions); ++i) {
            append(out_.text(), "{:5.1f} %  ", share(total[all[i]]));
            append_printable(out_.text(), tree_.name(tree_.nodes()[all[i]]));
            end_line();
        }
    }
    void stacks() {
        const auto &nodes = tree_.nodes();
        std::vector<uint32_t> ends;
        for (uint32_t i = 1; i < nodes.size(); ++i)
            if (nodes[i].self > 0) ends.push_back(i);
        stable_sort(
            ends, [&](uint32_t a, uint32_t b) { return nodes[a].self != nodes[b].self ? nodes[a].self > nodes[b].self : a < b; });
        out_.text() += '\n';
        heading(waits_ ? "   TIME           LONGEST STACKS"
                       : format("{}           HOTTEST STACKS", events_ ? " EVENTS" : "SAMPLES"));
        for (size_t i = 0; i < std::min(ends.size(), kStacks); ++i) {
            const uint64_t self = nodes[ends[i]].self;
            append(out_.text(), "{:>7}  {:5.1f} %  ", waits_ ? duration_text(static_cast<double>(self) / 1e9) : grouped(self),
                   share(self));
            std::string indent;
            for (uint32_t at = ends[i]; at != 0; at = nodes[at].parent) {
                out_.text() += indent;
                out_.text() += cut(node_label(at), kWidth);
                end_line();
                indent.assign(18, ' ');
            }
        }
    }
    std::string node_label(uint32_t node) const {
        const StackTree::Node &n = tree_.nodes()[node];
        std::string out;
        if (tree_.kind(n) == Kind::process) out += threads_ ? "thread " : "process ";
        append_printable(out, tree_.name(n).empty() ? "[unknown]" : tree_.name(n));
        if (tree_.kind(n) == Kind::kernel) out += "_[k]";
        if (tree_.kind(n) == Kind::inlined) out += "_[i]";
        return out;
    }
    [[nodiscard]] double share(uint64_t n) const { return 100.0 * static_cast<double>(n) / static_cast<double>(all_); }
    void heading(std::string_view text) {
        if (color_) out_.text() += "\x1b[1m";
        out_.text() += text;
        if (color_) out_.text() += "\x1b[0m";
        out_.text() += '\n';
    }
    void append_padded(const std::string &text, size_t width) {
        out_.text() += text;
        size_t used = columns(text);
        if (used < width) out_.text().append(width - used, ' ');
    }
    void end_line() {
        std::string &text = out_.text();
        text.erase(text.find_last_not_of(' ') + 1);
        text += '\n';
    }
    Writer &out_;
    bool color_, threads_, events_ = false, waits_ = false;
    StackTree tree_;
    uint64_t all_ = 0;
};

} // namespace

std::unique_ptr<Renderer> make_top(const RenderOptions &options, Writer &out) { return std::make_unique<Top>(options, out); }

} // namespace rawbpf::inline v0::render
