// Debug files from the servers that DEBUGINFOD_URLS names, by build-id.
#pragma once

#include <csignal>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/fd.h"

namespace rawbpf::inline v0::dwarf {

/// elfutils' libdebuginfod, loaded at the first question. It keeps what it got below DEBUGINFOD_CACHE_PATH (else
/// ~/.cache/debuginfod_client), and that a server has no such file, for ten minutes.
class Debuginfod {
  public:
    Debuginfod();
    ~Debuginfod();
    Debuginfod(const Debuginfod &) = delete;
    Debuginfod &operator=(const Debuginfod &) = delete;

    /// Whether the environment names servers.
    [[nodiscard]] bool wanted() const { return wanted_; }
    /// nullopt: none of them has it, or it is too large, or they don't keep to their bounds, and then they are given up, for
    /// good. A request has DEBUGINFOD_TIMEOUT seconds (5 where that isn't set), and one more for each 64 KB that came of a file
    /// whose size was said, but not more than DEBUGINFOD_MAXTIME (300) in all; a file has DEBUGINFOD_MAXSIZE bytes (256 MB), 8 MB
    /// where its size wasn't said; all files of a run have 1 GB, or one such file's bytes where that is more. All requests that
    /// brought nothing have 30 seconds together. A signal that would end the process ends the request first, so that no part of a
    /// file stays behind.
    [[nodiscard]] std::optional<Fd> fetch(const std::string &build_id);
    /// DebugInfo::end_on().
    void end_on(const volatile std::sig_atomic_t &signals) { signals_ = &signals; }
    /// Why they were given up; empty: they weren't.
    [[nodiscard]] const std::string &problem() const { return problem_; }
    /// What wasn't fetched for its size, in a sentence; empty: nothing.
    [[nodiscard]] std::string left_out() const;

  private:
    struct Requests; ///< what is known of those that were made, and the library's client

    bool wanted_;
    const volatile std::sig_atomic_t *signals_ = nullptr;
    std::string problem_;
    std::unique_ptr<Requests> requests_; ///< from the first question on
};

} // namespace rawbpf::inline v0::dwarf
