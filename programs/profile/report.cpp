// A report reads its capture twice. The first pass checks every byte and collects the names that the file brings along, which
// stand behind the samples they belong to; the second hands the samples over. So a damaged file is refused before a line is
// printed, and the memory needed doesn't depend on the number of samples.
#include <utility>

#include "programs/profile/capture.h"
#include "programs/profile/deliver.h"
#include "programs/recording/file_symbols.h"
#include "programs/recording/names.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0 {

namespace profile {
namespace {

class Collect : public CaptureReader::Visitor {
  public:
    explicit Collect(recording::BroughtNames &names) : names_(names) {}
    void name(uint32_t place, Frame &&frame) override { names_.add(place, std::move(frame)); }
    Result<void> part_ends() override {
        names_.part_ends();
        return {};
    }

  private:
    recording::BroughtNames &names_;
};

class Deliver : public CaptureReader::Visitor {
  public:
    Deliver(CaptureReader &reader, recording::BroughtNames &names, processes::Namer &namer, Deliverer &deliverer)
        : reader_(reader), names_(names), namer_(namer), deliverer_(deliverer) {}
    Result<void> sample(const processes::InternedSample &sample) override {
        names_.give(namer_, reader_.tree(), sample.kernel);
        names_.give(namer_, reader_.tree(), sample.user);
        deliverer_.add(sample);
        return deliverer_.pending() >= kBatch ? deliverer_.flush(0) : Result<void>{};
    }
    Result<void> part_ends() override {
        names_.next_part();
        return deliverer_.finish();
    }

  private:
    static constexpr size_t kBatch = 256;
    CaptureReader &reader_;
    recording::BroughtNames &names_;
    processes::Namer &namer_;
    Deliverer &deliverer_;
};

} // namespace
} // namespace profile

Result<RunInfo> captured_run(Bytes capture, const std::string &name) {
    profile::CaptureReader reader(capture, name);
    profile::CaptureReader::Visitor nobody;
    TRY(reader.read(nobody));
    return reader.header().run;
}

Result<Outcome> report_capture(Bytes capture, const std::string &name, const ReportOptions &options, Sink &sink) {
    using namespace profile;
    recording::BroughtNames names;
    CaptureReader reader(capture, name);
    Collect collect(names);
    TRY(reader.read(collect));

    recording::FileSymbols files(options.symfs, options.debug_info);
    processes::Namer namer(reader.tree(), reader.modules(), files, {options.lines, options.inlined});
    Deliverer deliverer(reader.tree(), namer, options.delivery, options.names, sink);
    deliverer.label_by(reader.label_sets());
    if (options.per_thread) deliverer.keep_threads_apart();
    deliverer.set_clock({reader.header().start_ns, reader.header().run.start_wall_ns});
    TRY(sink.start(reader.header().run));
    Deliver deliver(reader, names, namer, deliverer);
    TRY(reader.read(deliver));

    Outcome outcome = reader.outcome();
    if (!reader.cut().empty()) outcome.warnings.push_back(reader.cut());
    outcome.ledger.degraded = deliverer.degraded();
    outcome.ledger.stack_ends = deliverer.stack_ends();
    outcome.ended_early = deliverer.early_ends().list();
    for (const std::string &warning : files.warnings()) outcome.warnings.push_back(warning);
    outcome.unread = files.unread() || !reader.cut().empty();
    outcome.advice = deliverer.early_ends().advice(reader.modules(),
                                                   processes::remedy_of(UnwindBy::fp, arch_of_uname(reader.header().run.arch)));
    if (options.debug_info)
        for (std::string &warning : options.debug_info->warnings()) outcome.warnings.push_back(std::move(warning));
    return outcome;
}

} // namespace rawbpf::inline v0
