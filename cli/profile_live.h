// `rawbpf profile --live`: a table that is redrawn while the profile runs.
#pragma once

#include <memory>
#include <span>

#include "programs/profile/profiler.h"

namespace rawbpf::inline v0::cli {

/// The hottest functions of the last seconds, redrawn on a terminal's other screen; the first comes back when this is dropped.
class LiveScreen {
  public:
    virtual ~LiveScreen() = default;
    virtual void samples(std::span<const NamedSample> samples) = 0;
    virtual void progress(const Progress &progress) = 0;
};

[[nodiscard]] std::unique_ptr<LiveScreen> open_live_screen();

} // namespace rawbpf::inline v0::cli
