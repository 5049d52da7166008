// A run (programs/session/run_report.h) in words on standard error: while it starts, while its rest is written, at its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/console.h"
#include "cli/options.h"
#include "cli/running.h"
#include "cli/starting.h"
#include "programs/session/run_report.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::cli {

/// The news that every run has. `News`: the tool's own, made of session::RunNews; who inherits from this adds what that one adds.
template <class News> class NewsInWords : public News {
  public:
    /// `what`: "events".
    NewsInWords(std::string who, std::string_view what, bool quiet)
        : who_(std::move(who)), what_(what), quiet_(quiet), starting_(who_, quiet) {}
    void note(std::string_view text) override {
        if (!quiet_) say(format("{}: {}\n", who_, text));
    }
    void over() override { rest_.emplace(who_, what_, quiet_); }
    bool go_on(uint64_t waiting) override { return rest_->go_on(waiting); }

  protected:
    const std::string who_;
    const std::string_view what_;
    const bool quiet_;
    Starting starting_; ///< to be over when everything is attached

  private:
    std::optional<PrintingRest> rest_;
};

/// The ledger, below what would make stacks whole. `noun`: what was counted, "event".
void say_ledger(std::string_view who, const session::RunEnd &end, std::string_view noun);
/// Behind it, with -v: what was learnt of interpreters.
void say_languages(const session::RunEnd &end);
/// What comes after it: the run's warnings, and how the command or the processes ended.
void say_warnings(std::string_view who, const Arguments &a, const session::RunEnd &end);

} // namespace rawbpf::inline v0::cli
