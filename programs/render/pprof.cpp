// profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto), gzip'd: what pprof, Pyroscope and Parca open.
//
//      Sample   location ids, leaf first; [samples, nanoseconds], or of other events than a clock's [events], of waits [nanoseconds];
//               labels comm, pid, tid, those of the running request, of custom traces origin and context
//      Location address, mapping, and a Line with the function, where the function is known
//      Mapping  where a file is in memory: what was sampled of it, with its build-id
//      strings  everything is an index into one table, whose first entry is ""
//
// A frame without a name has an address and a mapping only: with the build-id its name can still be found, by pprof beside the
// file or by a server. A mapping says has_functions when every frame in it has its name. One file in two processes is two
// mappings, as in their address spaces: what makes a mapping is the file and the distance from file offset to address.
//
// A function inlined into another is a location of its own, with the other's address. Lines and files are there where they are
// known.
//
// What the ledger knows (lost samples, short stacks) stands in the comments, which pprof -comments shows.
#include <algorithm>
#include <charconv>
#include <map>
#include <system_error>
#include <tuple>

#include "programs/render/gzip.h"
#include "programs/render/protobuf.h"
#include "programs/render/text.h"
#include "programs/render/thread_stacks.h"
#include "programs/render/tool_formats.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::render {
namespace {

constexpr uint64_t kPage = 4096;

// Field numbers of profile.proto.
namespace profile {
enum : uint32_t {
    sample_type = 1,
    sample = 2,
    mapping = 3,
    location = 4,
    function = 5,
    string_table = 6,
    time_nanos = 9,
    duration_nanos = 10,
    period_type = 11,
    period = 12,
    comment = 13,
};
} // namespace profile

class Pprof final : public Renderer {
  public:
    Pprof(const TraceOptions &traces, Writer &out)
        : traces_(traces), stacks_({.addresses = true, .counted = true, .labels = true}), gzip_(out) {}

    void begin(const RunInfo &run) override { run_ = run; }
    void sample(const NamedSample &sample, uint64_t count) override {
        stacks_.add(sample, count, traces_.current ? *traces_.current : TraceOrigin{});
    }
    void end(const Ledger &ledger) override {
        stacks_.finish();
        period_ns_ = period_of(run_);
        (void)string("");
        const bool waits = run_.waits(), events = run_.counts_events() || waits, clock = !events && !traces_.current;
        if (!events) value_type(profile::sample_type, clock ? "samples" : "traces", "count");
        const auto what = [&](uint32_t field) {
            if (events) value_type(field, run_.event, waits ? "nanoseconds" : "count");
            if (clock) value_type(field, "cpu", "nanoseconds");
        };
        what(profile::sample_type);
        if (!traces_.weight.empty()) value_type(profile::sample_type, traces_.weight, "nanoseconds");
        for (const ThreadStacks::Thread &thread : stacks_.threads()) samples(thread);
        places();
        what(profile::period_type);
        std::string out;
        Message(out)
            .number(profile::time_nanos, run_.start_wall_ns)
            .number(profile::duration_nanos, ledger.elapsed_ns)
            .number(profile::period, events ? run_.period : period_ns_);
        comments(out, ledger);
        flush(out);
        for (const std::string *text : strings_) {
            Message(out).bytes(profile::string_table, *text);
            flush(out);
        }
        gzip_.finish();
    }

  private:
    struct Mapping {
        uint64_t start = ~uint64_t{0}, limit = 0;
        uint64_t bias = 0; ///< address - file offset
        bool has_functions = true, has_files = false, has_lines = false, has_inlined = false, kernel = false;
        uint32_t locations = 0;
        const Frame *frame = nullptr; ///< of it
    };

    // proto3 strings are UTF-8.
    uint64_t string(std::string_view text) {
        std::string clean;
        append_utf8(clean, text);
        auto [at, fresh] = string_ids_.try_emplace(std::move(clean), strings_.size());
        if (fresh) strings_.push_back(&at->first); // a node of a map stays where it is
        return at->second;
    }
    void flush(std::string &part) {
        gzip_.write(part);
        part.clear();
    }
    void value_type(uint32_t field, std::string_view type, std::string_view unit) {
        std::string out;
        Message(out).message(field, [&](Message &m) { m.number(1, string(type)).number(2, string(unit)); });
        flush(out);
    }
    void label(Message &sample, std::string_view key, std::string_view text, uint64_t number) {
        sample.message(3, [&](Message &m) {
            m.number(1, string(key));
            if (!text.empty()) m.number(2, string(text));
            if (text.empty()) m.present(3, number);
        });
    }
    // A goroutine's number is one, as in Go's own profiles of goroutines.
    void request_label(Message &sample, std::string_view key, std::string_view value) {
        uint64_t number = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        const bool is_number = key == "goroutine" && error == std::errc() && end == value.data() + value.size();
        is_number ? label(sample, key, {}, number) : label(sample, key, value, 0);
    }
    // Frames that stand for a stack that isn't there have a name and no address; location ids begin at 1.
    void samples(const ThreadStacks::Thread &thread) {
        std::string out, list;
        for (const ThreadStacks::Run &run : thread.runs) {
            Message(out).message(profile::sample, [&](Message &sample) {
                list.clear();
                Message ids(list);
                for (uint32_t at = run.node; at != ThreadStacks::kNone; at = stacks_.nodes()[at].caller)
                    ids.varint(uint64_t{stacks_.nodes()[at].frame} + 1);
                sample.bytes(1, list);
                list.clear();
                Message values(list);
                values.varint(run.count);
                if (!traces_.current && !run_.counts_events() && !run_.waits()) values.varint(run.count * period_ns_);
                if (!traces_.weight.empty()) values.varint(run.weight);
                sample.bytes(2, list);
                if (!thread.comm.empty()) label(sample, "comm", thread.comm, 0);
                label(sample, "pid", {}, thread.pid);
                label(sample, "tid", {}, thread.tid);
                if (const LabelsPtr &labels = stacks_.labels()[run.labels])
                    for (const auto &[key, value] : *labels)
                        if (!value.empty()) request_label(sample, key, value);
                const TraceOrigin &origin = stacks_.origins()[run.origin];
                if (!origin.event.empty()) label(sample, "origin", origin.event, 0);
                if (origin.context) label(sample, "context", {}, *origin.context);
            });
            flush(out);
        }
    }

    // Mappings, locations and functions.
    void places() {
        const auto &frames = stacks_.frames();
        std::vector<bool> used(frames.size());
        for (const ThreadStacks::Node &node : stacks_.nodes()) used[node.frame] = true;
        std::vector<Mapping> mappings;
        std::vector<uint32_t> mapping_of(frames.size(), ThreadStacks::kNone);
        std::map<std::tuple<std::string_view, std::string_view, uint64_t>, uint32_t> by_place;
        for (uint32_t i = 0; i < frames.size(); ++i) {
            const Frame &frame = *frames[i];
            if (!used[i] || frame.module.empty()) continue;
            const uint64_t bias = frame.file_offset ? frame.address - frame.file_offset : 0;
            const auto [at, fresh] =
                by_place.try_emplace({frame.module, frame.build_id, bias}, static_cast<uint32_t>(mappings.size()));
            if (fresh) mappings.push_back({.bias = bias, .kernel = frame.kernel, .frame = &frame});
            Mapping &mapping = mappings[at->second];
            mapping.start = std::min(mapping.start, frame.address / kPage * kPage);
            mapping.limit = std::max(mapping.limit, (frame.address | (kPage - 1)) + 1);
            mapping.has_functions = mapping.has_functions && !frame.symbol.empty();
            mapping.has_files = mapping.has_files || !frame.file.empty();
            mapping.has_lines = mapping.has_lines || frame.line != 0;
            mapping.has_inlined = mapping.has_inlined || frame.inlined;
            ++mapping.locations;
            mapping_of[i] = at->second;
        }
        std::string out;
        for (const uint32_t i : main_first(mappings)) {
            append_mapping(out, mappings[i], i + 1);
            flush(out);
        }
        std::map<std::pair<std::string_view, std::string_view>, uint64_t> functions; // name and file
        for (uint32_t i = 0; i < frames.size(); ++i) {
            if (!used[i]) continue;
            const Frame &frame = *frames[i];
            uint64_t function = 0;
            if (!frame.symbol.empty()) {
                const auto [at, fresh] = functions.try_emplace({frame.symbol, frame.file}, functions.size() + 1);
                function = at->second;
                if (fresh) {
                    const uint64_t name = string(frame.symbol);
                    const uint64_t file = frame.file.empty() ? 0 : string(frame.file);
                    Message(out).message(profile::function, [&](Message &m) {
                        m.number(1, function).number(2, name).number(3, name).number(4, file);
                    });
                }
            }
            Message(out).message(profile::location, [&](Message &m) {
                m.number(1, uint64_t{i} + 1);
                if (mapping_of[i] != ThreadStacks::kNone) m.number(2, uint64_t{mapping_of[i]} + 1);
                m.number(3, frame.address);
                if (function)
                    m.message(4, [&](Message &line) { line.number(1, function).number(2, frame.line).number(3, frame.column); });
            });
            flush(out);
        }
    }
    // The first mapping gives the profile its name: the program with the most places, no library.
    static std::vector<uint32_t> main_first(const std::vector<Mapping> &mappings) {
        std::vector<uint32_t> order;
        uint32_t best = ThreadStacks::kNone;
        for (uint32_t i = 0; i < mappings.size(); ++i) {
            order.push_back(i);
            const Mapping &mapping = mappings[i];
            const bool program = mapping.frame->module.front() == '/' && !mapping.kernel &&
                                 base_name(mapping.frame->module).find(".so") == std::string_view::npos;
            if (program && (best == ThreadStacks::kNone || mapping.locations > mappings[best].locations)) best = i;
        }
        if (best != ThreadStacks::kNone) std::rotate(order.begin(), order.begin() + best, order.begin() + best + 1);
        return order;
    }
    void append_mapping(std::string &out, const Mapping &mapping, uint64_t id) {
        const Frame &frame = *mapping.frame;
        std::string name = frame.module;
        if (mapping.kernel) name = frame.module == "vmlinux" ? "[kernel.kallsyms]" : "[" + frame.module + "]";
        Message(out).message(profile::mapping, [&](Message &m) {
            m.number(1, id).number(2, mapping.start).number(3, mapping.limit);
            if (mapping.bias) m.number(4, mapping.start >= mapping.bias ? mapping.start - mapping.bias : 0);
            m.number(5, string(name)).number(6, string(frame.build_id)).number(7, mapping.has_functions);
            m.number(8, mapping.has_files).number(9, mapping.has_lines).number(10, mapping.has_inlined);
        });
    }
    void comments(std::string &out, const Ledger &ledger) {
        std::vector<std::string> lines{format("rawbpf {}: {}", run_.version, shell_words(run_.command))};
        if (!run_.kernel.empty()) lines.push_back(format("Linux {} {}, {} CPUs", run_.kernel, run_.arch, run_.cpus));
        lines.push_back(format("{}: fired {}, shown {}, filtered {}", traces_.current ? "traces" : "samples", ledger.fired,
                               ledger.shown, ledger.filtered));
        for (const auto &[what, list] : {std::pair{"lost", &ledger.lost}, std::pair{"degraded", &ledger.degraded}})
            for (const auto &[reason, n] : *list)
                if (n > 0) lines.push_back(format("{}: {} {}", what, reason, n));
        std::string list;
        for (const std::string &line : lines) Message(list).varint(string(line));
        Message(out).bytes(profile::comment, list);
    }

    RunInfo run_;
    uint64_t period_ns_ = 0;
    TraceOptions traces_;
    ThreadStacks stacks_;
    std::map<std::string, uint64_t, std::less<>> string_ids_;
    std::vector<const std::string *> strings_;
    Gzip gzip_;
};

} // namespace

std::unique_ptr<Renderer> make_pprof(const RenderOptions &options, Writer &out) {
    return std::make_unique<Pprof>(options.traces, out);
}

} // namespace rawbpf::inline v0::render
