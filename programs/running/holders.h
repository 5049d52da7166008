// Who keeps an object of the kernel alive: processes by descriptors, file systems by pins.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::inline v0::running {

/// A process that has an object open.
struct Holder {
    int pid = 0;
    std::string comm;
    std::string via; ///< of a program that a perf event runs, which the process has open: "kprobe do_exit"; else empty
};

/// The processes that have programs, maps, BTF and links open, from /proc/PID/fd and fdinfo. Not rawbpf itself.
class Holders {
  public:
    /// Every process that can be looked at.
    [[nodiscard]] static Holders scan();
    /// By pid.
    [[nodiscard]] std::span<const Holder> of(sys::ObjectKind kind, uint32_t id) const;
    /// How many processes couldn't be looked at, for lack of privileges.
    [[nodiscard]] size_t hidden() const { return hidden_; }

  private:
    void look(int pid);
    void add(sys::ObjectKind kind, uint32_t id, int pid, const std::string &comm, std::string via = {});
    std::map<std::pair<sys::ObjectKind, uint32_t>, std::vector<Holder>> found_;
    size_t hidden_ = 0;
};

/// Paths of pins on all bpf file systems that are mounted.
class PinnedPaths {
  public:
    /// Shown each pinned object while it is open; returns its id if it has asked for it. A listing so asks once for what is both
    /// pinned and listed: half of the system calls.
    using See = std::function<std::optional<uint32_t>(sys::ObjectKind kind, int fd)>;

    [[nodiscard]] static PinnedPaths scan(const See &see = {});
    [[nodiscard]] std::span<const std::string> of(sys::ObjectKind kind, uint32_t id) const;

  private:
    void look(const std::string &directory, int depth, const See &see);
    void add(const std::string &path, int fd, const See &see);
    Result<Fd> open_pin(int directory, const std::string &name, const std::string &path);
    std::map<std::pair<sys::ObjectKind, uint32_t>, std::vector<std::string>> found_;
    size_t files_ = 0;
    Fd own_fds_;              // /proc/self/fd
    bool can_open_at_ = true; // until this kernel refuses it
};

} // namespace rawbpf::inline v0::running
