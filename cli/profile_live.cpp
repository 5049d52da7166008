// One screen per second, on the terminal's alternate screen, as less(1) and top(1) use it: when the run ends, except by kill
// -9, the terminal shows the shell's lines again, followed by the table of the whole run. Standard output is the terminal; its
// size is read each time, so the window may change.
#include "cli/profile_live.h"

#include "cli/console.h"
#include "programs/render/live_top.h"
#include "runtime/sys/terminal.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr double kEvery = 1; // seconds
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l", kLeave = "\x1b[?25h\x1b[?1049l";

class Screen final : public LiveScreen {
  public:
    Screen() { (void)print(kEnter); }
    ~Screen() override { (void)print(kLeave); }
    Screen(const Screen &) = delete;
    Screen &operator=(const Screen &) = delete;

    void samples(std::span<const NamedSample> samples) override {
        for (const NamedSample &sample : samples) top_.add(sample);
    }
    void progress(const Progress &progress) override {
        if (progress.seconds < next_) return;
        next_ = progress.seconds + kEvery;
        const sys::TerminalSize size = sys::terminal_size(1);
        std::string text = "\x1b[H";
        const std::string lines = top_.screen(static_cast<uint64_t>(progress.seconds * 1e9), progress.samples,
                                              static_cast<size_t>(size.rows), static_cast<size_t>(size.columns));
        for (const char c : lines) c == '\n' ? text += "\x1b[K\r\n" : text += c;
        text += "\x1b[K\x1b[J";
        (void)print(text); // a terminal that has gone sends SIGHUP, which ends the run
    }

  private:
    render::LiveTop top_;
    double next_ = kEvery;
};

} // namespace

std::unique_ptr<LiveScreen> open_live_screen() { return std::make_unique<Screen>(); }

} // namespace rawbpf::inline v0::cli
