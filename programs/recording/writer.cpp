#include "programs/recording/recording.h"

#include <cstring>

#include "runtime/base/fail.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::recording {
namespace {

constexpr size_t kWriteAt = 64 << 10; // bytes that wait
constexpr uint64_t kWriteEachNs = 1'000'000'000;

} // namespace

void Writer::chunk(uint8_t type, std::string_view payload) {
    out_.push_back(static_cast<char>(type));
    put(out_, payload);
}

void Writer::begin(const Header &header) {
    out_.append(kMagic);
    std::string p;
    const RunInfo &run = header.run;
    put(p, std::string_view(run.version));
    put(p, std::string_view(run.kernel));
    put(p, std::string_view(run.arch));
    put(p, uint64_t{run.cpus});
    put(p, run.start_wall_ns);
    put(p, header.start_ns);
    put(p, static_cast<uint64_t>(run.frequency * 1000 + 0.5));
    put(p, uint64_t{run.command.size()});
    for (const std::string &word : run.command) put(p, std::string_view(word));
    put(p, std::string_view(run.event));
    put(p, run.period);
    put(p, uint64_t{static_cast<uint8_t>(header.tool)});
    chunk(kHeader, p);
    last_ns_ = written_ns_ = header.start_ns;
}

uint32_t Writer::module(uint32_t id, const processes::ModuleTable &modules) {
    if (id == processes::kNone) return processes::kNone;
    if (module_ids_.size() <= id) module_ids_.resize(id + 1, processes::kNone);
    if (module_ids_[id] == processes::kNone) {
        const processes::Module &module = modules[id];
        std::string p;
        put(p, uint64_t{static_cast<uint8_t>(module.kind)});
        put(p, module.device);
        put(p, module.inode);
        put(p, std::string_view(module.path));
        put(p, std::string_view(module.build_id));
        chunk(kModule, p);
        module_ids_[id] = modules_written_++;
    }
    return module_ids_[id];
}

void Writer::grow(const processes::StackTree &tree, const processes::ModuleTable &modules) {
    for (; places_ < tree.places().size(); ++places_) {
        const processes::FrameLocation &place = tree.places()[places_];
        const uint32_t in_file = module(place.module, modules);
        std::string p;
        put(p, uint64_t{(place.kernel ? kIsKernel : 0u) | (place.caller ? kIsCaller : 0u)});
        put_reference(p, in_file);
        put(p, place.file_offset);
        put(p, place.address);
        put(p, uint64_t{place.pid});
        chunk(kPlace, p);
    }
    for (; nodes_ < tree.nodes().size(); ++nodes_) {
        const processes::StackTree::Node &node = tree.nodes()[nodes_];
        std::string p;
        put_reference(p, node.caller);
        put(p, uint64_t{node.place});
        chunk(kNode, p);
    }
}

uint32_t Writer::comm(const char (&comm)[16]) {
    const auto [at, added] = comms_.emplace(std::string(comm, strnlen(comm, sizeof comm)), static_cast<uint32_t>(comms_.size()));
    if (added) chunk(kComm, at->first);
    return at->second;
}

void Writer::put_time(std::string &payload, uint64_t t_ns) {
    put_signed(payload, static_cast<int64_t>(t_ns - last_ns_));
    last_ns_ = t_ns;
}

void Writer::name(uint32_t place, const Frame &frame) {
    if (place >= places_) return;
    std::string p;
    put(p, uint64_t{place});
    put(p, std::string_view(frame.symbol));
    put(p, frame.symbol_offset);
    put(p, std::string_view(frame.module));
    if (!frame.file.empty() || frame.inlined) {
        put(p, std::string_view(frame.file));
        put(p, uint64_t{frame.line});
    }
    if (frame.inlined) put(p, uint64_t{frame.inlined});
    chunk(kName, p);
}

void Writer::labels(uint32_t number, const processes::LabelSets &sets) {
    if (number == labels_) return;
    labels_ = number;
    if (label_ids_.size() <= number) label_ids_.resize(size_t{number} + 1);
    uint32_t &id = label_ids_[number];
    std::string p;
    if (number != processes::LabelSets::kEmpty && id == 0) {
        put(p, uint64_t{sets[number]->size()});
        for (const auto &[key, value] : *sets[number]) {
            put(p, std::string_view(key));
            put(p, std::string_view(value));
        }
        chunk(kLabels, p);
        p.clear();
        id = ++labels_written_;
    }
    put(p, uint64_t{id});
    chunk(kLabelled, p);
}

void Writer::reset() {
    chunk(kReset, {});
    places_ = nodes_ = 0;
    labels_ = processes::LabelSets::kEmpty;
    label_ids_.clear();
    labels_written_ = 0;
}

void Writer::end(const End &end) {
    std::string p;
    const Ledger &ledger = end.ledger;
    for (uint64_t value : {ledger.fired, ledger.shown, ledger.filtered, ledger.sampled_out}) put(p, value);
    put_counts(p, ledger.lost);
    put_counts(p, ledger.degraded);
    for (uint64_t value :
         {end.bpf_runs, end.bpf_ns, end.cpu_ns, end.rss_anon_bytes, end.ring_bytes, end.armed_ns, end.elapsed_ns})
        put(p, value);
    put(p, uint64_t{end.warnings.size()});
    for (const std::string &warning : end.warnings) put(p, std::string_view(warning));
    chunk(kEnd, p);
}

Result<void> Writer::flush() {
    if (fd_ < 0 || out_.empty()) return {};
    TRY_IN(sys::write_all(fd_, out_.data(), out_.size()), "writing the recording");
    out_.clear();
    return {};
}

Result<void> Writer::flush_when_due(uint64_t now_ns) {
    if (out_.size() < kWriteAt && now_ns < written_ns_ + kWriteEachNs) return {};
    written_ns_ = now_ns;
    return flush();
}

} // namespace rawbpf::inline v0::recording
