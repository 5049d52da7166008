// `rawbpf profile --live`: in rawbpf-lab only.
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

using OpenLiveScreen = std::unique_ptr<LiveScreen> (*)();
[[nodiscard]] std::unique_ptr<LiveScreen> open_live_screen();
/// nullptr in an executable that has no such thing (command_list.cpp).
extern const OpenLiveScreen kOpenLiveScreen;

} // namespace rawbpf::inline v0::cli
