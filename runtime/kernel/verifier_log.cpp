// Reads the verifier's log. The important part is behind the last instruction.
//
// Every line is of one kind:
//
//      "; text @ file:line"                 source of what follows
//      "12: (79) r1 = *(u64 *)(r1 +0) ; R1_w=scalar()"   an instruction; since 5.18 with the registers that it changed
//      "12: R1=ctx() R10=fp0", "from 3 to 7: R0=..."     all registers; before 5.18 also with a leading blank
//      "processed 6 insns ...", "stack depth 8" ...      sums, at the end
//      anything else                        the reason, if no instruction follows
//
// The message about the last instruction often has several lines: the first names the fault and the others its numbers; all of
// them are kept. Checks that run before any instruction is simulated (jumps, unreachable code) give only a reason, which names
// the instruction itself ("unreachable insn 3").
//
// The words are those of kernel/bpf/verifier.c, 5.10 to 7.3; in 7.3 its report follows the old text.
#include "runtime/base/format.h"
#include "runtime/kernel/verifier_lines.h"

#include <array>

namespace rawbpf::inline v0 {
namespace {

using verifier_log::digit;
using verifier_log::Lines;
using verifier_log::take_number;
using verifier_log::trimmed;

// Notes between instructions and sums at the end: never a reason.
bool is_note(std::string_view line) {
    constexpr std::string_view kStarts[] = {
        "processed ",      "verification time", "stack depth",    "insns processed", "func#",      "mark_precise", "last_idx",
        "regs=",           "parent didn't",     "parent already", "propagating",     "from ",      "caller:",      "callee:",
        "returning from",  "to caller",         "cur state",      "old state",       "arg#",       "Func#",        "Validating ",
        "Global function", "live regs",         "Live regs",      "total_states",    "max_states", "peak_states"};
    for (std::string_view start : kStarts)
        if (line.starts_with(start)) return true;
    // Of level 2: "frame 0: propagating r7,r9" (6.18), "(65) frame 0 insn 63 +written -8" (6.18)
    if (line[0] == '(' && line.find(") frame ") != std::string_view::npos) return true;
    // Registers only: "R1=ctx() R10=fp0", "frame1: R0=..."
    if (line.starts_with("frame"))
        return line.find(": propagating ") != std::string_view::npos || line.find(": R") != std::string_view::npos ||
               line.find(": r") != std::string_view::npos;
    size_t i = 1;
    if (line.size() < 4 || line[0] != 'R' || !digit(line[1])) return false;
    while (i < line.size() && digit(line[i])) ++i;
    if (i < line.size() && line[i] == '_') // R1_w=
        while (i < line.size() && line[i] != '=' && line[i] != ' ') ++i;
    return i < line.size() && line[i] == '=';
}

// The registers as last seen.
struct Registers {
    std::array<std::string, 11> value;

    // What a helper or kernel function leaves of the caller's registers: r1 to r5 are lost, and the log doesn't say so.
    void lose_arguments() {
        for (size_t number = 1; number <= 5; ++number) value[number].clear();
    }

    // Every "R1=value" or "R1_w=value" in the text; a value's parentheses may hold blanks.
    void update(std::string_view text, bool all) {
        if (all) value.fill({});
        for (size_t i = 0; i + 2 < text.size(); ++i) {
            if (text[i] != 'R' || !digit(text[i + 1]) || (i > 0 && text[i - 1] != ' ')) continue;
            std::string_view rest = text.substr(i + 1);
            int number = take_number(rest);
            if (!rest.empty() && rest[0] == '_')
                while (!rest.empty() && rest[0] != '=' && rest[0] != ' ') rest.remove_prefix(1);
            if (number < 0 || number > 10 || rest.empty() || rest[0] != '=') continue;
            size_t end = 1, depth = 0;
            while (end < rest.size() && (depth > 0 || rest[end] != ' ')) {
                if (rest[end] == '(') ++depth;
                if (rest[end] == ')' && depth > 0) --depth;
                ++end;
            }
            value[static_cast<size_t>(number)] = rest.substr(1, end - 1);
            i = static_cast<size_t>(rest.data() - text.data()) + end - 1;
        }
    }
    [[nodiscard]] std::string text() const {
        std::string out;
        for (size_t i = 0; i < value.size(); ++i)
            if (!value[i].empty()) append(out, "{}R{}={}", out.empty() ? "" : " ", i, value[i]);
        return out;
    }
};

// "; text @ file.c:12" -> the parts
void read_source(std::string_view line, VerifierReport &report) {
    std::string_view text = trimmed(line.substr(1));
    report.file.clear();
    report.line = 0;
    size_t at = text.rfind(" @ ");
    if (at != std::string_view::npos) {
        std::string_view place = text.substr(at + 3);
        size_t colon = place.rfind(':');
        if (colon != std::string_view::npos) {
            std::string_view digits = place.substr(colon + 1);
            int number = take_number(digits);
            if (number > 0 && digits.empty()) {
                report.file = place.substr(0, colon);
                report.line = static_cast<uint32_t>(number);
                text = trimmed(text.substr(0, at));
            }
        }
    }
    report.source = text;
}

// The instruction that a reason names itself: "... insn 3", "... at insn 3", "... from insn 3 to 5".
int named_instruction(std::string_view reason) {
    size_t at = reason.find("insn ");
    if (at == std::string_view::npos) return -1;
    std::string_view rest = reason.substr(at + 5);
    if (rest.starts_with("#")) rest.remove_prefix(1);
    return take_number(rest);
}

// "if r2 != r1 goto pc-5 infinite loop detected at insn 4" -> what follows the jump's target.
std::string_view split_jump(std::string_view instruction) {
    size_t at = instruction.find("goto pc");
    if (at == std::string_view::npos) return {};
    std::string_view rest = instruction.substr(at + 7);
    if (!rest.starts_with('+') && !rest.starts_with('-')) return {};
    rest.remove_prefix(1);
    return take_number(rest) < 0 ? std::string_view() : trimmed(rest);
}

} // namespace

bool VerifierReport::poisoned() const { // a CO-RE relocation's, or a missing kernel function's
    return reason.find("195896080") != std::string::npos || reason.find("unknown#2002") != std::string::npos;
}

std::string VerifierReport::named_registers() const {
    // "r1 = *(u64 *)(r0 +0)", "w0 = 5", "R3 unbounded memory access"
    bool named[11] = {}, any = false;
    for (std::string_view text : {std::string_view(instruction), std::string_view(reason)})
        for (size_t i = 0; i + 1 < text.size(); ++i) {
            if ((text[i] != 'r' && text[i] != 'w' && text[i] != 'R') || !digit(text[i + 1])) continue;
            if (i > 0 && ((text[i - 1] >= 'a' && text[i - 1] <= 'z') || digit(text[i - 1]) || text[i - 1] == '_')) continue;
            std::string_view rest = text.substr(i + 1);
            const int number = take_number(rest);
            if (number >= 0 && number <= 10) named[number] = any = true;
        }
    Registers all;
    all.update(registers, true);
    for (size_t i = 0; i < all.value.size(); ++i)
        if (any && !named[i]) all.value[i].clear();
    return all.text();
}

VerifierReport read_verifier_log(std::string_view log) {
    VerifierReport report;
    Registers registers;
    VerifierReport pending; // source of the instruction to come
    std::string_view line;
    Lines lines{log};
    std::string_view arguments;
    bool done = false;
    while (!done && lines.next(line)) {
        if (line.starts_with("Verification failed")) {
            verifier_log::read_report(log.substr(static_cast<size_t>(line.data() - log.data())), report);
            break;
        }
        std::string_view text = trimmed(line);
        if (text.empty()) continue;
        if (text[0] == ';') {
            read_source(text, pending);
            continue;
        }
        std::string_view rest = text;
        int number = take_number(rest);
        if (number >= 0 && rest.starts_with(": (")) { // an instruction: everything said before was not the reason
            // Of a call within the program (call pc+3) the callee has them, and the log tells both states.
            if (report.instruction.starts_with("call ") && !report.instruction.starts_with("call pc")) registers.lose_arguments();
            report.insn = number;
            report.reason.clear();
            rest.remove_prefix(2);
            size_t close = rest.find(')');
            if (close != std::string_view::npos) rest.remove_prefix(close + 1);
            size_t comment = rest.find(" ; ");
            if (comment == std::string_view::npos) comment = rest.find("\t; ");
            report.instruction = trimmed(rest.substr(0, comment));
            // A jump's line isn't ended: the state at the target, or a complaint, goes on behind it.
            if (std::string_view behind = split_jump(report.instruction); !behind.empty()) {
                std::string_view state = behind;
                if (take_number(state) >= 0 && state.starts_with(": "))
                    registers.update(state.substr(2), true);
                else
                    report.reason = behind;
                report.instruction.resize(report.instruction.size() - behind.size());
                report.instruction = std::string(trimmed(report.instruction));
            }
            report.source = pending.source;
            report.file = pending.file;
            report.line = pending.line;
            if (comment != std::string_view::npos) registers.update(rest.substr(comment + 3), false);
            continue;
        }
        if (number >= 0 && rest.starts_with(": ")) {
            registers.update(rest.substr(2), true);
            continue;
        }
        if (is_note(text)) {
            // What is said of a global function's parameters is a note, unless nothing else is said.
            if (text.starts_with("arg#") || text.starts_with("Arg#")) arguments = text;
            if (text.starts_with("from ") || text[0] == 'R') registers.update(text, true);
            if (text.starts_with("processed ")) done = lines.rest.find("Verification failed") == std::string_view::npos;
            continue;
        }
        if (!report.reason.empty()) report.reason += "; ";
        report.reason += text.substr(0, text.find("processed ")); // some reasons lack the end of their line
    }
    report.registers = registers.text();
    if (report.reason.empty()) report.reason = arguments;
    if (report.reason.starts_with("Caller passes invalid args") && !arguments.empty())
        report.reason = format("{}; {}", arguments, report.reason);
    // Where it stood when it gave up says nothing: another instruction could have been the millionth.
    if (report.reason.starts_with("BPF program is too large") || report.reason.starts_with("The sequence of")) {
        const std::string reason = std::move(report.reason);
        report = {};
        report.reason = reason;
    }
    int named = named_instruction(report.reason);
    if (named >= 0 && named != report.insn && !report.structured) {
        report.insn = named;
        report.instruction.clear();
        report.source.clear();
        report.file.clear();
        report.line = 0;
    }
    if (report.hint.empty()) report.hint = verifier_hint(report.reason);
    return report;
}

} // namespace rawbpf::inline v0
