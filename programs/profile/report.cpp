// A report reads its capture twice. The first pass checks every byte and collects the names that the file brings along, which
// stand behind the samples they belong to; the second hands the samples over. So a damaged file is refused before a line is
// printed, and the memory needed doesn't depend on the number of samples.
//
// A file is taken for a module's only when its build-id is the one that was captured: symbols of another build would give wrong
// names, which is worse than none. Where the captured file had no build-id, its path must do, and a warning says so.
#include "programs/profile/report.h"

#include <algorithm>

#include "programs/profile/capture.h"
#include "programs/profile/deliver.h"
#include "programs/xz.h"

namespace rawbpf::inline v0 {

namespace profile {

std::optional<symbols::ElfSymbols> FileSymbols::find(const Module &module) {
    if (module.kind != ModuleKind::file) return std::nullopt;
    struct Candidate {
        std::string path, root;
    };
    std::vector<Candidate> candidates;
    if (!symfs_.empty()) {
        candidates.push_back({module.path, symfs_});
        if (module.build_id.size() > 2)
            candidates.push_back(
                {"/.build-id/" + module.build_id.substr(0, 2) + "/" + module.build_id.substr(2) + ".debug", symfs_});
    }
    candidates.push_back({module.path, {}});
    std::string other;
    for (const Candidate &candidate : candidates) {
        auto id = symbols::read_build_id(candidate.path, candidate.root);
        if (!id) continue;
        if (*id != module.build_id) {
            other = candidate.root + candidate.path;
            continue;
        }
        auto table = symbols::ElfSymbols::load(candidate.path, candidate.root, unpack_xz);
        if (!table) {
            warnings_.push_back(format("{}: {}", module.path, table.error().message()));
            continue;
        }
        if (id->empty())
            warnings_.push_back(format("{} has no build-id; named from {}{}, which may be another version", module.path,
                                       candidate.root, candidate.path));
        return std::move(*table);
    }
    if (!other.empty())
        warnings_.push_back(
            format("{} has another build-id than the {} that was captured: not named from it", other, module.path));
    else
        warnings_.push_back(format("{} isn't here: its functions have no names", module.path));
    return std::nullopt;
}

std::optional<symbols::Name> FileSymbols::in_module(uint32_t module_id, const Module &module, uint64_t file_offset) {
    auto at = tables_.find(module_id);
    if (at == tables_.end()) at = tables_.emplace(module_id, find(module)).first;
    return at->second ? at->second->find(file_offset) : std::nullopt;
}

namespace {

/// The names the capture brings along, by part (the stretch between two resets) and place.
using Names = std::vector<std::unordered_map<uint32_t, Frame>>;

class Collect : public CaptureReader::Visitor {
  public:
    explicit Collect(Names &names) : names_(names) { names_.emplace_back(); }
    void name(uint32_t place, Frame &&frame) override { names_.back()[place] = std::move(frame); }
    Result<void> part_ends() override {
        names_.emplace_back();
        return {};
    }

  private:
    Names &names_;
};

class Deliver : public CaptureReader::Visitor {
  public:
    Deliver(CaptureReader &reader, Names &names, Namer &namer, Deliverer &deliverer)
        : reader_(reader), names_(names), namer_(namer), deliverer_(deliverer) {}
    Result<void> sample(const InternedSample &sample) override {
        give_names(sample.kernel);
        give_names(sample.user);
        deliverer_.add(sample);
        return deliverer_.pending() >= kBatch ? deliverer_.flush(0) : Result<void>{};
    }
    Result<void> part_ends() override {
        ++part_;
        return deliverer_.finish();
    }

  private:
    static constexpr size_t kBatch = 256;
    void give_names(uint32_t stack) {
        auto &names = names_[part_];
        reader_.tree().walk(stack, [&](uint32_t place) {
            if (namer_.named(place)) return;
            if (auto found = names.find(place); found != names.end()) namer_.give(place, std::move(found->second));
        });
    }
    CaptureReader &reader_;
    Names &names_;
    Namer &namer_;
    Deliverer &deliverer_;
    size_t part_ = 0;
};

} // namespace
} // namespace profile

Result<Outcome> report_capture(Bytes capture, const std::string &name, const ReportOptions &options, Sink &sink) {
    using namespace profile;
    Names names;
    CaptureReader reader(capture, name);
    Collect collect(names);
    TRY(reader.read(collect));

    FileSymbols files(options.symfs);
    Namer namer(reader.tree(), reader.modules(), files);
    Deliverer deliverer(reader.tree(), namer, options.delivery, options.names, sink);
    deliverer.set_clock({reader.header().start_ns, reader.header().run.start_wall_ns});
    TRY(sink.start(reader.header().run));
    Deliver deliver(reader, names, namer, deliverer);
    TRY(reader.read(deliver));

    Outcome outcome = reader.outcome();
    outcome.run = reader.header().run;
    outcome.ledger.degraded = deliverer.degraded();
    outcome.ended_early = deliverer.ended_early();
    for (const std::string &warning : files.warnings()) outcome.warnings.push_back(warning);
    return outcome;
}

} // namespace rawbpf::inline v0
