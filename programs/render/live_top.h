// `top` of the last seconds, as a screen of a terminal.
#pragma once

#include <deque>
#include <string>

#include "programs/render/frame.h"

namespace rawbpf::inline v0::render {

class LiveTop {
  public:
    static constexpr uint64_t kWindowNs = 10'000'000'000;
    static constexpr size_t kMost = 100'000; ///< samples kept; on a machine that takes more the window is shorter

    void add(const NamedSample &sample);
    /// At most `rows` lines of at most `columns` characters, each ended by a newline but the last. `now_ns`: since the start.
    [[nodiscard]] std::string screen(uint64_t now_ns, uint64_t samples, size_t rows, size_t columns);

  private:
    std::deque<NamedSample> recent_;
};

} // namespace rawbpf::inline v0::render
