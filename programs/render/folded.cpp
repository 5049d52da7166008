// The folded formats: a stack a line, ready for grep, sort and every flame graph tool.
//
//      folded       split;main;workload(double);hot_a(long) 2245              as bcc's `profile -f` prints it
//      folded-ext   1763612456123456789 split 4242 4243 1 main;workload(double);hot_a(long)
//
// Frames stand root to leaf: user frames, then kernel frames, whose names end in `_[k]` (bcc's --annotations); that of a
// function inlined into its caller ends in `_[i]`, as FlameGraph has it. A frame without
// a name is its module, `[libc.so.6]`, and `[unknown]` where that isn't known either; a user stack that couldn't be read is
// `[Missed User Stack]`. Symbols may hold spaces
// ("operator new(unsigned long)"), so a reader takes the count after the LAST space, and the frames after the fifth.
//
// Labels stand at the root, in front of the comm, or of folded-ext's frames: `route=/cart;shop;main 7`.
//
// Of waits (off-CPU) the count is microseconds, as in bcc's offcputime -f.
//
// folded merges, and is sorted by its bytes, so that two profiles can be compared with diff and comm. folded-ext has a line a
// sample, in the order of arrival, times in Unix nanoseconds. Its fields split on single spaces, so a comm is escaped into one
// word (see text.cpp), tid is the thread and not the process, and the list of frames is never empty.
#include <algorithm>
#include <vector>

#include "programs/render/renderer.h"
#include "programs/render/stack_tree.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0::render {
namespace {

void append_node(std::string &out, const StackTree &tree, const StackTree::Node &node) {
    using Kind = StackTree::Kind;
    if (!out.empty()) out += ';';
    switch (tree.kind(node)) {
    case Kind::process: append_comm(out, tree.name(node)); break;
    case Kind::kernel: append_symbol(out, tree.name(node)), out += "_[k]"; break;
    case Kind::inlined: append_symbol(out, tree.name(node)), out += "_[i]"; break;
    default: append_symbol(out, tree.name(node));
    }
}

} // namespace

std::string folded_stack(const StackTree &tree, uint32_t node) {
    std::vector<uint32_t> path;
    for (uint32_t at = node; at != 0; at = tree.nodes()[at].parent) path.push_back(at);
    std::string out;
    for (auto at = path.rbegin(); at != path.rend(); ++at) append_node(out, tree, tree.nodes()[*at]);
    return out;
}

namespace {

class Folded final : public Renderer {
  public:
    Folded(const RenderOptions &options, Writer &out)
        : out_(out), tree_({.modules = false, .delimiter = options.delimiter, .threads = options.threads}) {}

    void begin(const RunInfo &run) override { unit_ = run.waits() ? 1000 : 1; }
    void sample(const NamedSample &sample, uint64_t count) override { tree_.add(sample, count); }
    void end(const Ledger &) override {
        struct Line {
            std::string stack;
            uint64_t count;
        };
        std::vector<Line> lines;
        const auto &nodes = tree_.nodes();
        for (uint32_t i = 1; i < nodes.size(); ++i) {
            if (nodes[i].self == 0) continue;
            lines.push_back({folded_stack(tree_, i), nodes[i].self});
        }
        // Escaping maps some different names to one ("a;b" and "a:b"): equal lines are one stack.
        stable_sort(lines, [](const Line &a, const Line &b) { return a.stack < b.stack; });
        for (size_t i = 0; i < lines.size();) {
            uint64_t count = 0;
            const std::string &stack = lines[i].stack;
            for (; i < lines.size() && lines[i].stack == stack; ++i) count += lines[i].count;
            append(out_.text(), "{} {}\n", stack, (count + unit_ / 2) / unit_);
            out_.commit();
        }
    }

  private:
    Writer &out_;
    StackTree tree_;
    uint64_t unit_ = 1;
};

class FoldedExt final : public Renderer {
  public:
    explicit FoldedExt(Writer &out) : out_(out) {}

    void begin(const RunInfo &) override {}
    void sample(const NamedSample &s, uint64_t) override {
        std::string &text = out_.text();
        append(text, "{} ", s.wall_ns);
        append_comm(text, s.comm);
        append(text, " {} {} {} ", s.pid, s.tid, s.cpu);
        if (s.labels) append_folded_labels(text, *s.labels);
        append_folded(text, {s.user, s.kernel, s.user_missed && s.user.empty(), s.kernel_missed && s.kernel.empty()});
        text += '\n';
        out_.commit();
    }
    void end(const Ledger &) override {}

  private:
    Writer &out_;
};

} // namespace

std::unique_ptr<Renderer> make_folded(const RenderOptions &options, Writer &out) {
    return std::make_unique<Folded>(options, out);
}
std::unique_ptr<Renderer> make_folded_ext(const RenderOptions &, Writer &out) { return std::make_unique<FoldedExt>(out); }

} // namespace rawbpf::inline v0::render
