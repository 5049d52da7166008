// The recording side of a trace: events as numbers, no names.
//
//      Tracer --Event--> Recorder: stacks and functions located --> recording::Writer
//
// What an address is has to be asked at once, as its process may be gone a moment later; what it is called is for the report.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "programs/processes/following.h"
#include "programs/recording/recording.h"
#include "programs/trace/ledger.h"
#include "programs/trace/names.h"
#include "programs/trace/recording.h"
#include "programs/trace/tracer.h"

namespace rawbpf::inline v0::trace {

class Recorder {
  public:
    /// `fd` is borrowed; -1: take() has the bytes. `kernel`: what types are from, where it is known. All must outlive this.
    Recorder(int fd, const Settings &settings, const std::vector<ProbeSite> &places, const btf::Btf *kernel);

    [[nodiscard]] processes::Following &following() { return names_.following(); }
    /// See View.
    [[nodiscard]] bool wants_watch(int workload) const;
    [[nodiscard]] Result<void> start(const RunInfo &run, uint64_t start_ns);
    void event(const Event &event);
    /// Writes what has been gathered, once there is enough of it or a second is over. To be called often.
    [[nodiscard]] Result<void> flush(uint64_t now_ns);
    /// Which of the threads that calls were of are there still: before the command is ended.
    void look_who_lives();
    /// The names that no report can find, how firings were spent, and what it cost.
    [[nodiscard]] Result<void> finish(const Spent &spent, recording::End end);
    /// What was written.
    [[nodiscard]] uint64_t events() const { return events_; }
    [[nodiscard]] std::vector<std::string> warnings() const { return names_.warnings(); }
    /// Of user stacks, where they were walked by tables.
    [[nodiscard]] const processes::StackEnds &stack_ends() const { return names_.ends(); }
    [[nodiscard]] std::string take() { return writer_.take(); }

  private:
    /// What all records of a place and kind have in common.
    struct Form {
        uint32_t number = 0;
        std::vector<uint64_t> last; ///< values of the last one
        struct Function {           ///< a value that may be a function's address
            uint32_t value;
            Type type;
        };
        std::vector<Function> functions;
        std::vector<uint32_t> go_types; ///< columns whose type Go's program names
    };
    [[nodiscard]] Form &form_of(const Event &event);
    [[nodiscard]] uint32_t layout_of(const Layout *layout);
    [[nodiscard]] uint32_t enum_of(btf::TypeId id);
    [[nodiscard]] uint32_t thread_of(const Header &header);
    void keep_bounded(const Layout &layout);
    void put_blob(std::string &payload, const Event &event, const Blob &blob);
    void put_go_types(const Event &event, const Form &form);
    void locate_functions(const Event &event, const Form &form);
    void write_names();

    Settings settings_;
    const std::vector<ProbeSite> &places_;
    const btf::Btf *kernel_;
    Names names_;
    recording::Writer writer_;
    std::vector<std::unique_ptr<Form>> forms_; ///< by place; of its calls, of its returns
    uint32_t forms_written_ = 0;
    std::unordered_map<const Layout *, uint32_t> layouts_;
    std::unordered_map<std::string, uint32_t> constants_, threads_, texts_; ///< what was put -> its number
    std::unordered_map<btf::TypeId, uint32_t> enums_;
    uint32_t enums_written_ = 0;
    std::unordered_set<std::string> go_types_;
    std::unordered_set<uint32_t> callers_; ///< threads and processes that calls were of
    std::vector<uint32_t> alive_;          ///< of them, at the end
    std::vector<uint32_t> functions_;      ///< of one event
    uint64_t last_frame_ = 0, events_ = 0;
};

} // namespace rawbpf::inline v0::trace
