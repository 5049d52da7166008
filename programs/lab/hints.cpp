#include "programs/lab/hints.h"

#include <algorithm>

#include "programs/experiment/evaluate.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::lab {
namespace {

std::string_view trimmed(std::string_view text) {
    const size_t from = text.find_first_not_of(" \t\r");
    if (from == std::string_view::npos) return {};
    return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

// "# word: rest" -> the rest; false: another line. A word may have a value behind it: "# why 0: rest".
bool remark(std::string_view line, std::string_view word, std::string_view &value, std::string_view &rest) {
    line = trimmed(line);
    if (!line.starts_with('#')) return false;
    line = trimmed(line.substr(1));
    if (!line.starts_with(word)) return false;
    line.remove_prefix(word.size());
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || (colon != 0 && line[0] != ' ')) return false;
    value = trimmed(line.substr(0, colon));
    rest = trimmed(line.substr(colon + 1));
    return true;
}

// "a | b" -> "a", "b"
std::vector<std::string> alternatives(std::string_view text) {
    std::vector<std::string> out;
    while (true) {
        const size_t bar = text.find('|');
        out.emplace_back(trimmed(text.substr(0, bar)));
        if (bar == std::string_view::npos) return out;
        text.remove_prefix(bar + 1);
    }
}

} // namespace

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> out;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        out.push_back(line);
    }
    return out;
}

Terms terms_of(std::string_view check) {
    Terms out;
    bool below = false; // an instruction that is wanted
    std::string_view value, rest;
    for (std::string_view line : lines_of(check)) {
        if (remark(line, "at", value, rest)) {
            if (below) out.instructions.back().at.emplace_back(rest);
            continue;
        }
        below = remark(line, "instruction", value, rest);
        if (below) out.instructions.push_back({alternatives(value), std::string(rest), {}});
        if (remark(line, "needs", value, rest) && rest == "kernel") out.kernel = true;
        if (!remark(line, "verify", value, rest)) continue;
        constexpr std::string_view kRefused = "refused ";
        if (rest == "no") out.verified = false;
        if (rest.starts_with(kRefused)) out.refused = rest.substr(kRefused.size());
    }
    return out;
}

Hint hint_of(const std::vector<std::string_view> &check, uint32_t line, std::string_view value) {
    Hint out;
    if (line == 0 || line > check.size()) return out;
    size_t first = line - 1; // index of the expectation; the comments end above it
    while (first > 0 && trimmed(check[first - 1]).starts_with('#')) --first;
    for (size_t i = first; i + 1 < line; ++i) {
        std::string_view when, rest;
        if (remark(check[i], "at", when, rest) && when.empty()) out.at.emplace_back(rest);
        if (!remark(check[i], "why", when, rest)) continue;
        if (when.empty() ? out.exact || !out.why.empty() : when != value || out.exact) continue;
        out.exact = !when.empty();
        out.why = rest;
    }
    return out;
}

uint32_t line_with(const std::vector<std::string_view> &lines, const std::vector<std::string> &texts) {
    for (const std::string &text : texts)
        for (size_t i = 0; i < lines.size(); ++i)
            if (lines[i].find(text) != std::string_view::npos) return static_cast<uint32_t>(i + 1);
    return 0;
}

std::string sentence_of(const experiment::Failure &failure, std::string &value) {
    std::string_view source = failure.source;
    constexpr std::string_view kExpect = "expect ", kEqual = " == ";
    source = trimmed(source);
    if (source.starts_with(kExpect)) source = trimmed(source.substr(kExpect.size()));
    const size_t equal = source.find(kEqual);
    const bool simple = equal != std::string_view::npos && source.find("&&") == std::string_view::npos &&
                        source.find("||") == std::string_view::npos;
    value.clear();
    if (simple) {
        const std::string_view left = trimmed(source.substr(0, equal)), right = trimmed(source.substr(equal + kEqual.size()));
        for (const auto &part : failure.parts)
            if (part.first == left) value = experiment::number_text(part.second);
        if (!value.empty()) return format("{}: expected {}, got {}", left, right, value);
    }
    std::string out = format("expected {}", source);
    std::string_view before = ": ";
    for (const auto &part : failure.parts) {
        append(out, "{}{} is {}", before, part.first, experiment::number_text(part.second));
        before = ", ";
    }
    if (failure.parts.empty() && !failure.found.empty()) append(out, ": {}", failure.found);
    return out;
}

} // namespace rawbpf::inline v0::lab
