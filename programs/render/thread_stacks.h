// A profile's samples by thread, each distinct stack kept once: what pprof, speedscope and firefox are made from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "programs/render/frame.h"
#include "programs/render/tool_formats.h"

namespace rawbpf::inline v0::render {

class ThreadStacks {
  public:
    static constexpr uint32_t kNone = ~0u;
    struct Node {
        uint32_t caller = kNone; ///< node; kNone at the outermost frame
        uint32_t frame = 0;      ///< index into frames()
    };
    struct Run {
        uint64_t t_ns = 0;   ///< of the first of them, since the start of the recording
        uint32_t node = 0;   ///< the leaf
        uint32_t origin = 0; ///< index into origins()
        uint32_t labels = 0; ///< index into labels()
        uint64_t count = 0;  ///< of waits: nanoseconds
        uint64_t weight = 0; ///< the sum of TraceOrigin::weight
    };
    struct Thread {
        uint32_t pid = 0, tid = 0;
        std::string comm;
        std::vector<Run> runs; ///< a sample each; when counted, a distinct stack each
        uint64_t first_ns = 0, last_ns = 0;
    };
    struct Options {
        bool addresses = false;        ///< frames of one function at two addresses are two
        bool counted = false;          ///< equal stacks of a thread (and origin) are one from the start, whatever their times
        bool labels = false;           ///< labels tell stacks apart, and aren't the outermost frames
        size_t most_samples = 4 << 20; ///< kept one by one (130 MB); with more they are counted
    };

    explicit ThreadStacks(Options options) : options_(options) {}
    void add(const NamedSample &sample, uint64_t count, const TraceOrigin &origin = {});
    /// Puts each thread's runs in the order of time. No add() after it.
    void finish();

    /// A representative of each distinct frame; those that stand for a stack that isn't there have a name in brackets.
    [[nodiscard]] const std::vector<FramePtr> &frames() const { return frames_; }
    [[nodiscard]] const std::vector<Node> &nodes() const { return nodes_; } ///< callers come first
    [[nodiscard]] const std::vector<Thread> &threads() const { return threads_; }
    [[nodiscard]] const std::vector<TraceOrigin> &origins() const { return origins_; }
    [[nodiscard]] const std::vector<LabelsPtr> &labels() const { return labels_; } ///< the first is nullptr: none
    /// Whether equal stacks were put together, so that the order within a thread says nothing.
    [[nodiscard]] bool counted() const { return options_.counted; }

  private:
    struct RunKey {
        uint32_t thread, node, origin, labels;
        bool operator==(const RunKey &) const = default;
    };
    struct HashRunKey {
        size_t operator()(const RunKey &key) const {
            return ((uint64_t{key.thread} << 32 | key.node) ^ (uint64_t{key.labels} << 32 | key.origin) * 0xff51afd7ed558ccd) *
                   0x9e3779b97f4a7c15;
        }
    };
    uint32_t frame_id(const FramePtr &frame);
    uint32_t origin_id(const TraceOrigin &origin);
    uint32_t labels_id(const LabelsPtr &labels);
    uint32_t note(uint32_t caller, const std::string &name);
    uint32_t descend(uint32_t caller, uint32_t frame);
    void put(uint32_t thread, const Run &run);
    void count_instead();

    Options options_;
    std::vector<FramePtr> frames_;
    std::vector<Node> nodes_;
    std::vector<Thread> threads_;
    std::unordered_map<std::string, uint32_t> frame_ids_;  // what makes a frame distinct -> frame
    std::unordered_map<const Frame *, uint32_t> known_;    // those seen lately, held by holders_
    std::vector<FramePtr> holders_;                        // so that no address is used again
    std::unordered_map<uint64_t, uint32_t> callees_;       // caller << 32 | frame -> node
    std::unordered_map<std::string, uint32_t> thread_ids_; // pid, tid and comm -> thread
    std::unordered_map<RunKey, uint32_t, HashRunKey> counted_;
    std::vector<TraceOrigin> origins_{1};                  // the first is that of a clock's samples
    std::unordered_map<std::string, uint32_t> origin_ids_; // event and context
    size_t runs_ = 0;
    std::vector<LabelsPtr> labels_{1};
    std::map<Labels, uint32_t> label_ids_;
    std::unordered_map<std::string, uint32_t> notes_; // labels; frames that stand for a stack that isn't there
    std::string scratch_;
};

} // namespace rawbpf::inline v0::render
