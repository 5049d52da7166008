// Whom a run observes, for how long, and what it used: the same for every tool that takes samples or events.
//
//      Session session(whom);
//      session.open();        the command is forked, and waits before its first instruction; the processes are there
//      ...                    programs are loaded and attached; rings join session.loop()
//      session.go();          who waits is told; the command begins, and so does the time
//      for (;;) {
//          if (!TRY(session.loop().wait(50))) break;
//          ...                read what has come
//          if (TRY(session.loop().over())) break;
//      }
//      session.end();         the command is ended, if it still runs
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "programs/session/run_loop.h"
#include "runtime/base/result.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::session {

struct Observed {
    std::vector<std::string> workload; ///< a command; empty: none
    bool as_root = false;              ///< it keeps root under sudo, instead of becoming $SUDO_UID
    int workload_output = -1;          ///< its standard output, borrowed; -1: this process's own
    std::vector<int> pids;             ///< processes, until the last of them has ended
    double duration_s = 0;             ///< 0: until the command has ended, all processes have, or `stop`
    int ready_fd = -1;                 ///< a byte is written here when everything is attached; the command begins after that
    const volatile std::sig_atomic_t *stop = nullptr; ///< ends the run when it isn't zero; may be nullptr
};

/// Errors: not_found, for a number that is no process, or a thread's.
[[nodiscard]] Result<void> check_processes(const std::vector<int> &pids);

class Session {
  public:
    explicit Session(Observed whom);
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    /// Errors: not_found (no such process, which is named; no such program), those of Child::spawn() and invoking_user().
    [[nodiscard]] Result<void> open();
    [[nodiscard]] RunLoop &loop() { return loop_; }
    /// The command's; -1: there is none.
    [[nodiscard]] int child() const { return child_.pid(); }
    /// Who the command runs as: the owner of the files that it writes for us.
    [[nodiscard]] uint32_t owner() const;

    /// Everything is attached. Errors: the errno of the command's exec, in words; the descriptor can't be written.
    [[nodiscard]] Result<void> go();
    [[nodiscard]] uint64_t armed_ns() const { return armed_ns_; } ///< CLOCK_MONOTONIC, of go()
    /// Ends the command, if it runs on: "exited with status 3"; or of processes "the process has ended"; empty: neither.
    [[nodiscard]] std::string end();

    /// From go() to end(), or until now.
    [[nodiscard]] double seconds() const;
    /// CPU time of this process since go(): a start, which the verifier has its part in, may take longer than the run.
    [[nodiscard]] uint64_t cpu_ns() const;

  private:
    Observed whom_;
    std::optional<sys::User> user_;
    sys::Child child_;
    RunLoop loop_;
    uint64_t cpu_before_ns_, armed_ns_ = 0, ended_ns_ = 0;
};

} // namespace rawbpf::inline v0::session
