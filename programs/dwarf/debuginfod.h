// Debug files from the servers that DEBUGINFOD_URLS names, by build-id.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

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
    /// nullopt: none of them has it, or they don't keep to their bounds, and then they are given up, for good. A request has
    /// DEBUGINFOD_TIMEOUT seconds (5 where that isn't set), and one more for each 64 KB that came of a file whose size was said,
    /// but not more than DEBUGINFOD_MAXTIME (300) in all; a file has DEBUGINFOD_MAXSIZE bytes (2 GB), 8 MB where its size wasn't
    /// said. All requests that brought nothing have 30 seconds together.
    [[nodiscard]] std::optional<Fd> fetch(const std::string &build_id);
    /// DebugInfo::end_on().
    void end_on(const volatile std::sig_atomic_t &signals) { signals_ = &signals; }
    /// Why they were given up; empty: they weren't.
    [[nodiscard]] const std::string &problem() const { return problem_; }

  private:
    bool start();

    bool wanted_;
    bool started_ = false;
    void *client_ = nullptr;
    const volatile std::sig_atomic_t *signals_ = nullptr;
    uint64_t in_vain_ns_ = 0;  ///< of requests that brought nothing
    uint64_t last_end_ns_ = 0; ///< since the first signal: when the last request ends; 0: there was none
    std::string problem_;
    std::unordered_map<std::string, bool> answered_; // build-ids asked for, and whether there was a file
};

} // namespace rawbpf::inline v0::dwarf
