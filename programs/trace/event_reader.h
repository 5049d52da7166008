// A recording's chunks of a trace, as the events that the tracer gave. What is in them may be anything.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "programs/processes/stacks.h"
#include "programs/recording/names.h"
#include "programs/recording/recording.h"
#include "programs/trace/described.h"
#include "programs/trace/ledger.h"
#include "programs/trace/recording.h"
#include "programs/trace/tracer.h"

namespace rawbpf::inline v0::trace {

/// An event, and what was known of its addresses. Good until the function that it was given to returns.
struct RecordedEvent {
    Event event;
    processes::InternedSample stack;                      ///< with Settings::stack; its labels always
    std::vector<std::pair<uint64_t, uint32_t>> functions; ///< addresses in its values that may be functions', and their places
};

class EventReader : public recording::Reader::Visitor {
  public:
    using See = std::function<void(const RecordedEvent &)>;
    /// Both must outlive this; `see` may be empty.
    EventReader(recording::Reader &reader, See see) : reader_(reader), see_(std::move(see)) {}

    [[nodiscard]] const Settings &settings() const { return settings_; }
    /// All of them; after reading.
    [[nodiscard]] const std::vector<ProbeSite> &places() const { return places_; }
    /// What types of places and columns refer to. To be called once, after reading; it refers to this.
    [[nodiscard]] Result<btf::Btf> enums() { return enums_.finish(reader_.name()); }
    /// How firings were spent: as it was recorded, or where that is missing, what the events tell.
    [[nodiscard]] const Spent &spent() const { return spent_; }
    /// Whether a thread or process was there still when the recording ended; where nobody knows: yes.
    [[nodiscard]] bool alive(uint32_t id) const { return !ended_ || alive_.contains(id); }

    // Of recording::Reader::Visitor:
    Result<bool> chunk(uint8_t type, recording::Cursor &in) override;

  private:
    struct Form {
        uint32_t place = 0;
        What what = What::call;
        Layout layout;
        std::vector<uint64_t> last;
        struct Function {
            uint32_t value;
            Type type;
        };
        std::vector<Function> functions;
    };
    struct Thread {
        uint32_t pid = 0, tid = 0;
        char comm[16] = {};
    };
    Result<void> read_settings(recording::Cursor &in);
    Result<void> read_place(recording::Cursor &in);
    Result<void> read_form(recording::Cursor &in);
    Result<void> read_thread(recording::Cursor &in);
    Result<void> read_text(recording::Cursor &in);
    Result<void> read_event(recording::Cursor &in);
    Result<void> read_exec(recording::Cursor &in);
    Result<void> read_counts(recording::Cursor &in);
    Result<void> read_go_type(recording::Cursor &in);
    Result<void> read_blob(recording::Cursor &in, const Blob &blob);
    Result<void> read_stack(recording::Cursor &in, processes::InternedSample &to) const;
    void set_thread(Header &header, const Thread &thread) const;

    recording::Reader &reader_;
    See see_;
    bool begun_ = false, ended_ = false;
    Settings settings_;
    EnumReader enums_;
    std::vector<ProbeSite> places_;
    std::map<uint32_t, std::shared_ptr<RecordedGoTypes>> go_types_; ///< by place
    std::vector<Layout> layouts_;
    std::vector<std::shared_ptr<const OwnConstants>> constants_;
    std::deque<Form> forms_;
    std::unordered_set<uint64_t> formed_; ///< place and what of them
    std::vector<Thread> threads_;
    std::vector<Bytes> texts_;
    Spent spent_;
    std::unordered_set<uint32_t> alive_;
    uint64_t last_frame_ = 0;
    std::vector<std::byte> record_; ///< of the event that is read
    RecordedEvent event_;
};

} // namespace rawbpf::inline v0::trace
