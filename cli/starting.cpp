#include "cli/starting.h"

#include <algorithm>
#include <utility>

#include "cli/console.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/terminal.h"

namespace rawbpf::inline v0::cli {
namespace {

Starting *listening = nullptr; // where there is one thread: who is told of steps

} // namespace

std::string StartLine::at(uint64_t now_ns, const LongStep::State &step, uint32_t columns) {
    if (now_ns < next_ns()) return {};
    last_ns_ = now_ns;
    std::string text = format("{}: {}", who_, step.doing ? step.doing : "starting");
    if (step.doing && step.total > 1)
        append(text, ": {} of {} {}", render::grouped(std::min(step.done, step.total)), render::grouped(step.total), step.of);
    append(text, ", {} s", (now_ns - start_ns_) / 1'000'000'000);
    shown_ = true;
    if (!terminal_) return text + "\n";
    return format("\r{}\x1b[K", render::cut(text, std::max<uint32_t>(columns, 20) - 1)); // a line that wraps can't be taken back
}

uint64_t StartLine::next_ns() const {
    if (!shown_) return start_ns_ + kPatienceNs;
    return terminal_ ? last_ns_ + kEachNs : UINT64_MAX;
}

std::string StartLine::away() { return std::exchange(shown_, false) && terminal_ ? "\r\x1b[K" : ""; }

Starting::Starting(std::string who, bool quiet) {
    if (quiet) return;
    line_ = std::make_unique<StartLine>(std::move(who), is_terminal(2), sys::monotonic_ns());
    ticker_ = sys::Ticker::start([this] { return look(); }, sys::Ticker::Turn::ordinary);
    if (ticker_) return;
    listening = this;
    LongStep::listen([] { (void)listening->look(); });
}

// How long until it has to look again.
uint64_t Starting::look() {
    const uint64_t now = sys::monotonic_ns();
    if (now >= line_->next_ns()) say_as_is(line_->at(now, LongStep::now(), static_cast<uint32_t>(sys::terminal_size(2).columns)));
    const uint64_t next = line_->next_ns();
    return next == UINT64_MAX ? 0 : next - now;
}

void Starting::over() {
    if (!line_) return;
    if (listening == this) {
        LongStep::listen(nullptr);
        listening = nullptr;
    }
    ticker_.reset();
    if (const std::string text = line_->away(); !text.empty()) say_as_is(text);
    line_.reset();
}

} // namespace rawbpf::inline v0::cli
