// Applies what explain proposes to assembly text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "asm/assemble.h"
#include "programs/explain/explanation.h"
#include "runtime/object/unit_object.h"

namespace rawbpf::test {

inline std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> out;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        out.emplace_back(text.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

/// The text with the remedy's lines in it; the text as it was where they have no place in it.
inline std::string mended(std::string_view text, const explain::Remedy &remedy) {
    std::vector<std::string> lines = lines_of(text);
    const size_t line = remedy.at.line;
    using How = explain::Remedy::How;
    if (remedy.how == How::declare) {
        std::erase_if(lines, [](const std::string &one) { return one.starts_with(".license"); });
        lines.insert(lines.begin(), remedy.lines.begin(), remedy.lines.end());
    } else if (line > 0 && line <= lines.size() && remedy.how == How::replace) {
        lines[line - 1] = remedy.lines.at(0);
    } else if (line > 0 && line <= lines.size() && remedy.how == How::append) {
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(line), remedy.lines.begin(), remedy.lines.end());
    } else if (line > 0 && line <= lines.size() && remedy.how == How::insert) {
        // In front of the instruction, behind a label that stands on its line: whoever jumps there comes by it, too.
        std::string &at = lines[line - 1];
        const size_t colon = at.find(": ");
        if (colon != std::string::npos && at.find(' ') > colon) {
            lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(line - 1), at.substr(0, colon + 1));
            lines[line] = lines[line].substr(colon + 2);
            lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(line), remedy.lines.begin(), remedy.lines.end());
        } else {
            lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(line - 1), remedy.lines.begin(), remedy.lines.end());
        }
    }
    std::string out;
    for (const std::string &one : lines) out += one + "\n";
    return out;
}

/// The object of assembly text; nothing: the assembler has something against it.
inline std::optional<ObjectSpec> assembled(std::string_view text) {
    const Assembled made = assemble(text);
    if (!made) return {};
    Result<ObjectSpec> spec = object_of(made.unit);
    if (!spec) return {};
    return std::move(*spec);
}

} // namespace rawbpf::test
