// Where rendered text goes: a descriptor through one buffer, or a string in tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::render {

/// A buffered sink. Thread-compatible. The first error stays: later writes are dropped, and flush() returns it again, so that
/// a renderer can write without asking and the caller asks once a batch.
class Writer {
  public:
    /// Writes to `fd`, which the caller keeps open; `name` stands in error messages ("standard output", "x.svg").
    explicit Writer(int fd, std::string name = "standard output") : fd_(fd), name_(std::move(name)) {}
    /// Collects everything in `into`.
    explicit Writer(std::string &into) : into_(&into) {}
    Writer(const Writer &) = delete;
    Writer &operator=(const Writer &) = delete;

    /// The text not yet written: append to it, then call commit().
    [[nodiscard]] std::string &text() { return into_ ? *into_ : buffer_; }
    /// Writes the buffer out when it has grown large; call it once a line or record.
    void commit() {
        if (buffer_.size() >= kFlushAt) (void)flush(); // the error stays and is returned by the caller's own flush()
    }
    void write(std::string_view part) {
        text().append(part);
        commit();
    }
    /// Writes out all that is buffered. Errors: io and whatever write(2) gives; os is EPIPE when the reader has gone.
    [[nodiscard]] Result<void> flush();
    /// Bytes handed over so far, buffered ones included.
    [[nodiscard]] uint64_t bytes() const { return written_ + (into_ ? into_->size() : buffer_.size()); }

  private:
    static constexpr size_t kFlushAt = 64 << 10;
    int fd_ = -1;
    std::string name_;
    std::string *into_ = nullptr;
    std::string buffer_;
    uint64_t written_ = 0;
    bool failed_ = false;
    Error error_;
};

} // namespace rawbpf::inline v0::render
