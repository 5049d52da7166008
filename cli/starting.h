// A start that takes over a second says what it is at, and so does an end.
//
//      Starting starting(who, quiet);
//      ...                                    LongStep everywhere below
//      starting.over();
//
//      on a terminal     rawbpf trace: attaching: 1,200 of 5,000 functions, 3 s        a line that changes, and goes at the end
//      else              rawbpf trace: attaching: 1,200 of 5,000 functions, 1 s        once
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/long_step.h"
#include "runtime/sys/ticker.h"

namespace rawbpf::inline v0::cli {

/// Which text when. PURE.
class StartLine {
  public:
    static constexpr uint64_t kPatienceNs = 1'000'000'000, kEachNs = 200'000'000;
    StartLine(std::string who, bool terminal, uint64_t start_ns)
        : who_(std::move(who)), terminal_(terminal), start_ns_(start_ns) {}
    /// What is to be written at that time; often nothing. `columns`: the terminal's width.
    [[nodiscard]] std::string at(uint64_t now_ns, const LongStep::State &step, uint32_t columns = 80);
    /// When there may be something again; UINT64_MAX: never.
    [[nodiscard]] uint64_t next_ns() const;
    /// What takes the line away, if there is one.
    [[nodiscard]] std::string away();

  private:
    std::string who_;
    bool terminal_, shown_ = false;
    uint64_t start_ns_, last_ns_ = 0;
};

/// It on standard error, until it is dropped or over(). By a thread, as what takes long may be one system call.
class Starting {
  public:
    Starting(std::string who, bool quiet);
    ~Starting() { over(); }
    Starting(const Starting &) = delete;
    Starting &operator=(const Starting &) = delete;
    void over();

  private:
    uint64_t look();
    std::unique_ptr<StartLine> line_; ///< nullptr: quiet, or over
    std::unique_ptr<sys::Ticker> ticker_;
};

} // namespace rawbpf::inline v0::cli
