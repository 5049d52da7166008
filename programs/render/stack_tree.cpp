// Merging stacks.
//
//      comm a   main hot_a sys_read            root ── a ── main ── hot_a (self 1) ── sys_read (self 1)
//      comm a   main hot_a              ->                     └── hot_b (self 1)
//      comm a   main hot_b
//
// A child is found by hashing (parent, name), not by walking siblings: a busy server's `main` has thousands. Names are
// interned, so a node is 24 bytes, and a sample of a known stack costs one hash look-up a frame and no allocation.
#include "programs/render/stack_tree.h"

#include <algorithm>

#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0::render {

StackTree::StackTree(Options options) : options_(options) {
    nodes_.push_back({});
    nodes_[0].name = intern(Kind::root, "all", {});
}

uint32_t StackTree::intern(Kind kind, std::string_view symbol, std::string_view module) {
    scratch_.assign(1, static_cast<char>(kind));
    scratch_ += symbol;
    scratch_ += '\0';
    scratch_ += module;
    auto [at, fresh] = name_ids_.try_emplace(scratch_, static_cast<uint32_t>(names_.size()));
    if (fresh) names_.push_back({std::string(symbol), std::string(module), kind});
    return at->second;
}

uint32_t StackTree::descend(uint32_t from, Kind kind, std::string_view symbol, std::string_view module) {
    uint32_t name = intern(kind, symbol, module);
    auto [at, fresh] = child_.try_emplace(uint64_t{from} << 32 | name, static_cast<uint32_t>(nodes_.size()));
    if (fresh) {
        nodes_.push_back({.name = name, .parent = from, .next = nodes_[from].first_child});
        nodes_[from].first_child = at->second;
    }
    return at->second;
}

uint32_t StackTree::descend(uint32_t from, const Frame &frame) {
    Kind kind = frame.kernel ? Kind::kernel : frame.inlined ? Kind::inlined : Kind::user;
    std::string_view module = options_.modules ? base_name(frame.module) : std::string_view();
    if (!frame.symbol.empty()) return descend(from, kind, frame.symbol, module);
    if (options_.modules && module.empty()) { // a run of frames without place and name, often a broken chain of frame pointers
        const Node &above = nodes_[from];
        if (from != 0 && names_[above.name].kind == kind && names_[above.name].symbol.empty()) return from;
    }
    return descend(from, kind, options_.modules ? function_label(frame) : frame_label(frame), module);
}

uint32_t StackTree::add(const NamedSample &sample, uint64_t count) {
    uint32_t at = 0;
    if (sample.labels)
        for (const auto &[key, value] : *sample.labels) at = descend(at, Kind::label, format("{}={}", key, value));
    at = descend(at, Kind::process, options_.threads ? format("{}-{}/{}", sample.comm, sample.pid, sample.tid) : sample.comm);
    if (sample.user_missed && sample.user.empty()) at = descend(at, Kind::note, "[Missed User Stack]");
    for (auto frame = sample.user.rbegin(); frame != sample.user.rend(); ++frame) at = descend(at, **frame);
    if (options_.delimiter && !sample.kernel.empty() && !sample.user.empty()) at = descend(at, Kind::note, "-");
    if (sample.kernel_missed && sample.kernel.empty()) at = descend(at, Kind::note, "[Missed Kernel Stack]");
    for (auto frame = sample.kernel.rbegin(); frame != sample.kernel.rend(); ++frame) at = descend(at, **frame);
    nodes_[at].self += count;
    return at;
}

std::vector<uint64_t> StackTree::totals() const {
    std::vector<uint64_t> total(nodes_.size());
    for (size_t i = nodes_.size(); i-- > 0;) {
        total[i] += nodes_[i].self;
        if (i != 0) total[nodes_[i].parent] += total[i];
    }
    return total;
}

std::vector<uint32_t> StackTree::children(uint32_t node) const {
    std::vector<uint32_t> out;
    for (uint32_t i = nodes_[node].first_child; i != 0; i = nodes_[i].next) out.push_back(i);
    stable_sort(out, [&](uint32_t a, uint32_t b) {
        const Node &x = nodes_[a], &y = nodes_[b];
        if (int order = name(x).compare(name(y))) return order < 0;
        if (kind(x) != kind(y)) return kind(x) < kind(y);
        return module(x) < module(y);
    });
    return out;
}

void append_folded(std::string &out, const FoldedFrames &frames) {
    bool first = true;
    const auto separate = [&] {
        if (!first) out += ';';
        first = false;
    };
    if (frames.user_missed) separate(), out += "[Missed User Stack]";
    for (auto frame = frames.user.rbegin(); frame != frames.user.rend(); ++frame) {
        separate(), append_symbol(out, frame_label(**frame));
        if ((*frame)->inlined) out += "_[i]";
    }
    if (frames.kernel_missed) separate(), out += "[Missed Kernel Stack]";
    for (auto frame = frames.kernel.rbegin(); frame != frames.kernel.rend(); ++frame)
        separate(), append_symbol(out, frame_label(**frame)), out += "_[k]";
    if (first) out += "[unknown]";
}

} // namespace rawbpf::inline v0::render
