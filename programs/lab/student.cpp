// Instructions in hex become lines for the assembler, `.8byte N`, each on its line of the file, so that a message about line 7 is
// about line 7.
#include "programs/lab/student.h"

#include "programs/lab/hints.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::lab {
namespace {

constexpr size_t kDigits = 16; // of an instruction

std::string_view without_comment(std::string_view line) { return line.substr(0, line.find('#')); }

int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char small = static_cast<char>(c | 0x20);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

// "07 00 00 00 05 00 00 00" -> 0x0000000500000007, as the bytes lie in memory.
std::string number_of(std::string_view digits) {
    std::string out = "0x";
    for (size_t i = kDigits; i > 0; i -= 2) out += digits.substr(i - 2, 2);
    return out;
}

void read_hex(experiment::Parsed &out) {
    experiment::Experiment &e = out.experiment;
    for (size_t i = 0; i < e.lines.size(); ++i) {
        std::string digits;
        const auto number = static_cast<uint32_t>(i + 1);
        const std::string_view line = without_comment(e.lines[i]);
        bool good = true;
        for (size_t at = 0; at < line.size() && good; ++at) {
            if (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') continue;
            good = digit_of(line[at]) >= 0;
            if (good)
                digits += line[at];
            else
                out.mistakes.add(e.lines, {number, static_cast<uint32_t>(at + 1)}, "this is no hex digit",
                                 "digits are 0 to 9 and a to f; a comment begins with #");
        }
        if (good && digits.size() != kDigits && digits.size() != 2 * kDigits && !digits.empty())
            out.mistakes.add(e.lines, {number, 1},
                             format("this line has {} hex digits, and an instruction has {}", digits.size(), kDigits),
                             "8 bytes, each of two digits; zeros are written, too");
        if (good && !digits.empty() && digits.size() % kDigits == 0)
            for (size_t at = 0; at < digits.size(); at += kDigits)
                append(e.assembly, "{}.8byte {}", at == 0 ? "" : "; ", number_of(std::string_view(digits).substr(at, kDigits)));
        e.assembly += '\n';
    }
}

} // namespace

bool is_program(std::string_view name) {
    return name.ends_with(".asm") || name.ends_with(".hex") || name.ends_with(".exp") || name.ends_with(".c");
}

bool says_anything(std::string_view text) {
    for (std::string_view line : lines_of(text)) {
        const size_t first = line.find_first_not_of(" \t\r");
        if (first != std::string_view::npos && line[first] != '#' && !line.substr(first).starts_with("//")) return true;
    }
    return false;
}

experiment::Parsed student_experiment(std::string_view text, std::string_view name) {
    if (name.ends_with(".exp")) {
        experiment::Parsed out = experiment::parse(text, name);
        out.experiment.steps.clear();
        return out;
    }
    experiment::Parsed out;
    out.mistakes = experiment::Mistakes(std::string(name));
    experiment::Experiment &e = out.experiment;
    e.name = name;
    for (std::string_view line : lines_of(text)) e.lines.emplace_back(line);
    if (name.ends_with(".hex")) {
        read_hex(out);
    } else if (name.ends_with(".c")) {
        e.sources.push_back({.at = {1, 1}, .is_c = true, .path = {}, .text = std::string(text)});
    } else {
        e.assembly = text;
    }
    return out;
}

} // namespace rawbpf::inline v0::lab
