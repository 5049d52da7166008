// What `perf script` prints, for the many tools that read it: stackcollapse-perf, speedscope, the Firefox profiler.
//
//      split     4243 [001] 1763612456.123456:   10101010 cpu-clock:
//              ffffffff8112a0b4 do_syscall_64+0x64 ([kernel.kallsyms])
//                        401136 hot_a(long)+0x16 (/usr/bin/split)
//
//      comm tid [cpu] seconds: period event:, the frames leaf first, an empty line
//
// Times are Unix time; the period is the sampling clock's, in nanoseconds, or of another event so many of them; of a wait how
// long it was. perf escapes nothing, and its readers take apart what they find: a space in a comm, or a bracket in a path, moves
// every field behind it. So a comm is one word and so is a path, as everywhere here (text.cpp). A comm of one letter needs two
// spaces behind it, or stackcollapse-perf takes the tid into it.
#include <algorithm>

#include "programs/render/text.h"
#include "programs/render/tool_formats.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::render {
namespace {

class PerfScript final : public Renderer {
  public:
    PerfScript(const TraceOptions &traces, Writer &out) : out_(out), traces_(traces) {}

    void begin(const RunInfo &run) override {
        period_ = run.counts_events() || run.waits() ? 1 : period_of(run);
        event_ = run.event.empty() ? "cpu-clock" : run.event;
    }
    void sample(const NamedSample &s, uint64_t count) override {
        const uint64_t us = s.wall_ns / 1000;
        std::string &text = out_.text();
        append_comm(text, s.comm);
        append(text, " {:>8} [{:03}] {}.{:06}: {:>10} ", s.tid, s.cpu, us / 1'000'000, us % 1'000'000,
               traces_.current ? count : period_ * count);
        append_comm(text, traces_.current ? std::string_view(traces_.current->event) : std::string_view(event_));
        text += ": \n";
        for (const FramePtr &frame : s.kernel) append_frame(*frame);
        for (const FramePtr &frame : s.user) append_frame(*frame);
        text += '\n';
        out_.commit();
    }
    void end(const Ledger &) override {}

  private:
    void append_frame(const Frame &frame) {
        std::string &text = out_.text();
        append(text, "\t{:>16x} ", frame.address);
        append_symbol(text, frame.symbol);
        if (frame.inlined) {
            text += " (inlined)\n"; // as perf has it, in place of the offset and the module
            return;
        }
        if (!frame.symbol.empty()) append(text, "+{:#x}", frame.symbol_offset);
        text += " (";
        if (frame.module.empty())
            text += "[unknown]";
        else if (frame.kernel && frame.module == "vmlinux")
            text += "[kernel.kallsyms]";
        else if (frame.kernel && frame.module.front() != '[')
            text += '[', append_path(text, frame.module), text += ']';
        else
            append_path(text, frame.module);
        text += ")\n";
    }
    static void append_path(std::string &out, std::string_view path) {
        while (!path.empty()) {
            const size_t plain = std::min(path.find_first_of("()"), path.size());
            if (plain != 0) append_comm(out, path.substr(0, plain));
            if (plain < path.size()) append(out, "\\x{:02x}", static_cast<unsigned>(path[plain]));
            path.remove_prefix(std::min(plain + 1, path.size()));
        }
    }
    Writer &out_;
    TraceOptions traces_;
    uint64_t period_ = 0;
    std::string event_;
};

} // namespace

std::unique_ptr<Renderer> make_perf_script(const RenderOptions &options, Writer &out) {
    return std::make_unique<PerfScript>(options.traces, out);
}

} // namespace rawbpf::inline v0::render
