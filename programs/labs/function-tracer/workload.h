// Somebody who calls the traced functions: a child of the lab's own, or a command.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lab {

/// Calls user_open(), user_read() and user_write(), so many times, and through them vfs_open(), vfs_read() and vfs_write(). False
/// when one of them failed. `null`: a descriptor to write to.
bool call_them(uint64_t rounds, int null);

/// A child process that is stopped before its first step. Dropping it ends it.
class Workload {
  public:
    /// A child that does call_them().
    static Workload calls(uint64_t rounds);
    /// A command, as execvp(3) finds it.
    static Workload command(const std::vector<std::string> &words);
    Workload() = default;
    Workload(Workload &&other) noexcept;
    Workload &operator=(Workload &&other) noexcept;
    ~Workload();

    [[nodiscard]] int pid() const { return pid_; } ///< -1: there is none, or it couldn't be started
    void go() const;
    [[nodiscard]] bool ended();
    /// Once ended: its exit status, 128 + the signal that ended it.
    [[nodiscard]] int status() const { return status_; }

  private:
    template <class Work> static Workload start(Work work);
    int pid_ = -1, status_ = 0;
    bool ended_ = false;
};

} // namespace lab
