// Which mappings programs see of which process.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "programs/unwind/pools.h"

namespace rawbpf::inline v0::unwind {

/// The map unwind_processes, or a fake.
class ProcessSink {
  public:
    virtual ~ProcessSink() = default;
    /// Of what was mapped at that time. False: the process has executed a program since, and has no entry. Errors: whatever the
    /// kernel says; E2BIG when it is full.
    virtual Result<bool> put(uint32_t pid, const UnwindProcess &process, uint64_t as_of_ns) = 0;
    /// Whether it has an entry: one that was put goes when the process executes a program.
    virtual bool has(uint32_t pid) = 0;
    virtual Result<void> erase(uint32_t pid) = 0;
};

enum class Publication : uint8_t {
    done,
    no_room,  ///< for the list
    executed, ///< it isn't true any more: the process has executed a program meanwhile
};

/// Which stacks of a process are copied (UnwindProcess::since_ns).
enum class Copied : uint8_t {
    while_young, ///< those that come to unknown code, for as long as what is told is news
    unknown,     ///< those, always
    all,
};

class Processes {
  public:
    /// At most `most` processes at a time.
    Processes(Pools &pools, PoolSource &source, ProcessSink &sink, uint32_t most)
        : pools_(pools), source_(source), sink_(sink), most_(most) {}

    /// Lets programs see these mappings (ascending, without overlap, at most UNWIND_MAX_MAPPINGS) in place of what they saw of
    /// the process; it had them at `as_of_ns`. Where it isn't done they see nothing of the process any more. The least recently
    /// used process makes room in the map.
    [[nodiscard]] Result<Publication> publish(uint32_t pid, std::span<const UnwindMapping> mappings, uint64_t as_of_ns,
                                              uint64_t now_ns, Copied copied = Copied::while_young);
    /// Nothing is known of the process any more.
    [[nodiscard]] Result<void> withdraw(uint32_t pid);
    /// Withdraws all processes with a mapping whose pages begin there. Returns which.
    [[nodiscard]] Result<std::vector<uint32_t>> withdraw_users(uint32_t directory);
    void used(uint32_t pid, uint64_t now_ns);

    [[nodiscard]] bool published(uint32_t pid) const { return published_.count(pid) != 0; }
    [[nodiscard]] size_t size() const { return published_.size(); }
    /// How often a process had to make room for another.
    [[nodiscard]] uint64_t evictions() const { return evictions_; }

  private:
    struct List { // shared by a process and its children, until one of them changes
        uint32_t position, count, users;
        uint64_t hash;
    };
    struct Published {
        uint32_t list;
        uint64_t used_ns;
        Copied copied;
    };
    [[nodiscard]] std::span<const UnwindMapping> mappings(const List &list) const;
    void leave(uint32_t list);

    Pools &pools_;
    PoolSource &source_;
    ProcessSink &sink_;
    uint32_t most_;
    std::vector<List> lists_; // users == 0: the slot is free
    std::unordered_map<uint32_t, Published> published_;
    uint64_t evictions_ = 0;
};

} // namespace rawbpf::inline v0::unwind
