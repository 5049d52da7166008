// The table: one line a sample, as it comes, in the columns that the profiler's users know.
//
//      TIME                 COMM                 PID    CPUID   KStackSz  UStackSz
//      1761659235300424689  node                 2133   4       0         176
//
// Off-CPU, TIME is when the thread left, and a last column, WAITED_us, says for how long.
//
// Behind the last column are the labels of a sample that has any, `KEY=value` each.
//
// TIME is Unix time in nanoseconds, the sizes are the bytes captured. With --ps the frames follow, leaf first, which is the order
// in which the kernel hands them over, and the order in which a debugger prints them:
//
//          0  ffffffff8112a0b4  do_syscall_64+0x64  [vmlinux]
//          1  00007f3a5c0e2b10  __read+0x10  [libc.so.6]
//
// and where lines and inlined functions were asked for, an address has a line a function, innermost first:
//
//          2  000055d1c0a01184  square (inlined) (shapes.h:12)  [draw]
//          3  000055d1c0a01184  area+0x14 (shapes.cpp:40)  [draw]
#include "programs/render/renderer.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::render {
namespace {

class Table final : public Renderer {
  public:
    Table(const RenderOptions &options, Writer &out) : out_(out), stacks_(options.stacks) {}

    void begin(const RunInfo &run) override {
        waits_ = run.waits();
        out_.write(waits_ ? "TIME                 COMM                 PID    CPUID   KStackSz  UStackSz  WAITED_us\n"
                          : "TIME                 COMM                 PID    CPUID   KStackSz  UStackSz\n");
    }
    void sample(const NamedSample &s, uint64_t) override {
        comm_.clear();
        append_comm(comm_, s.comm);
        append(out_.text(), "{:<20} {:<20} {:<6} {:<7} {:<9} {:<{}}", s.wall_ns, comm_, s.pid, s.cpu, s.kernel_bytes,
               s.user_bytes, waits_ ? 9 : 0);
        if (waits_) append(out_.text(), " {}.{:03}", s.weight / 1000, s.weight % 1000);
        if (s.labels)
            for (const auto &[key, value] : *s.labels) {
                out_.text() += ' ';
                append_comm(out_.text(), format("{}={}", key, value));
            }
        out_.text() += '\n';
        if (stacks_) {
            size_t number = 0;
            for (const FramePtr &frame : s.kernel) append_frame(number++, *frame);
            for (const FramePtr &frame : s.user) append_frame(number++, *frame);
            if (s.user_missed) out_.text() += "        [Missed User Stack]\n";
            if (s.kernel_missed) out_.text() += "        [Missed Kernel Stack]\n";
        }
        out_.commit();
    }
    void end(const Ledger &) override {}

  private:
    void append_frame(size_t number, const Frame &frame) {
        std::string &text = out_.text();
        append(text, "    {:>5}  {:016x}  ", number, frame.address);
        if (frame.symbol.empty()) {
            text += "[unknown]";
        } else {
            append_printable(text, frame.symbol);
            if (frame.inlined)
                text += " (inlined)";
            else
                append(text, "+{:#x}", frame.symbol_offset);
        }
        if (!frame.file.empty()) {
            text += " (";
            append_printable(text, base_name(frame.file));
            if (frame.line != 0) append(text, ":{}", frame.line);
            text += ')';
        }
        if (!frame.module.empty()) {
            std::string_view module = base_name(frame.module);
            bool bracketed = module.front() == '[';
            text += bracketed ? "  " : "  [";
            append_printable(text, module);
            if (!bracketed) text += ']';
        }
        text += '\n';
    }
    Writer &out_;
    bool stacks_, waits_ = false;
    std::string comm_;
};

} // namespace

std::unique_ptr<Renderer> make_table(const RenderOptions &options, Writer &out) { return std::make_unique<Table>(options, out); }

} // namespace rawbpf::inline v0::render
