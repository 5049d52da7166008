// A file descriptor with one owner. Almost every kernel object of BPF (map, program, link, BTF, event) lives as long as
// somebody holds its descriptor, so who owns the fd owns the object: drop the fd and the kernel frees the object.
#pragma once

#include <utility>

namespace rawbpf::inline v0 {

/// close(2) through the choke point; defined in runtime/sys/choke.cpp.
void close_fd(int fd) noexcept;

/// Move-only owner of a file descriptor; closes it when dropped.
class [[nodiscard]] Fd {
  public:
    Fd() = default;
    explicit Fd(int fd) noexcept : fd_(fd) {}
    Fd(Fd &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd &operator=(Fd &&other) noexcept {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    Fd(const Fd &) = delete;
    Fd &operator=(const Fd &) = delete;
    ~Fd() { reset(); }

    [[nodiscard]] int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    /// Gives the descriptor away; the caller closes it.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
    void reset() noexcept {
        if (fd_ >= 0) close_fd(std::exchange(fd_, -1));
    }

  private:
    int fd_ = -1;
};

} // namespace rawbpf::inline v0
