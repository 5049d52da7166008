// Makes the kernel start its wait before there is a uprobe to attach.
#pragma once

#include "runtime/base/fd.h"
#include "runtime/sys/blocking_call.h"

namespace rawbpf::inline v0 {

/// Held from the moment when it is known that there will be uprobes until they are attached, it makes the first of them come
/// sooner by the time between. See the .cpp for why. It changes nothing in any process, and nothing fails without it.
class [[nodiscard]] UprobeHeadStart {
  public:
    /// Where the kernel doesn't let us (no uprobes, no rights), an empty one: the attachment itself then fails and says why.
    static UprobeHeadStart begin();
    UprobeHeadStart() = default;

  private:
    Fd file_;
    sys::BlockingCall call_;
};

} // namespace rawbpf::inline v0
