// A text in the laboratory's language -> an Experiment. PURE.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "programs/experiment/experiment.h"

namespace rawbpf::inline v0::experiment {

/// `--set NAME=VALUE`, for one run.
struct Setting {
    std::string name, value;
    friend bool operator==(const Setting &, const Setting &) = default;
};

/// What parse() returns. True when nothing is wrong.
struct Parsed {
    Experiment experiment;
    Mistakes mistakes;
    [[nodiscard]] explicit operator bool() const { return !mistakes.any(); }
};

/// Reads a text, with the settings in place of the parameters' own values. A setting of a parameter that there isn't is a mistake
/// without a line. Works in time proportional to the text.
[[nodiscard]] Parsed parse(std::string_view text, std::string_view name, const std::vector<Setting> &settings = {});

/// The words of a command as a shell would cut them: blanks, quotes, backslashes; nothing is expanded. False: a quote that is
/// never closed.
[[nodiscard]] bool split_command(std::string_view text, std::vector<std::string> &out);

} // namespace rawbpf::inline v0::experiment
