// The distinct stacks of a profile as one tree: what folded, svg and top are made from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "programs/render/frame.h"

namespace rawbpf::inline v0::render {

/// Samples merged by (comm, user frames root to leaf, kernel frames root to leaf). Its size is that of the distinct stacks,
/// whatever the number of samples.
class StackTree {
  public:
    enum class Kind : uint8_t {
        root,    ///< everything
        process, ///< a comm, or a thread's
        label,   ///< "KEY=value" of samples that have labels, above their comm
        user,
        kernel,
        inlined, ///< a user function in another one's code
        note,    ///< stands for frames that aren't there: "[Missed User Stack]", "-"
    };
    struct Node {
        uint32_t name = 0;        ///< what nodes of one name, module and kind share
        uint32_t parent = 0;      ///< the root is its own
        uint32_t first_child = 0; ///< 0: none
        uint32_t next = 0;        ///< sibling, in no order; 0: none
        uint64_t self = 0;        ///< samples that end here; of waits nanoseconds
    };
    struct Options {
        /// Frames of one name in two modules are two, and so are functions without names in one; a run of frames without place
        /// and name is one.
        bool modules = false;
        bool delimiter = false; ///< a "-" between user and kernel frames
        bool threads = false;   ///< a comm is "comm-PID/TID", as stackcollapse-perf's --tid has it
    };

    explicit StackTree(Options options);
    /// Returns the node that the sample ends at.
    uint32_t add(const NamedSample &sample, uint64_t count = 1);

    [[nodiscard]] const std::vector<Node> &nodes() const { return nodes_; } ///< [0] is the root; parents come before children
    [[nodiscard]] std::string_view name(const Node &node) const { return names_[node.name].symbol; } ///< empty: unknown
    [[nodiscard]] std::string_view module(const Node &node) const { return names_[node.name].module; }
    [[nodiscard]] Kind kind(const Node &node) const { return names_[node.name].kind; }
    /// Node::name is below this.
    [[nodiscard]] size_t name_count() const { return names_.size(); }
    /// Samples that end at or above each node, by index: totals()[0] is all of them.
    [[nodiscard]] std::vector<uint64_t> totals() const;
    /// A node's children ordered by name, kind and module: the same profile always looks the same.
    [[nodiscard]] std::vector<uint32_t> children(uint32_t node) const;

  private:
    struct Name {
        std::string symbol, module;
        Kind kind;
    };
    uint32_t descend(uint32_t from, Kind kind, std::string_view symbol, std::string_view module = {});
    uint32_t descend(uint32_t from, const Frame &frame);
    uint32_t intern(Kind kind, std::string_view symbol, std::string_view module);

    Options options_;
    std::vector<Node> nodes_;
    std::vector<Name> names_;
    std::unordered_map<std::string, uint32_t> name_ids_; // kind, symbol, NUL, module -> name
    std::unordered_map<uint64_t, uint32_t> child_;       // parent << 32 | name -> node
    std::string scratch_;
};

/// A node's stack as the folded formats have it: "comm;main;hot_a".
[[nodiscard]] std::string folded_stack(const StackTree &tree, uint32_t node);

/// A stack that is in no tree, each part with its innermost frame first.
struct FoldedFrames {
    const std::vector<FramePtr> &user, &kernel;
    bool user_missed = false, kernel_missed = false; ///< there is a stack, and it couldn't be read
};
/// "main;hot_a;vfs_read_[k]"; never empty.
void append_folded(std::string &out, const FoldedFrames &frames);

} // namespace rawbpf::inline v0::render
