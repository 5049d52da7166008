// One screen per second. Standard output is the terminal; its size is read each time, so the window may change.
#include "cli/profile_live.h"

#include "cli/other_screen.h"
#include "programs/render/live_top.h"
#include "runtime/sys/terminal.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr double kEvery = 1; // seconds

class Screen final : public LiveScreen {
  public:
    void samples(std::span<const NamedSample> samples) override {
        for (const NamedSample &sample : samples) top_.add(sample);
    }
    void progress(const Progress &progress) override {
        if (progress.seconds < next_) return;
        next_ = progress.seconds + kEvery;
        const sys::TerminalSize size = sys::terminal_size(1);
        screen_.draw(top_.screen(static_cast<uint64_t>(progress.seconds * 1e9), progress.samples, static_cast<size_t>(size.rows),
                                 static_cast<size_t>(size.columns)));
    }

  private:
    OtherScreen screen_;
    render::LiveTop top_;
    double next_ = kEvery;
};

} // namespace

std::unique_ptr<LiveScreen> open_live_screen() { return std::make_unique<Screen>(); }

} // namespace rawbpf::inline v0::cli
