// A report reads its capture twice. The first pass checks every byte and collects the names that the file brings along, which
// stand behind the samples they belong to; the second hands the samples over. So a damaged file is refused before a line is
// printed, and the memory needed doesn't depend on the number of samples.
//
// A file is taken for a module's only when its build-id is the one that was captured: symbols of another build would give wrong
// names, which is worse than none. Where the captured file had no build-id, its path must do, and a warning says so.
#include "programs/profile/report.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>

#include "programs/profile/capture.h"
#include "programs/profile/deliver.h"
#include "programs/xz.h"
#include "runtime/base/fail.h"
#include "runtime/symbols/name_strings.h"
#include "runtime/sys/file.h"
#include "runtime/sys/unread.h"

namespace rawbpf::inline v0 {

namespace profile {

FileSymbols::Table FileSymbols::find(const processes::Module &module) {
    if (module.kind != processes::ModuleKind::file) return {};
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
    std::optional<Error> hidden; // what is here, and can't be looked into
    const auto failed = [&hidden](Error &&error) {
        if (error.kind == Errc::not_found || error.os == ENOTDIR) return;
        if (!hidden || (sys::is_unread(error) && !sys::is_unread(*hidden))) hidden = std::move(error);
    };
    for (const Candidate &candidate : candidates) {
        auto id = symbols::read_build_id(candidate.path, candidate.root);
        if (!id) {
            failed(std::move(id).error());
            continue;
        }
        if (*id != module.build_id) {
            other = candidate.root + candidate.path;
            continue;
        }
        auto file = sys::open_under(candidate.root, candidate.path, O_RDONLY | O_NONBLOCK);
        if (!file) {
            failed(std::move(file).error());
            continue;
        }
        auto table = symbols::ElfSymbols::load(std::move(*file), candidate.path, candidate.root, unpack_xz, debug_info_);
        if (!table) {
            failed(std::move(table).error());
            continue;
        }
        if (id->empty())
            warnings_.push_back(format("{} has no build-id; named from {}{}, which may be another version", module.path,
                                       candidate.root, candidate.path));
        return {std::move(*table), candidate.path, candidate.root, false, nullptr, false};
    }
    if (hidden) {
        warnings_.push_back(format("{}: its functions have no names: {}", module.path, hidden->message()));
        unread_ = unread_ || sys::is_unread(*hidden);
    } else if (!other.empty())
        warnings_.push_back(
            format("{} has another build-id than the {} that was captured: not named from it", other, module.path));
    else
        warnings_.push_back(format("{} {}: its functions have no names", module.path,
                                   module.path.starts_with("/memfd:")
                                       ? "was a file in memory, and the capture ends before the names that it would bring along"
                                       : "isn't here"));
    return {};
}

FileSymbols::Table &FileSymbols::table(uint32_t module_id, const processes::Module &module) {
    auto at = tables_.find(module_id);
    if (at == tables_.end()) at = tables_.emplace(module_id, find(module)).first;
    return at->second;
}

std::optional<symbols::Name> FileSymbols::in_module(uint32_t module_id, const processes::Module &module, uint64_t file_offset) {
    Table &its = table(module_id, module);
    std::optional<symbols::Name> name = its.symbols ? its.symbols->find(file_offset) : std::nullopt;
    if (const std::optional<Error> failed = symbols::read_failure(); failed && !its.told) {
        warnings_.push_back(format("{}: some of its functions have no names: {}", module.path, failed->message()));
        its.told = unread_ = true;
    }
    return name;
}

std::optional<uint64_t> FileSymbols::begin_of(uint32_t module_id, const processes::Module &module, uint64_t file_offset) {
    const Table &its = table(module_id, module);
    return its.symbols ? its.symbols->begin_of(file_offset) : std::nullopt;
}

void FileSymbols::open_lines(Table &table, const processes::Module &module) {
    table.lines_sought = true;
    auto file = sys::open_under(table.root, table.path, O_RDONLY | O_NONBLOCK);
    auto lines = file ? debug_info_->open(std::move(*file), table.path, table.root) : Unexpected(std::move(file).error());
    if (lines)
        table.lines = std::move(*lines);
    else {
        warnings_.push_back(format("no lines for {}: {}", module.path, lines.error().message()));
        unread_ = unread_ || sys::is_unread(lines.error());
    }
}

std::vector<processes::SourceFrame> FileSymbols::in_source(uint32_t module_id, const processes::Module &module,
                                                           uint64_t file_offset) {
    Table &its = table(module_id, module);
    const std::optional<uint64_t> address = its.symbols ? its.symbols->address_of(file_offset) : std::nullopt;
    if (!debug_info_ || !address) return {};
    if (!its.lines_sought) open_lines(its, module);
    return its.lines ? its.lines->find(*address) : std::vector<processes::SourceFrame>();
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
    Deliver(CaptureReader &reader, Names &names, processes::Namer &namer, Deliverer &deliverer)
        : reader_(reader), names_(names), namer_(namer), deliverer_(deliverer) {}
    Result<void> sample(const processes::InternedSample &sample) override {
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
    processes::Namer &namer_;
    Deliverer &deliverer_;
    size_t part_ = 0;
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
    Names names;
    CaptureReader reader(capture, name);
    Collect collect(names);
    TRY(reader.read(collect));

    FileSymbols files(options.symfs, options.debug_info);
    processes::Namer namer(reader.tree(), reader.modules(), files, {options.lines, options.inlined});
    Deliverer deliverer(reader.tree(), namer, options.delivery, options.names, sink);
    if (options.per_thread) deliverer.keep_threads_apart();
    deliverer.set_clock({reader.header().start_ns, reader.header().run.start_wall_ns});
    TRY(sink.start(reader.header().run));
    Deliver deliver(reader, names, namer, deliverer);
    TRY(reader.read(deliver));

    Outcome outcome = reader.outcome();
    outcome.run = reader.header().run;
    if (!reader.cut().empty()) outcome.warnings.push_back(reader.cut());
    outcome.ledger.degraded = deliverer.degraded();
    outcome.ledger.stack_ends = deliverer.stack_ends();
    outcome.ended_early = deliverer.early_ends().list();
    for (const std::string &warning : files.warnings()) outcome.warnings.push_back(warning);
    outcome.unread = files.unread() || !reader.cut().empty();
    outcome.advice = deliverer.early_ends().advice(reader.modules(), processes::remedy_of(UnwindBy::fp));
    if (options.debug_info)
        for (std::string &warning : options.debug_info->warnings()) outcome.warnings.push_back(std::move(warning));
    return outcome;
}

} // namespace rawbpf::inline v0
