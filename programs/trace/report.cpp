#include "programs/trace/report.h"

#include <optional>
#include <utility>

#include "programs/processes/early_ends.h"
#include "programs/processes/namer.h"
#include "programs/recording/file_symbols.h"
#include "programs/trace/names.h"
#include "programs/trace/view.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr uint64_t kQuietNs = 100'000'000; // after so long without an event, a live run shows what it holds back

/// Names of a recording: numbers are the file's, and nothing waits.
class RecordedNames : public EventNames {
  public:
    RecordedNames(recording::Reader &reader, processes::SymbolSource &source, processes::SourceDetail detail,
                  uint32_t most_frames)
        : EventNames(most_frames), reader_(reader), namer_(reader.tree(), reader.modules(), source, detail) {}

    /// What locate() and symbol() are about from here on.
    void set(const RecordedEvent &event, recording::BroughtNames &names) {
        event_ = &event;
        names.give(namer_, reader_.tree(), event.stack.kernel);
        names.give(namer_, reader_.tree(), event.stack.user);
        for (const auto &[address, place] : event.functions) names.give_place(namer_, place);
    }

    [[nodiscard]] processes::InternedSample locate(const Event &) override {
        ends_.add(event_->stack.ending);
        return event_->stack;
    }
    [[nodiscard]] uint32_t labels_of(const Event &) override { return event_->stack.labels; }
    [[nodiscard]] const processes::LabelSets &label_sets() const override { return reader_.label_sets(); }
    [[nodiscard]] std::string_view symbol(uint32_t, uint64_t address, uint64_t) override {
        for (const auto &[its, place] : event_->functions)
            if (its == address) return last_ = function_name(*namer_.frame(place));
        return {};
    }
    [[nodiscard]] bool kernel_known(uint32_t) const override { return true; }
    [[nodiscard]] bool kernel_ready(std::span<const uint32_t>, uint64_t, uint64_t) const override { return true; }
    void name_kernel(std::span<const uint32_t>) override {}
    [[nodiscard]] bool full() const override { return false; } // the file says when
    void forget() override {}
    void trim() override {}
    [[nodiscard]] std::vector<std::string> warnings() const override { return {}; }
    void part_ends() { namer_.clear(); }

  private:
    [[nodiscard]] Parts parts() const override { return {reader_.tree(), namer_, reader_.modules(), early_}; }
    recording::Reader &reader_;
    mutable processes::Namer namer_;
    mutable processes::EarlyEnds early_;
    const RecordedEvent *event_ = nullptr;
    std::string last_;
};

} // namespace

/// The first reading.
class Report::Collect : public recording::Reader::Visitor {
  public:
    Collect(EventReader &events, recording::BroughtNames &names) : events_(events), names_(names) {}
    Result<bool> chunk(uint8_t type, recording::Cursor &in) override { return events_.chunk(type, in); }
    void name(uint32_t place, Frame &&frame) override { names_.add(place, std::move(frame)); }
    Result<void> part_ends() override {
        names_.part_ends();
        return {};
    }

  private:
    EventReader &events_;
    recording::BroughtNames &names_;
};

/// The second one.
class Report::Show : public recording::Reader::Visitor {
  public:
    Show(recording::Reader &reader, recording::BroughtNames &brought, RecordedNames &names, const std::vector<ProbeSite> &places,
         View &view)
        : brought_(brought), names_(names), places_(places), view_(view),
          events_(reader, [this](const RecordedEvent &event) { show(event); }) {}

    Result<bool> chunk(uint8_t type, recording::Cursor &in) override {
        const bool known = TRY(events_.chunk(type, in));
        TRY(std::exchange(flushed_, {}));
        return known;
    }
    Result<void> part_ends() override {
        view_.part_ends();
        names_.part_ends();
        brought_.next_part();
        return {};
    }

  private:
    void show(const RecordedEvent &recorded) {
        names_.set(recorded, brought_);
        Event event = recorded.event;
        const uint64_t now = event.header.time;
        if (now > last_ns_ + kQuietNs) flushed_ = view_.flush(now);
        last_ns_ = now;
        if (event.place) event.place = &places_[event.header.place]; // with all names of Go's types
        view_.event(event);
    }

    recording::BroughtNames &brought_;
    RecordedNames &names_;
    const std::vector<ProbeSite> &places_;
    View &view_;
    EventReader events_;
    uint64_t last_ns_ = 0;
    Result<void> flushed_;
};

Result<std::unique_ptr<Report>> Report::open(Bytes recording, const std::string &name) {
    std::unique_ptr<Report> out(new Report(recording, name));
    Collect collect(out->first_, out->names_);
    TRY(out->reader_.read(recording::Tool::trace, collect));
    return out;
}

Result<ReportEnd> Report::show(ViewOptions how, const std::string &symfs, render::Writer &writer) {
    const Settings &was = settings();
    how.count = was.count;
    how.calls = was.calls;
    how.returns = was.returns;
    how.stack = was.stack;
    ReportEnd end;
    end.run = reader_.header().run;
    const btf::Btf enums = TRY(first_.enums());
    recording::FileSymbols files(symfs, how.debug_info);
    RecordedNames names(reader_, files, how.source, was.most_frames);
    View view(how, first_.places(), end.run, &enums, reader_.header().start_ns, writer, names);
    TRY(view.start());
    Show show(reader_, names_, names, first_.places(), view);
    TRY(reader_.read(recording::Tool::trace, show));
    view.drain();
    TRY(view.stop_counting());
    const Spent &spent = first_.spent();
    end.ledger = ledger_of(spent, view, open_calls(view.calls(), [this](uint32_t id) { return first_.alive(id); }));
    end.set_recorded(reader_.end(), view.advice(was.unwind, arch_of_uname(end.run.arch)));
    TRY(view.finish(spent.counts, end.ledger));
    TRY(writer.flush());
    end.places = places_ledger(view.names(), merge_sites(first_.places(), spent.counts));
    end.warnings = reader_.end().warnings;
    if (!reader_.cut().empty()) end.warnings.push_back(reader_.cut());
    for (const std::string &warning : files.warnings()) end.warnings.push_back(warning);
    if (how.debug_info)
        for (std::string &warning : how.debug_info->warnings()) end.warnings.push_back(std::move(warning));
    end.unread = files.unread() || !reader_.cut().empty();
    return end;
}

} // namespace rawbpf::inline v0::trace
