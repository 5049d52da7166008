// Debug files from the servers that DEBUGINFOD_URLS names, by build-id.
#pragma once

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
    /// nullopt: none of them has it, or they don't answer. Without any news from a server for DEBUGINFOD_TIMEOUT seconds (5 where
    /// that isn't set) they are given up, for good.
    [[nodiscard]] std::optional<Fd> fetch(const std::string &build_id);
    /// Why they were given up; empty: they weren't.
    [[nodiscard]] const std::string &problem() const { return problem_; }

  private:
    bool start();

    bool wanted_;
    bool started_ = false;
    void *client_ = nullptr;
    std::string problem_;
    std::unordered_map<std::string, bool> answered_; // build-ids asked for, and whether there was a file
};

} // namespace rawbpf::inline v0::dwarf
