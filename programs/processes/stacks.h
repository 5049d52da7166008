// Stacks, each distinct part kept once.
//
//      place   where one frame is: a module and an offset into it (or an address, where there is no file)
//      node    a place and the node of its caller; so a stack is ONE number, that of its leaf's node
//
//                      main(0)                 nodes:  0: place main,  caller none
//                     /       \                        1: place parse, caller 0
//                parse(1)    eval(2)                   2: place eval,  caller 0
//                               |                      3: place add,   caller 2
//                             add(3)           the stack "main;eval;add" is 3
//
// Ten thousand stacks of forty frames would be 3 MB of addresses; as a tree they are a few hundred KB, and counting equal stacks
// is comparing numbers. A capture file is this tree, written as it grows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/processes/id_index.h"

namespace rawbpf::inline v0::processes {

inline constexpr uint32_t kNone = IdIndex::kNone;

/// What a piece of executable memory comes from.
enum class ModuleKind : uint8_t {
    file,      ///< a file, or a program in memory (memfd): names come from its symbol tables
    vdso,      ///< the kernel's page of user code
    anonymous, ///< made at run time (a JIT's code, perhaps in a memfd): names come from perf-PID.map
    script,    ///< an interpreter's functions: names come from itself (scripts.h); offsets are numbers of function and line
};

struct Module {
    std::string path; ///< as the process sees it
    uint64_t device = 0, inode = 0;
    ModuleKind kind = ModuleKind::file;
    std::string build_id; ///< lower-case hex; empty: none, or not read yet

    friend bool operator==(const Module &a, const Module &b) {
        return a.inode == b.inode && a.device == b.device && a.path == b.path;
    }
};

/// Modules by number.
class ModuleTable {
  public:
    uint32_t intern(Module module);
    [[nodiscard]] const std::vector<Module> &all() const { return modules_; }
    [[nodiscard]] Module &operator[](uint32_t id) { return modules_[id]; }
    [[nodiscard]] const Module &operator[](uint32_t id) const { return modules_[id]; }

  private:
    std::vector<Module> modules_;
    IdIndex index_;
};

/// Where a frame is.
struct FrameLocation {
    uint64_t address = 0; ///< in its process (of the first process that it was seen in, when places are shared)
    /// With a module of kind file or vdso; of memory made at run time which of the functions that lay there one after the other
    /// (MapsSource::code_layer()).
    uint64_t file_offset = 0;
    uint32_t module = kNone; ///< kNone: kernel, or in no known mapping
    uint32_t pid = 0;        ///< for anonymous memory, where an address means something only within its process; else 0
    bool kernel = false;
    bool caller = false; ///< a return address: the call is the instruction before it
};

/// Whether places of one file offset at different addresses (the same program in many processes) are one place or several.
enum class Sharing : uint8_t { by_offset, by_address };

class StackTree {
  public:
    explicit StackTree(Sharing sharing = Sharing::by_address) : sharing_(sharing) {}

    struct Node {
        uint32_t caller; ///< node, or kNone at the outermost frame
        uint32_t place;
    };
    uint32_t intern_place(const FrameLocation &place);
    uint32_t intern_node(uint32_t caller, uint32_t place);
    /// Add without looking for an equal one: a capture's reader, whose numbers are given by the file.
    void append_place(const FrameLocation &place) { places_.push_back(place); }
    void append_node(const Node &node) { nodes_.push_back(node); }

    [[nodiscard]] const std::vector<FrameLocation> &places() const { return places_; }
    [[nodiscard]] const std::vector<Node> &nodes() const { return nodes_; }
    /// Calls `each(place number)` from the leaf to the outermost frame.
    template <class Each> void walk(uint32_t node, Each &&each) const {
        for (; node != kNone; node = nodes_[node].caller) each(nodes_[node].place);
    }
    [[nodiscard]] size_t memory() const;
    void clear();

  private:
    [[nodiscard]] uint64_t hash(const FrameLocation &place) const;
    [[nodiscard]] bool same(const FrameLocation &a, const FrameLocation &b) const;
    Sharing sharing_;
    std::vector<FrameLocation> places_;
    std::vector<Node> nodes_;
    IdIndex place_index_, node_index_;
};

/// Nothing is known of a user stack's end: there is none, or it was walked without tables.
inline constexpr uint8_t kNoEnding = UINT8_MAX;

/// A sample whose stacks are numbers; what the stages pass on.
struct InternedSample {
    uint64_t t_ns = 0;   ///< CLOCK_MONOTONIC
    uint64_t weight = 1; ///< NamedSample::weight
    uint32_t pid = 0, tid = 0, cpu = 0;
    int32_t kernel_bytes = 0, user_bytes = 0;
    uint32_t kernel = kNone, user = kNone; ///< nodes
    bool kernel_thread = false;            ///< has no user stack to miss
    uint8_t ending = kNoEnding;            ///< UNWIND_ENDED_...: why the walk of the user stack ended
    uint32_t labels = 0;                   ///< their number (label_sets.h); 0: none
    uint32_t origin = 0;                   ///< what else its owner wants to know of it; doesn't tell samples apart
    char comm[16] = {};
};

/// Equal samples counted: same process (or thread), thread name, stacks, and the same kind of incompleteness.
class CountTable {
  public:
    /// From the beginning: samples of different threads aren't equal.
    void keep_threads_apart() { by_thread_ = true; }
    struct Entry {
        InternedSample first;
        uint64_t count;  ///< samples
        uint64_t weight; ///< the sum of theirs
    };
    void add(const InternedSample &sample, uint64_t count = 1);
    [[nodiscard]] const std::vector<Entry> &entries() const { return entries_; }
    void clear();
    [[nodiscard]] size_t memory() const { return entries_.capacity() * sizeof(Entry) + index_.memory(); }

  private:
    [[nodiscard]] uint64_t hash(const InternedSample &sample) const;
    bool by_thread_ = false;
    std::vector<Entry> entries_;
    IdIndex index_;
};

} // namespace rawbpf::inline v0::processes
