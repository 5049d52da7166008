// The capture file's bytes:
//
//      "RAWBPFC\1"  then records:  type u8 | length | payload
//
//      1 header   versions, command line, clocks            once, first
//      2 module   kind, device, inode, path, build-id       numbered in the order they come
//      3 place    flags, module, file offset, address, pid  the same, from zero again after a reset
//      4 node     caller, place                             the same
//      5 comm     a thread name                             the same, never reset
//      6 sample   time since the last, pid, tid, cpu, sizes, nodes, comm, why the user stack ended (if that is known)
//      7 name     place, symbol, offset, module             for places that only the capturing machine can name
//      8 reset    the tree starts anew (keeps the memory of both sides bounded in long captures)
//      9 end      ledger, cost, warnings                    once, last: a file without it was cut
//     10 weight   what each sample from here on stands for  only where it isn't one, as before
//
// Numbers are LEB128 (seven bits a byte, low ones first), signed ones zigzag; references to "none" are 0 and all others one
// higher; strings have their length in front. A sample whose stacks were seen before takes about 15 bytes.
//
// The reader trusts nothing: numbers must refer to what came before, so a stack can't run in a circle; stacks deeper than any
// kernel gives are refused, so that a small file can't cost unbounded time; what a length promises must be there.
#include "programs/profile/capture.h"

#include <algorithm>
#include <cstring>

#include "programs/profile/cpu_budget.h"
#include "runtime/base/fail.h"
#include "runtime/symbols/long_names.h"
#include "runtime/sys/file.h"
#include "runtime/unwind/layout.h"

namespace rawbpf::inline v0::profile {

namespace {

constexpr std::string_view kMagic{"RAWBPFC\1", 8};
constexpr uint16_t kDeepest =
    1024; // frames; kernel.perf_event_max_stack is 127 unless raised, and records hold no more than that

enum Type : uint8_t { kHeader = 1, kModule, kPlace, kNode, kComm, kSample, kName, kReset, kEnd, kWeight };
constexpr uint64_t kIsKernel = 1, kIsCaller = 2; // flags of a place

void put(std::string &out, uint64_t value) {
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
    out.push_back(static_cast<char>(value));
}
void put_signed(std::string &out, int64_t value) {
    put(out, static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}
void put(std::string &out, std::string_view text) {
    put(out, uint64_t{text.size()});
    out.append(text);
}
void put_reference(std::string &out, uint32_t id) { put(out, id == processes::kNone ? 0 : uint64_t{id} + 1); }
void put_counts(std::string &out, const std::vector<std::pair<std::string, uint64_t>> &counts) {
    put(out, uint64_t{counts.size()});
    for (const auto &[name, count] : counts) {
        put(out, std::string_view(name));
        put(out, count);
    }
}

} // namespace

void CaptureWriter::record(uint8_t type, const std::string &payload) {
    out_.push_back(static_cast<char>(type));
    put(out_, std::string_view(payload));
}

void CaptureWriter::begin(const CaptureHeader &header) {
    out_.append(kMagic);
    std::string p;
    put(p, std::string_view(header.run.version));
    put(p, std::string_view(header.run.kernel));
    put(p, std::string_view(header.run.arch));
    put(p, uint64_t{header.run.cpus});
    put(p, header.run.start_wall_ns);
    put(p, header.start_ns);
    put(p, static_cast<uint64_t>(header.run.frequency * 1000));
    put(p, uint64_t{header.run.command.size()});
    for (const std::string &word : header.run.command) put(p, std::string_view(word));
    put(p, std::string_view(header.run.event));
    put(p, header.run.period);
    record(kHeader, p);
    last_ns_ = header.start_ns;
}

uint32_t CaptureWriter::module(uint32_t id, const processes::ModuleTable &modules) {
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
        record(kModule, p);
        module_ids_[id] = modules_written_++;
    }
    return module_ids_[id];
}

void CaptureWriter::sample(const processes::InternedSample &sample, const processes::StackTree &tree,
                           const processes::ModuleTable &modules) {
    for (; places_ < tree.places().size(); ++places_) {
        const processes::FrameLocation &place = tree.places()[places_];
        const uint32_t in_file = module(place.module, modules);
        std::string p;
        put(p, (place.kernel ? kIsKernel : 0) | (place.caller ? kIsCaller : 0));
        put_reference(p, in_file);
        put(p, place.file_offset);
        put(p, place.address);
        put(p, uint64_t{place.pid});
        record(kPlace, p);
    }
    for (; nodes_ < tree.nodes().size(); ++nodes_) {
        const processes::StackTree::Node &node = tree.nodes()[nodes_];
        std::string p;
        put_reference(p, node.caller);
        put(p, uint64_t{node.place});
        record(kNode, p);
    }
    const std::string comm(sample.comm, strnlen(sample.comm, sizeof sample.comm));
    const auto [at, added] = comms_.emplace(comm, static_cast<uint32_t>(comms_.size()));
    if (added) record(kComm, comm);
    std::string p;
    if (sample.weight != weight_) {
        weight_ = sample.weight;
        put(p, weight_);
        record(kWeight, p);
        p.clear();
    }
    put_signed(p, static_cast<int64_t>(sample.t_ns - last_ns_));
    last_ns_ = sample.t_ns;
    put(p, uint64_t{sample.pid});
    put(p, uint64_t{sample.tid});
    put(p, uint64_t{sample.cpu});
    put_signed(p, sample.kernel_bytes);
    put_signed(p, sample.user_bytes);
    put_reference(p, sample.kernel);
    put_reference(p, sample.user);
    put(p, uint64_t{sample.kernel_thread});
    put(p, uint64_t{at->second});
    if (sample.ending != processes::kNoEnding) put(p, uint64_t{sample.ending});
    record(kSample, p);
}

void CaptureWriter::name(uint32_t place, const Frame &frame) {
    if (place >= places_) return; // of a sample that was never written
    std::string p;
    put(p, uint64_t{place});
    put(p, std::string_view(frame.symbol));
    put(p, frame.symbol_offset);
    put(p, std::string_view(frame.module));
    record(kName, p);
}

void CaptureWriter::reset() {
    record(kReset, {});
    places_ = nodes_ = 0;
}

void CaptureWriter::end(const Outcome &outcome) {
    std::string p;
    const Ledger &ledger = outcome.ledger;
    for (uint64_t value : {ledger.fired, ledger.shown, ledger.filtered, ledger.sampled_out}) put(p, value);
    put_counts(p, ledger.lost);
    put_counts(p, ledger.degraded);
    const Cost &cost = outcome.cost;
    for (uint64_t value :
         {cost.bpf_runs, cost.bpf_ns, cost.cpu_ns, cost.rss_anon_bytes, cost.ring_bytes, cost.armed_ns, outcome.elapsed_ns})
        put(p, value);
    put(p, uint64_t{outcome.warnings.size()});
    for (const std::string &warning : outcome.warnings) put(p, std::string_view(warning));
    record(kEnd, p);
}

Result<void> CaptureWriter::flush() {
    if (fd_ < 0 || out_.empty()) return {};
    TRY_IN(sys::write_all(fd_, out_.data(), out_.size()), "writing the capture");
    out_.clear();
    return {};
}

/// A ByteReader that knows this file's numbers and strings.
struct CaptureReader::Cursor {
    ByteReader in;

    Result<uint64_t> number() {
        uint64_t value = 0;
        const size_t at = in.offset();
        for (int shift = 0; shift < 64; shift += 7) {
            const uint8_t byte = TRY(in.read<uint8_t>());
            if (shift == 63 && byte > 1) break;
            value |= uint64_t{byte & 0x7fu} << shift;
            if (byte < 0x80) return value;
        }
        return Unexpected(in.error_at(at, "a number of more than 64 bits"));
    }
    Result<uint32_t> number_32() {
        const size_t at = in.offset();
        const uint64_t value = TRY(number());
        if (value > UINT32_MAX) return Unexpected(in.error_at(at, format("{} is more than 32 bits", value)));
        return static_cast<uint32_t>(value);
    }
    Result<int64_t> signed_number() {
        const uint64_t value = TRY(number());
        return static_cast<int64_t>(value >> 1 ^ (0 - (value & 1)));
    }
    Result<int32_t> stack_bytes() {
        const size_t at = in.offset();
        const int64_t value = TRY(signed_number());
        if (value < -4095 || value > int64_t{kDeepest} * 8)
            return Unexpected(in.error_at(at, format("a stack of {} bytes", value)));
        return static_cast<int32_t>(value);
    }
    Result<std::string> text() {
        const uint64_t size = TRY(number());
        const Bytes bytes = TRY(in.take(size));
        // Written again wherever it is shown, so a small file must not hold what makes gigabytes of output.
        return symbols::within_bound({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
    }
    /// A number below `count`.
    Result<uint32_t> id(size_t count, std::string_view what) {
        const size_t at = in.offset();
        const uint64_t value = TRY(number());
        if (value >= count) return Unexpected(in.error_at(at, format("{} {} of {}", what, value, count)));
        return static_cast<uint32_t>(value);
    }
    Result<uint32_t> reference(size_t count, std::string_view what) {
        const uint32_t value = TRY(id(count + 1, what));
        return value == 0 ? processes::kNone : value - 1;
    }
    Result<std::vector<std::pair<std::string, uint64_t>>> counts() {
        std::vector<std::pair<std::string, uint64_t>> out;
        const uint64_t size = TRY(number());
        for (uint64_t i = 0; i < size; ++i) { // each takes two bytes at least, so this ends with the record
            std::string name = TRY(text());
            out.emplace_back(std::move(name), TRY(number()));
        }
        return out;
    }
};

Result<void> CaptureReader::read_header(Cursor &in) {
    RunInfo &run = header_.run;
    run.version = TRY(in.text());
    run.kernel = TRY(in.text());
    run.arch = TRY(in.text());
    run.cpus = TRY(in.number_32());
    run.start_wall_ns = TRY(in.number());
    header_.start_ns = TRY(in.number());
    run.frequency = static_cast<double>(TRY(in.number())) / 1000;
    run.command.clear();
    const uint64_t words = TRY(in.number());
    for (uint64_t i = 0; i < words; ++i) run.command.push_back(TRY(in.text()));
    if (!in.in.done()) { // older captures end here: they are of cpu-clock or cycles
        run.event = TRY(in.text());
        run.period = TRY(in.number_32());
    }
    last_ns_ = header_.start_ns;
    return {};
}

Result<void> CaptureReader::read_place(Cursor &in) {
    processes::FrameLocation place;
    const uint32_t flags = TRY(in.number_32());
    place.kernel = flags & kIsKernel;
    place.caller = flags & kIsCaller;
    const uint32_t module = TRY(in.reference(module_ids_.size(), "module"));
    place.module = module == processes::kNone ? processes::kNone : module_ids_[module];
    place.file_offset = TRY(in.number());
    place.address = TRY(in.number());
    place.pid = TRY(in.number_32());
    tree_.append_place(place);
    return {};
}

Result<void> CaptureReader::read_node(Cursor &in) {
    processes::StackTree::Node node;
    const size_t at = in.in.offset();
    node.caller = TRY(in.reference(tree_.nodes().size(), "caller"));
    node.place = TRY(in.id(tree_.places().size(), "place"));
    const uint16_t depth = static_cast<uint16_t>(node.caller == processes::kNone ? 1 : depths_[node.caller] + 1);
    if (depth > kDeepest) return Unexpected(in.in.error_at(at, format("a stack of more than {} frames", kDeepest)));
    tree_.append_node(node);
    depths_.push_back(depth);
    return {};
}

Result<processes::InternedSample> CaptureReader::read_sample(Cursor &in) {
    processes::InternedSample sample;
    last_ns_ += static_cast<uint64_t>(TRY(in.signed_number()));
    sample.t_ns = last_ns_;
    sample.pid = TRY(in.number_32());
    sample.tid = TRY(in.number_32());
    sample.cpu = TRY(in.number_32());
    sample.kernel_bytes = TRY(in.stack_bytes());
    sample.user_bytes = TRY(in.stack_bytes());
    sample.kernel = TRY(in.reference(tree_.nodes().size(), "kernel stack"));
    sample.user = TRY(in.reference(tree_.nodes().size(), "user stack"));
    sample.kernel_thread = TRY(in.number()) != 0;
    const std::string &comm = comms_[TRY(in.id(comms_.size(), "comm"))];
    std::memcpy(sample.comm, comm.data(), std::min(comm.size(), sizeof sample.comm - 1));
    sample.weight = weight_;
    if (!in.in.done()) sample.ending = static_cast<uint8_t>(TRY(in.id(UNWIND_ENDINGS, "ending")));
    return sample;
}

Result<void> CaptureReader::read_end(Cursor &in) {
    Ledger &ledger = outcome_.ledger;
    for (uint64_t *value : {&ledger.fired, &ledger.shown, &ledger.filtered, &ledger.sampled_out}) *value = TRY(in.number());
    ledger.lost = TRY(in.counts());
    ledger.degraded = TRY(in.counts());
    Cost &cost = outcome_.cost;
    for (uint64_t *value : {&cost.bpf_runs, &cost.bpf_ns, &cost.cpu_ns, &cost.rss_anon_bytes, &cost.ring_bytes, &cost.armed_ns,
                            &outcome_.elapsed_ns})
        *value = TRY(in.number());
    const uint64_t warnings = TRY(in.number());
    outcome_.warnings.clear();
    for (uint64_t i = 0; i < warnings; ++i) outcome_.warnings.push_back(TRY(in.text()));
    return {};
}

// `record_bytes`: of the record that isn't whole, with its head; 0: as far as can be told it has none.
void CaptureReader::end_early(size_t record_at, uint64_t record_bytes) {
    cut_ = format("{}: the capture ends early, at byte {}", name_, bytes_.size());
    if (const uint64_t here = bytes_.size() - record_at; record_bytes != 0)
        append(cut_, ": of its last record, which begins at byte {}, {} of {} bytes are missing", record_at, record_bytes - here,
               record_bytes);
    else if (here != 0)
        append(cut_, ": of its last record, which begins at byte {}, only the beginning is there", record_at);
    cut_ += ". Also missing is what came behind it: samples, if there were more, the kernel's names, the ledger";
    outcome_ = {};
    outcome_.ledger.fired = outcome_.ledger.shown = samples_;
    outcome_.elapsed_ns = std::max(last_ns_, header_.start_ns) - header_.start_ns;
}

Result<void> CaptureReader::read(Visitor &visitor) {
    cut_.clear();
    tree_.clear();
    modules_ = {};
    module_ids_.clear();
    depths_.clear();
    comms_.clear();
    samples_ = 0;
    weight_ = 1;
    Cursor file{ByteReader(bytes_, name_)};
    if (bytes_.size() < kMagic.size() || std::memcmp(bytes_.data(), kMagic.data(), kMagic.size()) != 0)
        return fail(Errc::bad_input, "{}: not a capture of rawbpf (or of a later version)", name_);
    TRY(file.in.skip(kMagic.size()));
    bool first = true, ended = false;
    while (!file.in.done()) {
        const size_t at = file.in.offset();
        const uint8_t type = TRY(file.in.read<uint8_t>());
        auto size = file.number();
        const size_t payload_at = file.in.offset();
        if (!size && !file.in.done()) return Unexpected(std::move(size).error());
        const auto payload = size ? file.in.take(*size) : Unexpected(size.error());
        if (!payload) {
            if (first || ended) return Unexpected(file.in.error_at(at, "the capture was cut: its last record isn't whole"));
            end_early(at, size ? payload_at - at + *size : 0);
            return visitor.part_ends();
        }
        Cursor in{ByteReader(*payload, name_, payload_at)};
        if (ended) return Unexpected(file.in.error_at(at, "a record after the end"));
        if (first != (type == kHeader)) return Unexpected(file.in.error_at(at, first ? "no header" : "a second header"));
        first = false;
        switch (type) {
        case kHeader: TRY(read_header(in)); break;
        case kModule: {
            processes::Module module;
            const uint32_t kind = TRY(in.id(3, "module kind"));
            module.kind = static_cast<processes::ModuleKind>(kind);
            module.device = TRY(in.number());
            module.inode = TRY(in.number());
            module.path = TRY(in.text());
            module.build_id = TRY(in.text());
            module_ids_.push_back(modules_.intern(std::move(module)));
            break;
        }
        case kPlace: TRY(read_place(in)); break;
        case kNode: TRY(read_node(in)); break;
        case kComm: comms_.emplace_back(reinterpret_cast<const char *>(in.in.all().data()), in.in.all().size()); break;
        case kSample: {
            const processes::InternedSample sample = TRY(read_sample(in));
            ++samples_;
            TRY(visitor.sample(sample));
            break;
        }
        case kName: {
            Frame frame;
            const uint32_t place = TRY(in.id(tree_.places().size(), "place"));
            frame.symbol = TRY(in.text());
            frame.symbol_offset = TRY(in.number());
            frame.module = TRY(in.text());
            visitor.name(place, std::move(frame));
            break;
        }
        case kWeight: {
            const uint64_t weight = TRY(in.number()), period = header_.run.period;
            // Of events the period; of a clock how much slower than asked for it ticked. Some format writes each of them out.
            if (weight == 0 || (period ? weight != period : weight > kMostWeight))
                return Unexpected(file.in.error_at(at, format("samples that stand for {}", weight)));
            weight_ = static_cast<uint32_t>(weight);
            break;
        }
        case kReset:
            TRY(visitor.part_ends());
            tree_.clear();
            depths_.clear();
            break;
        case kEnd:
            TRY(read_end(in));
            TRY(visitor.part_ends());
            ended = true;
            break;
        default: return Unexpected(file.in.error_at(at, format("a record of the unknown type {}", type)));
        }
    }
    if (first) return Unexpected(file.in.error_at(file.in.offset(), "the capture was cut: its header is missing"));
    if (!ended) {
        end_early(file.in.offset(), 0);
        return visitor.part_ends();
    }
    if (samples_ != outcome_.ledger.shown)
        return fail(Errc::bad_input, "{}: its ledger says {} samples, it holds {}", name_, outcome_.ledger.shown, samples_);
    return {};
}

} // namespace rawbpf::inline v0::profile
