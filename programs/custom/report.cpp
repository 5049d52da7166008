#include "programs/custom/report.h"

#include <utility>

#include "programs/custom/names.h"
#include "programs/processes/namer.h"
#include "programs/recording/file_symbols.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::custom {
namespace {

constexpr uint64_t kAtOnce = 8192; // traces that are shown before they are written

/// Names of a recording: numbers are the file's, and nothing waits.
class RecordedNames : public TraceNames {
  public:
    RecordedNames(recording::Reader &reader, processes::SymbolSource &source, processes::SourceDetail detail)
        : reader_(reader), namer_(reader.tree(), reader.modules(), source, detail) {}

    /// Gives it the names that came along, and the user stack that is right.
    void complete(LocatedTrace &trace, recording::BroughtNames &brought) {
        const processes::StackTree &tree = reader_.tree();
        for (const uint32_t node : {trace.kernel, trace.user, trace.with_caller}) brought.give(namer_, tree, node);
        if (trace.user == processes::kNone || trace.with_caller == processes::kNone) return;
        if (begins_at(tree.nodes()[trace.user].place)) trace.user = trace.with_caller;
    }
    [[nodiscard]] bool kernel_ready(std::span<const uint32_t>, uint64_t, uint64_t) const override { return true; }
    void name_kernel(std::span<const uint32_t>) override {}
    [[nodiscard]] bool full() override { return false; } // the file says when
    void clear() override { namer_.clear(); }

  private:
    [[nodiscard]] Parts parts() override { return {reader_.tree(), namer_, reader_.modules(), reader_.label_sets()}; }
    recording::Reader &reader_;
    processes::Namer namer_;
};

} // namespace

/// The first reading.
class Report::Collect : public recording::Reader::Visitor {
  public:
    Collect(TraceReader &traces, recording::BroughtNames &names) : traces_(traces), names_(names) {}
    Result<bool> chunk(uint8_t type, recording::Cursor &in) override { return traces_.chunk(type, in); }
    void name(uint32_t place, Frame &&frame) override { names_.add(place, std::move(frame)); }
    Result<void> part_ends() override {
        names_.part_ends();
        return {};
    }

  private:
    TraceReader &traces_;
    recording::BroughtNames &names_;
};

/// The second one.
class Report::Show : public recording::Reader::Visitor {
  public:
    Show(recording::Reader &reader, recording::BroughtNames &brought, RecordedNames &names, View &view)
        : brought_(brought), names_(names), view_(view), traces_(reader, [this](LocatedTrace &trace) { return show(trace); }) {}

    Result<bool> chunk(uint8_t type, recording::Cursor &in) override { return traces_.chunk(type, in); }
    Result<void> part_ends() override {
        view_.drain();
        names_.clear();
        brought_.next_part();
        return {};
    }

  private:
    Result<void> show(LocatedTrace &trace) {
        names_.complete(trace, brought_);
        view_.trace(trace);
        return view_.tally().shown() % kAtOnce ? Result<void>() : view_.flush(trace.head.t_ns);
    }

    recording::BroughtNames &brought_;
    RecordedNames &names_;
    View &view_;
    TraceReader traces_;
};

Result<std::unique_ptr<Report>> Report::open(Bytes recording, const std::string &name) {
    std::unique_ptr<Report> out(new Report(recording, name));
    Collect collect(out->first_, out->names_);
    TRY(out->reader_.read(recording::Tool::custom, collect));
    return out;
}

Result<ReportEnd> Report::show(ViewOptions how, const ReportNames &from, render::Writer &writer) {
    const Settings &was = settings();
    how.off_cpu = was.off_cpu;
    how.origins = was.samples || was.off_cpu;
    how.guarded = was.guarded;
    ReportEnd end;
    end.run = reader_.header().run;
    recording::FileSymbols files(from.symfs, from.debug_info);
    RecordedNames names(reader_, files, from.detail);
    View view(how, names, end.run, reader_.header().start_ns, writer);
    TRY(view.start());
    Show show(reader_, names_, names, view);
    TRY(reader_.read(recording::Tool::custom, show));
    end.ledger = reader_.end().ledger;
    end.ledger.degraded = view.tally().degraded();
    end.ledger.stack_ends = view.tally().stack_ends();
    end.ledger.waits = first_.waits();
    end.set_recorded(reader_.end(), names.advice(was.unwind));
    TRY(view.finish(end.ledger));
    end.totals = view.tally().totals();
    end.warnings = reader_.end().warnings;
    if (!reader_.cut().empty()) end.warnings.push_back(reader_.cut());
    for (const std::string &warning : files.warnings()) end.warnings.push_back(warning);
    if (from.debug_info)
        for (std::string &warning : from.debug_info->warnings()) end.warnings.push_back(std::move(warning));
    end.unread = files.unread() || !reader_.cut().empty();
    return end;
}

} // namespace rawbpf::inline v0::custom
