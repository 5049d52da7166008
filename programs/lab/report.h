// What a check found, for people and for graders. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rawbpf::inline v0::lab {

struct Finding {
    /// "file" (empty, too large, of another lesson), "assembly" (a mistake in the text), "names" (the check asks for what isn't
    /// there), "refused" (by the verifier), "fault" (while it ran), "expectation", "script", "limit".
    std::string_view kind;
    std::string sentence; ///< may have lines
    std::string why;      ///< the author's words; may be empty
    uint32_t line = 0;    ///< of the student's file; 0: not known
    std::string hint;     ///< what helps; may be empty
};

struct Report {
    uint32_t number = 0; ///< of the lesson
    std::string lesson;  ///< "03-maps"
    std::string file;    ///< "lab.asm"
    std::vector<Finding> findings;
    size_t expectations = 0, failed = 0;
    bool scripted = false; ///< judged by a script: there are no expectations to count
    [[nodiscard]] bool passed() const { return findings.empty(); }
};

/// What is wrong, why, and where, without the hint.
[[nodiscard]] std::string finding_text(const Report &report, const Finding &finding);
/// Lines; the last one is the verdict.
[[nodiscard]] std::string report_text(const Report &report);
/// JSON lines: "finding" each, and a "result".
[[nodiscard]] std::string report_json(const Report &report);

} // namespace rawbpf::inline v0::lab
