// A BPF program can't do this: the kernel runs none on a clock's tick while another one runs on that CPU. So the samples are
// perf's own, records of 16 bytes in a ring:
//
//      header { type = PERF_RECORD_SAMPLE (9), misc, size = 16 }   ip u64
//      header { type = PERF_RECORD_LOST (2), ... }                 id u64, lost u64
#include "programs/running/sampled.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include <linux/perf_event.h>
#include <sys/mman.h>

#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/bytes.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/file.h"
#include "runtime/sys/perf.h"

namespace rawbpf::inline v0::running {
namespace {

constexpr size_t kRingBytes = 256 << 10; // 16,384 samples a CPU between two looks

uint64_t sum(const std::map<uint32_t, uint64_t> &hits) {
    return std::accumulate(hits.begin(), hits.end(), uint64_t{0}, [](uint64_t all, const auto &one) { return all + one.second; });
}

/// The last line at or before an offset; nullptr: there is none.
const inspect::MachineFunction::Line *line_at(const inspect::MachineFunction &function, uint32_t offset) {
    const auto after = std::upper_bound(function.lines.begin(), function.lines.end(), offset,
                                        [](uint32_t value, const auto &line) { return value < line.offset; });
    return after == function.lines.begin() ? nullptr : &*std::prev(after);
}

double percent(uint64_t part, uint64_t whole) {
    return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

} // namespace

CodeSamples::CodeSamples(std::vector<inspect::MachineFunction> functions)
    : functions_(std::move(functions)), hits_(functions_.size()) {}

void CodeSamples::add(uint64_t address) {
    for (size_t i = 0; i < functions_.size(); ++i) {
        const uint64_t offset = address - functions_[i].address;
        if (functions_[i].address == 0 || offset >= functions_[i].code.size()) continue;
        ++hits_[i][static_cast<uint32_t>(offset)];
        ++inside_;
        return;
    }
    ++elsewhere_;
}

std::string CodeSamples::text() const {
    std::string out;
    for (size_t i = 0; i < functions_.size(); ++i) {
        const inspect::MachineFunction &function = functions_[i];
        const uint64_t all = sum(hits_[i]);
        render::append_line(out, format("{} at {:#x}: {} bytes, {} sample{}, {:.1f} %", function.name, function.address,
                                        function.code.size(), render::grouped(all), all == 1 ? "" : "s", percent(all, inside_)));
        // Places in the code's order; those of one line of source together.
        for (auto hit = hits_[i].begin(); hit != hits_[i].end();) {
            const inspect::MachineFunction::Line *line = line_at(function, hit->first);
            uint64_t of_line = 0;
            std::string places;
            for (; hit != hits_[i].end() && line_at(function, hit->first) == line; ++hit) {
                of_line += hit->second;
                append(places, "{:>10} {:>6.1f} %      +{:#x}\n", render::grouped(hit->second), percent(hit->second, inside_),
                       hit->first);
            }
            if (line)
                render::append_line(out, format("{:>10} {:>6.1f} %  {}:{}  {}", render::grouped(of_line),
                                                percent(of_line, inside_), line->file, line->line, line->text));
            else
                out += places;
        }
    }
    return out;
}

void CodeSamples::append_json(std::string &out) const {
    for (size_t i = 0; i < functions_.size(); ++i)
        for (const auto &hit : hits_[i]) {
            const inspect::MachineFunction::Line *line = line_at(functions_[i], hit.first);
            render::JsonLine row(out, "code");
            row.text("function", functions_[i].name).hex("address", functions_[i].address + hit.first);
            row.number("offset", hit.first).number("samples", hit.second);
            row.text_or_null("file", line ? std::string_view(line->file) : std::string_view());
            line ? row.number("line", line->line) : row.null("line");
            row.text_or_null("text", line ? std::string_view(line->text) : std::string_view());
        }
    render::JsonLine(out, "code_samples").number("samples", inside_).number("elsewhere", elsewhere_);
}

Result<AddressClock> AddressClock::open(uint64_t frequency) {
    AddressClock out;
    sys::PerfEventAttr attr;
    attr.sample_type = PERF_SAMPLE_IP;
    attr.sample_period = frequency;
    attr.bits = sys::kPerfFreq | sys::kPerfExcludeUser | sys::kPerfExcludeHv;
    const std::vector<int> cpus = TRY(online_cpus());
    out.hardware_ = true;
    for (const int cpu : cpus) {
        attr.type = out.hardware_ ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
        attr.config =
            out.hardware_ ? static_cast<uint64_t>(PERF_COUNT_HW_CPU_CYCLES) : static_cast<uint64_t>(PERF_COUNT_SW_CPU_CLOCK);
        Result<Fd> event = sys::perf_event_open(attr, -1, cpu);
        if (!event && out.hardware_ && out.rings_.empty()) { // no PMU here
            out.hardware_ = false;
            attr.type = PERF_TYPE_SOFTWARE;
            attr.config = PERF_COUNT_SW_CPU_CLOCK;
            event = sys::perf_event_open(attr, -1, cpu);
        }
        if (!event) return Unexpected(in_context(std::move(event).error(), format("a clock of {} Hz on CPU {}", frequency, cpu)));
        sys::Mapping pages = TRY_IN(sys::map(event->get(), 0, sys::page_size() + kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED),
                                    "a ring for the clock of CPU {}", cpu);
        SidebandRing ring = TRY(SidebandRing::over(std::move(pages)));
        out.rings_.push_back({std::move(*event), std::move(ring)});
    }
    return out;
}

void AddressClock::read(CodeSamples &samples) {
    for (Ring &each : rings_)
        each.ring.consume_bytes([&](Bytes record) {
            const auto header = load<perf_event_header>(record.data());
            if (header.type == PERF_RECORD_SAMPLE && record.size() >= sizeof header + sizeof(uint64_t))
                samples.add(load<uint64_t>(record.data() + sizeof header));
            else if (header.type == PERF_RECORD_LOST && record.size() >= sizeof header + 2 * sizeof(uint64_t))
                lost_ += load<uint64_t>(record.data() + sizeof header + sizeof(uint64_t));
        });
}

} // namespace rawbpf::inline v0::running
