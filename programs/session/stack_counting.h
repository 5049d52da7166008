// Stacks that are counted in the kernel: the user's half. Formats that only count don't need to see each sample; they need the
// first of each kind, and how many followed.
//
//      StackCounts counts([&](const InternedSample *sample, uint64_t more) { ... });
//      program_spec(source, {.., .counting = StackCounting options});     // the program has the stage (counting_dsl.h)
//      TRY(counts.start(object, stacks));
//      ...
//      counts.met(record.key, &interned);                                 // each record, at its place in time
//      TRY(counts.tick(now, table.remaps()));                             // now and then
//      ...
//      TRY(counts.finish());                                              // when no CPU runs the program any more
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "programs/capture/counting.h"
#include "programs/processes/id_index.h"
#include "programs/processes/stacks.h"
#include "runtime/kernel/loader.h"

namespace rawbpf::inline v0::session {

/// Why this kernel can't count stacks; nullopt: it can, as far as one knows without trying.
[[nodiscard]] std::optional<std::string> why_not_counted();

class StackCounts {
  public:
    /// Takes what was counted: `more` samples like `sample`; nullptr: of processes that nobody wants.
    using Receive = std::function<void(const processes::InternedSample *sample, uint64_t more)>;
    explicit StackCounts(Receive receive) : receive_(std::move(receive)) {}

    /// Counting begins. The object must outlive this. Nothing happens where its program doesn't have the stage. `always`: also
    /// where nearly all stacks are new, as sending each is dearer than its key.
    [[nodiscard]] Result<void> start(LoadedObject &object, uint32_t stacks, bool always = false);
    [[nodiscard]] bool on() const { return outer_ != nullptr; }
    /// A record came. `key` 0: it was sent because nothing is counted, or there was no room. nullptr: nobody wants it.
    void met(uint64_t key, const processes::InternedSample *sample);
    /// Takes what was counted, about once a second; makes room; stops for a while when nearly all stacks are new. Starts anew
    /// when `remaps` (ProcessTable::remaps()) has changed: addresses mean something else.
    [[nodiscard]] Result<void> tick(uint64_t now_ns, uint64_t remaps);
    /// So many records have been lost behind the program until now. One that was the first of its kind won't come again: tick()
    /// starts anew, so that the next of its kind is sent, and has the counts of those before it.
    void lost(uint64_t records) { lost_ = records; }
    /// What was met means something else from here on: takes what was counted and forgets all of it. Every stack's next sample is
    /// sent again. Waits until no CPU counts in the old map any more: some milliseconds.
    [[nodiscard]] Result<void> start_anew();
    /// Takes the rest. All records must have been met, and no CPU may run the program any more.
    [[nodiscard]] Result<void> finish();

    /// Samples counted.
    [[nodiscard]] uint64_t counted() const { return counted_; }
    /// How often it stopped for a while because stacks didn't repeat.
    [[nodiscard]] uint64_t pauses() const { return pauses_; }
    /// After finish(): samples counted whose record never came, as it was lost.
    [[nodiscard]] uint64_t unknown() const;

  private:
    struct Known {
        uint64_t key = 0, seen = 0; // of its count, in the current map
        processes::InternedSample sample;
        bool wanted = true;
    };
    [[nodiscard]] uint32_t find(uint64_t key) const;
    void add(const Known &known, uint64_t more);
    [[nodiscard]] Result<void> read(const Map &counts, bool last);
    [[nodiscard]] Result<void> begin();
    [[nodiscard]] Result<void> end();
    [[nodiscard]] Result<void> judge(uint64_t now_ns);

    Receive receive_;
    Map *outer_ = nullptr;
    std::optional<Map> current_; // in the outer map; without one, nothing is counted
    uint32_t stacks_ = 0;
    bool always_ = false;
    std::vector<Known> known_; // of the current map
    processes::IdIndex index_;
    std::unordered_map<uint64_t, uint64_t> early_; // counts of an old map, whose records are still in the rings
    uint64_t counted_ = 0, pauses_ = 0, remaps_ = 0;
    uint64_t repeats_ = 0, records_ = 0; // since they were last judged
    uint64_t read_ns_ = 0, resume_ns_ = 0, pause_ns_ = 0;
    uint64_t lost_ = 0, asked_ = 0, asked_ns_ = 0; // records; so many of them were asked for again, and when
};

} // namespace rawbpf::inline v0::session
