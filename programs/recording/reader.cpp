#include "programs/recording/recording.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::recording {
namespace {

struct ToolRow {
    std::string_view name, shown; // what its recordings hold
};
constexpr ToolRow kTools[] = {{"profile", "samples"}, {"trace", "events"}, {"custom", "traces"}};
const ToolRow &row_of(Tool tool) { return kTools[static_cast<size_t>(tool)]; }

Result<Header> read_header(Cursor &in) {
    Header header;
    RunInfo &run = header.run;
    run.version = TRY(in.text());
    run.kernel = TRY(in.text());
    run.arch = TRY(in.text());
    run.cpus = TRY(in.number_32());
    run.start_wall_ns = TRY(in.number());
    header.start_ns = TRY(in.number());
    run.frequency = static_cast<double>(TRY(in.number())) / 1000;
    const uint64_t words = TRY(in.number());
    for (uint64_t i = 0; i < words; ++i) run.command.push_back(TRY(in.text()));
    if (!in.done()) { // older files end here: they are of cpu-clock or cycles
        run.event = TRY(in.text());
        run.period = TRY(in.number_32());
    }
    if (!in.done()) header.tool = static_cast<Tool>(TRY(in.id(std::size(kTools), "tool")));
    return header;
}

constexpr uint64_t kMostLabels = 1024; // of a sample, an event, a trace

bool is_recording(Bytes bytes) {
    return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

} // namespace

std::string_view tool_name(Tool tool) { return row_of(tool).name; }

Result<Header> Reader::header_of(Bytes bytes, const std::string &name) {
    if (!is_recording(bytes)) return fail(Errc::bad_input, "{}: not a capture of rawbpf (or of a later version)", name);
    Cursor file{ByteReader(bytes, name)};
    TRY(file.in.skip(kMagic.size()));
    if (file.done()) return Unexpected(file.in.error_at(file.in.offset(), "the capture was cut: its header is missing"));
    const size_t at = file.in.offset();
    if (TRY(file.in.read<uint8_t>()) != kHeader) return Unexpected(file.in.error_at(at, "no header"));
    auto size = file.number();
    const size_t payload_at = file.in.offset();
    if (!size && !file.done()) return Unexpected(std::move(size).error());
    const auto payload = size ? file.in.take(*size) : Unexpected(size.error());
    if (!payload) return Unexpected(file.in.error_at(at, "the capture was cut: its last record isn't whole"));
    Cursor in{ByteReader(*payload, name, payload_at)};
    return read_header(in);
}

Result<void> Reader::read_module(Cursor &in) {
    processes::Module module;
    module.kind = static_cast<processes::ModuleKind>(TRY(in.id(4, "module kind")));
    module.device = TRY(in.number());
    module.inode = TRY(in.number());
    module.path = TRY(in.text());
    module.build_id = TRY(in.text());
    module_ids_.push_back(modules_.intern(std::move(module)));
    return {};
}

Result<void> Reader::read_place(Cursor &in) {
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

Result<void> Reader::read_node(Cursor &in) {
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

Result<void> Reader::read_name(Cursor &in, Visitor &visitor) {
    Frame frame;
    const uint32_t place = TRY(in.id(tree_.places().size(), "place"));
    frame.symbol = TRY(in.text());
    frame.symbol_offset = TRY(in.number());
    frame.module = TRY(in.text());
    if (!in.done()) {
        frame.file = TRY(in.text());
        frame.line = TRY(in.number_32());
    }
    if (!in.done()) frame.inlined = TRY(in.truth());
    visitor.name(place, std::move(frame));
    return {};
}

Result<void> Reader::read_labels(Cursor &in) {
    const size_t at = in.in.offset();
    const uint64_t count = TRY(in.number());
    if (count == 0 || count > kMostLabels) return Unexpected(in.in.error_at(at, format("a set of {} labels", count)));
    Labels set;
    for (uint64_t i = 0; i < count; ++i) {
        std::string key = TRY(in.text());
        set.emplace_back(std::move(key), TRY(in.text()));
    }
    label_numbers_.push_back(label_sets_.intern(std::move(set)));
    return {};
}

void Reader::forget_labels() {
    label_sets_.clear();
    label_numbers_.assign(1, processes::LabelSets::kEmpty);
    labels_ = processes::LabelSets::kEmpty;
}

Result<void> Reader::read_end(Cursor &in) {
    Ledger &ledger = end_.ledger;
    for (uint64_t *value : {&ledger.fired, &ledger.shown, &ledger.filtered, &ledger.sampled_out}) *value = TRY(in.number());
    ledger.lost = TRY(in.counts());
    ledger.degraded = TRY(in.counts());
    for (uint64_t *value :
         {&end_.bpf_runs, &end_.bpf_ns, &end_.cpu_ns, &end_.rss_anon_bytes, &end_.ring_bytes, &end_.armed_ns, &end_.elapsed_ns})
        *value = TRY(in.number());
    const uint64_t warnings = TRY(in.number());
    for (uint64_t i = 0; i < warnings; ++i) end_.warnings.push_back(TRY(in.text()));
    return {};
}

Result<uint64_t> Reader::time(Cursor &in) { return last_ns_ += static_cast<uint64_t>(TRY(in.signed_number())); }
Result<std::string_view> Reader::comm(Cursor &in) { return std::string_view(comms_[TRY(in.id(comms_.size(), "comm"))]); }
Result<uint32_t> Reader::node(Cursor &in, std::string_view what) const { return in.reference(tree_.nodes().size(), what); }

// `chunk_bytes`: of the chunk that isn't whole, with its head; 0: as far as can be told it has none.
void Reader::end_early(size_t chunk_at, uint64_t chunk_bytes) {
    cut_ = format("{}: the capture ends early, at byte {}", name_, bytes_.size());
    if (const uint64_t here = bytes_.size() - chunk_at; chunk_bytes != 0)
        append(cut_, ": of its last record, which begins at byte {}, {} of {} bytes are missing", chunk_at, chunk_bytes - here,
               chunk_bytes);
    else if (here != 0)
        append(cut_, ": of its last record, which begins at byte {}, only the beginning is there", chunk_at);
    append(cut_, ". Also missing is what came behind it: {}, if there were more, the kernel's names, the ledger",
           row_of(header_.tool).shown);
    end_ = {};
    end_.ledger.fired = end_.ledger.shown = shown_;
    end_.elapsed_ns = std::max(last_ns_, header_.start_ns) - header_.start_ns;
}

Result<void> Reader::read_chunk(uint8_t type, Cursor &in, Visitor &visitor) {
    switch (type) {
    case kModule: return read_module(in);
    case kPlace: return read_place(in);
    case kNode: return read_node(in);
    case kComm: comms_.emplace_back(reinterpret_cast<const char *>(in.in.all().data()), in.in.all().size()); return {};
    case kName: return read_name(in, visitor);
    case kReset:
        TRY(visitor.part_ends());
        tree_.clear();
        depths_.clear();
        forget_labels();
        return {};
    case kEnd: TRY(read_end(in)); return visitor.part_ends();
    case kLabels: return read_labels(in);
    case kLabelled: labels_ = label_numbers_[TRY(in.id(label_numbers_.size(), "labels"))]; return {};
    default: break;
    }
    return fail(Errc::internal, "no such chunk");
}

Result<void> Reader::read(Tool tool, Visitor &visitor) {
    cut_.clear();
    end_ = {};
    tree_.clear();
    modules_ = {};
    module_ids_.clear();
    depths_.clear();
    comms_.clear();
    forget_labels();
    shown_ = 0;
    header_ = TRY(header_of(bytes_, name_));
    if (header_.tool != tool)
        return fail(Errc::bad_input, "{}: recorded by rawbpf {}, not by rawbpf {}", name_, tool_name(header_.tool),
                    tool_name(tool));
    last_ns_ = header_.start_ns;
    Cursor file{ByteReader(bytes_, name_)};
    TRY(file.in.skip(kMagic.size() + 1));
    TRY(file.bytes()); // the header, which is whole
    bool ended = false;
    while (!file.done()) {
        const size_t at = file.in.offset();
        const uint8_t type = TRY(file.in.read<uint8_t>());
        auto size = file.number();
        const size_t payload_at = file.in.offset();
        if (!size && !file.done()) return Unexpected(std::move(size).error());
        const auto payload = size ? file.in.take(*size) : Unexpected(size.error());
        if (!payload) {
            if (ended) return Unexpected(file.in.error_at(at, "the capture was cut: its last record isn't whole"));
            end_early(at, size ? payload_at - at + *size : 0);
            return visitor.part_ends();
        }
        Cursor in{ByteReader(*payload, name_, payload_at)};
        if (ended) return Unexpected(file.in.error_at(at, "a record after the end"));
        if (type == kHeader) return Unexpected(file.in.error_at(at, "a second header"));
        ended = type == kEnd;
        if ((type >= kModule && type <= kComm) || (type >= kName && type <= kEnd) || type == kLabels || type == kLabelled)
            TRY(read_chunk(type, in, visitor));
        else if (!TRY(visitor.chunk(type, in)))
            return Unexpected(file.in.error_at(at, format("a record of the unknown type {}", type)));
    }
    if (!ended) {
        end_early(file.in.offset(), 0);
        return visitor.part_ends();
    }
    if (shown_ != end_.ledger.shown)
        return fail(Errc::bad_input, "{}: its ledger says {} {}, it holds {}", name_, end_.ledger.shown, row_of(tool).shown,
                    shown_);
    return {};
}

} // namespace rawbpf::inline v0::recording
