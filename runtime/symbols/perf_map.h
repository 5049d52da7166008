// SPDX-License-Identifier: MIT
// The symbols of just-in-time compiled code, from the perf-PID.map that its runtime writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/symbols/compiled_code.h"
#include "runtime/symbols/name.h"

namespace rawbpf::inline v0::symbols {

/// The number that a process knows itself by: in the innermost of its pid namespaces (Linux 4.1; before, `pid`).
[[nodiscard]] int pid_inside(int pid);

/// perf-PID.map as JITs (node, the JVM's agents, wasmtime, .NET ...) write it: "START SIZE NAME" in hex, one a line.
class PerfMap {
  public:
    /// Reads /tmp/perf-PID.map as the process itself sees it: below /proc/PID/root, under its pid in its own pid namespace; once
    /// it has exited, below `root`. A file that belongs neither to the process's user (`owner`, when the process is gone), nor to
    /// root or to us, is refused (permission), as is one that isn't a regular file: anybody may write to /tmp.
    [[nodiscard]] static Result<PerfMap> load(int pid, const std::string &root = {}, std::optional<uint32_t> owner = {});
    /// The two halves of load(): the file, so that it can be held while its process comes to an end, and what is in it by then.
    [[nodiscard]] static Result<Fd> open(int pid, const std::string &root = {}, std::optional<uint32_t> owner = {});
    /// Errors: bad_input above 256 MiB of text, or 48 MiB of names.
    [[nodiscard]] static Result<PerfMap> read(const Fd &file);
    /// The text (PURE); lines of another form are passed over.
    [[nodiscard]] static PerfMap parse(std::string_view text);
    /// Reads what was appended since the last call, at `since_ns` (0: this is the first one): a map has no times. Where the file
    /// is shorter now it was written anew, and is read again. True: there was something new. Errors: as read().
    [[nodiscard]] Result<bool> read_more(const Fd &file, uint64_t since_ns);
    /// The file was written anew: the next read_more() takes all of it. What was there before stays, as of then.
    void read_again() {
        offset_ = 0;
        rest_.clear();
        passing_over_ = false;
    }

    /// The function at an address. Where a JIT has used memory again, the last line wins.
    [[nodiscard]] std::optional<Name> find(uint64_t address) const;
    /// By time.
    [[nodiscard]] const CompiledCode &code() const { return code_; }
    /// Functions in it.
    [[nodiscard]] size_t size() const { return code_.size(); }
    [[nodiscard]] size_t memory() const { return code_.memory(); } ///< bytes held

  private:
    void add(std::string_view line, uint64_t since_ns); ///< passed over where it has another form; a long name is cut

    CompiledCode code_;
    uint64_t offset_ = 0;       ///< bytes of the file that were read
    std::string rest_;          ///< of a line that isn't whole yet
    bool passing_over_ = false; ///< the rest of a line that is too long
};

} // namespace rawbpf::inline v0::symbols
