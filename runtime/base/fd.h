// SPDX-License-Identifier: MIT
// A file descriptor with one owner. Almost every kernel object of BPF (map, program, link, BTF, event) lives as long as
// somebody holds its descriptor, so who owns the fd owns the object: drop the fd and the kernel frees the object.
#pragma once

#include <utility>

namespace rawbpf::inline v0 {

/// close(2) by sys::invoke(); defined in runtime/sys/invoke.cpp.
void close_fd(int fd) noexcept;

/// Move-only owner of a file descriptor; closes it when dropped.
class [[nodiscard]] Fd {
  public:
    /// No descriptor (-1); or takes a descriptor over, negative: none.
    ///@{
    Fd() = default;
    explicit Fd(int fd) noexcept : fd_(fd) {}
    ///@}
    /// Takes the other one's descriptor, which then has none; one that is held here is closed.
    ///@{
    Fd(Fd &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd &operator=(Fd &&other) noexcept {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    ///@}
    Fd(const Fd &) = delete;
    Fd &operator=(const Fd &) = delete;
    ~Fd() { reset(); }

    /// The descriptor, which stays owned here; -1: none.
    [[nodiscard]] int get() const noexcept { return fd_; }
    /// True when a descriptor is held.
    explicit operator bool() const noexcept { return fd_ >= 0; }
    /// Gives the descriptor away; the caller closes it. -1: there was none.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
    /// Closes the descriptor, if one is held.
    void reset() noexcept {
        if (fd_ >= 0) close_fd(std::exchange(fd_, -1));
    }

  private:
    int fd_ = -1;
};

} // namespace rawbpf::inline v0
