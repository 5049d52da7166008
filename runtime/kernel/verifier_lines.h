// Parses lines of the verifier's log. Private to verifier_log.cpp and verifier_report.cpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/kernel/verifier_log.h"

namespace rawbpf::inline v0::verifier_log {

inline bool digit(char c) { return c >= '0' && c <= '9'; }

inline std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
    return text;
}

/// The number at the start of the text, which is moved past it; -1 when there is none.
inline int take_number(std::string_view &text) {
    if (text.empty() || !digit(text[0])) return -1;
    int64_t value = 0;
    while (!text.empty() && digit(text[0])) {
        value = value * 10 + (text[0] - '0');
        if (value > 100'000'000) return -1;
        text.remove_prefix(1);
    }
    return static_cast<int>(value);
}

struct Lines {
    std::string_view rest;
    bool next(std::string_view &line) {
        if (rest.empty()) return false;
        size_t end = rest.find('\n');
        line = rest.substr(0, end);
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
        return true;
    }
};

/// The report of 7.3, from "Verification failed" on, into what the lines before it have said.
void read_report(std::string_view text, VerifierReport &report);

} // namespace rawbpf::inline v0::verifier_log
