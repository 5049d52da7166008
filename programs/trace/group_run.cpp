#include "programs/trace/group_run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/fail.h"
#include "runtime/sys/terminal.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr uint64_t kUsualNs = 1'000'000'000;

} // namespace

GroupRun::GroupRun(const GroupsShown &shown, const Tracer &tracer, View &view, const RunInfo &run, const btf::Btf *kernel,
                   render::Writer &writer, uint64_t start_ns)
    : shown_(shown), tracer_(tracer), view_(view), run_(run), kernel_(kernel), writer_(writer), start_ns_(start_ns),
      every_ns_(by_interval() ? shown.every_ns : kUsualNs), due_ns_(start_ns + every_ns_) {}

Result<void> GroupRun::tick(uint64_t now_ns) {
    if (now_ns < due_ns_ || (!by_interval() && !live())) return {};
    due_ns_ = std::max(due_ns_ + every_ns_, now_ns); // late: the next one is in full
    return show(now_ns, false);
}

Result<void> GroupRun::finish(uint64_t now_ns) { return show(now_ns, true); }

Result<void> GroupRun::show(uint64_t now_ns, bool last) {
    const AggregateOptions &options = *tracer_.aggregate();
    const GroupLayout &layout = *tracer_.group_layout();
    std::vector<GroupRow> rows = TRY(tracer_.groups());
    GroupView::Interval interval{++intervals_, now_ns - start_ns_, run_.start_wall_ns + (now_ns - start_ns_)};
    GroupView view{options, layout, view_.names()};
    view.kernel = kernel_;
    view.count = shown_.count;
    view.top = shown_.top;
    view.first = first_;
    if (by_interval()) {
        std::vector<GroupRow> all = rows;
        rows = groups_since(options, before_, rows);
        before_ = std::move(all);
        view.interval = &interval;
    }
    if (GroupStacks *stacks = view_.group_stacks()) {
        rows = stacks->name(options, layout, std::move(rows));
        view.stack = [stacks](uint64_t number) -> const NamedStack & { return stacks->get(number); };
    }
    sort_groups(options, layout, shown_.count, rows);
    const sys::TerminalSize size = live() ? sys::terminal_size(shown_.terminal) : sys::TerminalSize{};
    if (live() && !last && !view.interval) view.top = std::min<size_t>(view.top, LiveText::table_rows(size));
    std::string text;
    append_groups(text, shown_.format, view, rows);
    first_ = false;
    std::string out;
    if (live() && !last) {
        table_.draw(out, text, size);
    } else {
        table_.clear(out);
        out += text;
    }
    writer_.write(out);
    return writer_.flush();
}

} // namespace rawbpf::inline v0::trace
