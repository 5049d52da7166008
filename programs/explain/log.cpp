// The kernel's log becomes a walk.
//
//      5: (15) if r0 == 0x0 goto pc+7     ; R0=0           a step after the one before it
//      from 5 to 13: R0=0 R10=fp0                          the other side of the last branch at 5 that is still open
//      from 5 to 13: safe                                  ... which was known before: pruned
//      13: R0=0 R1=ctx() R10=fp0                           all registers (before 5.18 instead of the comment)
//      frame1: R1=scalar() ...                             of a function that was called
//
// A log of level 2 has every path; one of level 1 only the last, as the kernel forgets a path that was good. Where a log was cut,
// the beginning of the way is missing, and Trace::whole says so. Linux 5.10 marks registers that it read or wrote ("R1_w=inv5"):
// the marks are dropped, and "inv" is written as later kernels do, "scalar".
#include <algorithm>
#include <map>

#include "programs/explain/trace.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/verifier_lines.h"
#include "runtime/kernel/verifier_log.h"

namespace rawbpf::inline v0::explain {

namespace {

using verifier_log::take_number;
using verifier_log::trimmed;

constexpr size_t kMostLogSteps = 1 << 21;

// "inv5" -> "5", "invP(id=0)" -> "scalar(id=0)", "inv(umax=3)" -> "scalar(umax=3)".
std::string modern(std::string_view value) {
    for (std::string_view old : {"invP", "inv"}) {
        if (!value.starts_with(old)) continue;
        const std::string_view rest = value.substr(old.size());
        if (rest.starts_with('(')) return "scalar" + std::string(rest);
        if (!rest.empty() && (rest[0] == '-' || verifier_log::digit(rest[0]))) return std::string(rest);
    }
    return std::string(value);
}

class LogReader {
  public:
    LogReader(const ProgramSpec &program, Trace &out) : program_(program), out_(out) {
        out_.visits.assign(program.insns.size(), 0);
    }

    void line(std::string_view text) {
        std::string_view rest = text;
        if (rest.starts_with("from ")) {
            rest.remove_prefix(5);
            other_side(rest);
            return;
        }
        const int number = take_number(rest);
        if (number >= 0 && rest.starts_with(": (")) {
            instruction(static_cast<uint32_t>(number), rest.substr(2));
        } else if (number >= 0 && rest.starts_with(": safe")) {
            if (at_) out_.steps[at_].end = StepEnd::pruned;
        } else if (number >= 0 && rest.starts_with(": ")) {
            values(rest.substr(2));
        } else if (rest.starts_with("frame") || (rest.size() > 3 && rest[0] == 'R' && verifier_log::digit(rest[1]))) {
            values(rest);
        } else if (rest.starts_with("processed ")) {
            rest.remove_prefix(sizeof "processed " - 1);
            out_.processed = static_cast<uint32_t>(std::max(take_number(rest), 0));
            if (const size_t total = rest.find("total_states "); total != std::string_view::npos) {
                rest.remove_prefix(total + sizeof "total_states " - 1);
                out_.states = static_cast<uint32_t>(std::max(take_number(rest), 0));
            }
        }
    }
    [[nodiscard]] size_t foreign() const { return foreign_; }
    [[nodiscard]] size_t told() const { return told_; }
    [[nodiscard]] uint32_t at() const { return at_; }
    [[nodiscard]] std::string_view foreign_text() const { return foreign_text_; }

  private:
    void instruction(uint32_t number, std::string_view rest) {
        ++told_;
        unsigned code = 0;
        const size_t close = std::min(rest.find(')'), rest.size());
        for (char c : rest.substr(1, close > 0 ? close - 1 : 0)) {
            const int digit = verifier_log::digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
            code = code * 16 + static_cast<unsigned>(digit);
        }
        if (number >= program_.insns.size() || program_.insns[number].code != code) {
            if (foreign_++ == 0) foreign_text_ = rest;
            return;
        }
        if (out_.steps.size() >= kMostLogSteps) return;
        if (at_ == 0 && number != 0 && out_.steps.size() == 1) out_.whole = false;
        close_branch(number);
        const Insn &insn = program_.insns[number];
        TraceStep step;
        step.insn = number;
        step.parent = at_;
        step.frame = static_cast<uint8_t>(std::min<size_t>(frame_after(at_), 255));
        if (insn.code == 0x95) step.end = StepEnd::exit;
        out_.steps.push_back(step);
        at_ = static_cast<uint32_t>(out_.steps.size() - 1);
        ++out_.visits[number];
        const size_t comment = rest.find("; ", close);
        if (comment != std::string_view::npos) values(rest.substr(comment + 2));
    }
    // The frame that the instruction behind a step is in.
    [[nodiscard]] size_t frame_after(uint32_t step) const {
        if (step == 0) return 0;
        const TraceStep &before = out_.steps[step];
        const Insn &insn = program_.insns[before.insn];
        if (insn.code == 0x85 && insn.src == 1) return size_t(before.frame) + 1;
        if (insn.code == 0x95) return before.frame > 0 ? before.frame - 1u : 0u;
        return before.frame;
    }
    [[nodiscard]] bool is_branch(uint32_t insn) const {
        const Insn &i = program_.insns[insn];
        const unsigned kind = i.code & 7, operation = i.code & 0xf0;
        return (kind == 5 || kind == 6) && operation != 0 && operation != 0x80 && operation != 0x90;
    }
    // Which way a branch went is told by what follows.
    void close_branch(uint32_t next) {
        if (at_ == 0) return;
        TraceStep &before = out_.steps[at_];
        if (before.end == StepEnd::exit) before.end = StepEnd::next; // it went on: the end of a function
        if (!is_branch(before.insn)) return;
        before.taken = next != before.insn + 1;
        if (before.end == StepEnd::next) before.end = StepEnd::decided;
    }
    // "5 to 13: R0=0", "5 to 13: safe"
    void other_side(std::string_view rest) {
        const int from = take_number(rest);
        if (from < 0 || !rest.starts_with(" to ")) return;
        rest.remove_prefix(4);
        const int to = take_number(rest);
        if (to < 0) return;
        uint32_t branch = at_;
        while (branch != 0 &&
               (out_.steps[branch].insn != static_cast<uint32_t>(from) || out_.steps[branch].end == StepEnd::split))
            branch = out_.steps[branch].parent;
        if (branch == 0) {
            at_ = 0; // before the log's beginning
            out_.whole = out_.steps.size() > 1 && out_.whole && from == 0;
            return;
        }
        if (out_.steps.size() >= kMostLogSteps) return;
        out_.steps[branch].end = StepEnd::split;
        TraceStep step = out_.steps[branch];
        step.taken = !step.taken;
        step.known_count = 0;
        out_.steps.push_back(step);
        at_ = static_cast<uint32_t>(out_.steps.size() - 1);
        const size_t colon = rest.find(':');
        const std::string_view behind = colon == std::string_view::npos ? std::string_view() : trimmed(rest.substr(colon + 1));
        if (behind == "safe")
            out_.steps[at_].end = StepEnd::pruned;
        else
            values(behind);
    }
    // "R1=ctx() R10=fp0 fp-8=mmmmmmmm", with "frame1: " in front.
    void values(std::string_view text) {
        if (at_ == 0) return;
        TraceStep &step = out_.steps[at_];
        size_t frame = frame_after(at_);
        if (step.known_count == 0) step.known = static_cast<uint32_t>(out_.known.size());
        if (step.known + step.known_count != out_.known.size()) return; // another step came between
        while (!text.empty()) {
            text = trimmed(text);
            size_t end = 0, depth = 0;
            while (end < text.size() && (depth > 0 || text[end] != ' ')) {
                if (text[end] == '(') ++depth;
                if (text[end] == ')' && depth > 0) --depth;
                ++end;
            }
            std::string_view word = text.substr(0, end);
            text.remove_prefix(end);
            if (word.starts_with("frame") && word.ends_with(':')) {
                word.remove_prefix(5);
                frame = static_cast<size_t>(std::max(take_number(word), 0));
                continue;
            }
            int place = 0;
            if (word.starts_with('R')) {
                word.remove_prefix(1);
                place = take_number(word);
                if (place < 0 || place > 10) continue;
            } else if (word.starts_with("fp-")) {
                word.remove_prefix(3);
                place = take_number(word);
                if (place <= 0 || place > 512) continue;
                place = -place;
            } else {
                continue;
            }
            const size_t equals = word.find('=');
            if (equals == std::string_view::npos || step.known_count == UINT16_MAX || frame > 8) continue;
            out_.known.push_back({static_cast<int16_t>(place), static_cast<uint8_t>(frame), modern(word.substr(equals + 1))});
            ++step.known_count;
        }
    }

    const ProgramSpec &program_;
    Trace &out_;
    uint32_t at_ = 0; ///< the last step
    size_t told_ = 0, foreign_ = 0;
    std::string_view foreign_text_;
};

} // namespace

Result<Trace> trace_of_log(std::string_view log, const ProgramSpec &program) {
    Trace out;
    out.own = false;
    LogReader reader(program, out);
    verifier_log::Lines lines{log};
    std::string_view line;
    while (lines.next(line)) {
        if (line.starts_with("Verification failed")) break;
        reader.line(trimmed(line));
    }
    if (reader.foreign() > 0)
        return Unexpected(
            make_error(Errc::bad_input,
                       format("the log is not of program {}: {} of its {} instructions differ, the first is `{}`", program.name,
                              reader.foreign(), reader.told(), trimmed(reader.foreign_text().substr(0, 60))),
                       "--prog NAME chooses the program; the log has to be of the very object"));
    const VerifierReport report = read_verifier_log(log);
    if (reader.told() == 0 && report.reason.empty())
        return Unexpected(make_error(Errc::bad_input, "there is no instruction and no verdict in the log",
                                     "`rawbpf load -v` prints a log; so do libbpf and bpftool, with -d"));
    out.log = std::string(log);
    if (report.reason.empty()) {
        out.outcome = out.processed ? verifier::Outcome::accepted : verifier::Outcome::undecided;
        if (!out.processed) out.reason = "the log has no end";
        return out;
    }
    out.outcome = verifier::Outcome::refused;
    out.reason = report.reason;
    out.insn = report.insn;
    out.last = reader.at();
    if (out.last) out.steps[out.last].end = StepEnd::refused;
    return out;
}

} // namespace rawbpf::inline v0::explain
