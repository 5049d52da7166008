// The report that Linux 7.3 adds to the verifier's log: a heading, and sections whose text is indented and wrapped at column 100.
//
//      Verification failed: Register Type Safety: Invalid dereference
//
//      Reason:
//        R0 may be NULL here (a nullable map value pointer). ...
//
//      At:
//        on_exec @ prog.bpf.c:12:5                       or "prog.bpf.c:12:5", or "insn 7" without line information
//        Source context:
//            11 |     __u64 *n = bpf_map_lookup_elem(&counts, &key);
//        >>> 12 |     *n += 1;
//               |     ^-- error: invalid dereference of R0 ...
//        Instruction context:
//            6 | (85) call bpf_map_lookup_elem#1
//        >>> 7 | (79) r1 = *(u64 *)(r0 +0)
//
//      Causal path:                                      a place as above for each step: branches taken, values changed
//        on_exec @ prog.bpf.c:9:9
//        ...
//      Suggestion:
//        Add a NULL check ...
//
// Only some errors have a report; the others have only the old lines. Text that doesn't look like this is skipped: the words
// are the kernel's (kernel/bpf/diagnostics.c) and may change.
#include "runtime/base/format.h"
#include "runtime/kernel/verifier_lines.h"

namespace rawbpf::inline v0::verifier_log {
namespace {

constexpr size_t kMostSteps = 64;

struct Position {
    std::string_view file;
    int line = -1, insn = -1;
    [[nodiscard]] std::string text() const { return line >= 0 ? format("{}:{}", file, line) : format("instruction {}", insn); }
};

// "on_exec @ prog.bpf.c:12:5", "insn 7"; anything else is no place.
bool read_place(std::string_view text, Position &out) {
    out = {};
    if (text.starts_with("insn ")) {
        text.remove_prefix(5);
        out.insn = take_number(text);
        return out.insn >= 0 && text.empty();
    }
    if (size_t at = text.find(" @ "); at != std::string_view::npos) text.remove_prefix(at + 3);
    const size_t column = text.rfind(':');
    const size_t line = column == std::string_view::npos || column == 0 ? column : text.rfind(':', column - 1);
    if (line == std::string_view::npos || line == 0 || line >= column) return false;
    std::string_view number = text.substr(line + 1, column - line - 1), rest = text.substr(column + 1);
    out.file = text.substr(0, line);
    out.line = take_number(number);
    return out.line >= 0 && number.empty() && take_number(rest) >= 0 && rest.empty();
}

void add_text(std::string &to, std::string_view line) {
    if (line.empty()) return;
    if (!to.empty()) to += ' ';
    to += line;
}

class Reader {
  public:
    explicit Reader(VerifierReport &report) : report_(report) {}

    void read(std::string_view text) {
        Lines lines{text};
        std::string_view line;
        while (lines.next(line) && !line.starts_with("processed ")) {
            if (line.starts_with("Verification failed")) {
                if (size_t colon = line.find(": "); colon != std::string_view::npos) heading_ = trimmed(line.substr(colon + 2));
                begin({});
            } else if (line.size() > 1 && line[0] != ' ' && line.back() == ':') {
                begin(line.substr(0, line.size() - 1));
            } else if (section_ == "Reason") {
                add_text(reason_, trimmed(line));
            } else if (section_ == "Suggestion") {
                add_text(suggestion_, trimmed(line));
            } else if (section_ == "At" || section_ == "Causal path") {
                read_step(trimmed(line));
            }
        }
        begin({});
        finish();
    }

  private:
    void begin(std::string_view section) {
        end_step();
        section_ = section;
    }

    void read_step(std::string_view line) {
        Position place;
        if (line.empty()) return;
        if (line == "Source context:" || line == "Instruction context:") {
            instructions_ = line[0] == 'I';
            annotating_ = false;
        } else if (line[0] == '|') { // under the line that is meant
            line = trimmed(line.substr(1));
            if (line.starts_with("^-- ")) {
                note_ = line.substr(4);
                annotating_ = true;
            } else if (annotating_) {
                add_text(note_, line);
            }
        } else if (line.starts_with(">>> ")) {
            annotating_ = false;
            read_marked(line.substr(4));
        } else if (read_place(line, place)) {
            end_step();
            place_ = place;
        }
    }

    // "12 |     *n += 1;" among the sources, "7 | (79) r1 = ..." among the instructions.
    void read_marked(std::string_view line) {
        if (section_ != "At") return;
        line = trimmed(line);
        const int number = take_number(line);
        line = trimmed(line);
        if (number < 0 || !line.starts_with('|')) return;
        line = trimmed(line.substr(1));
        if (!instructions_) {
            if (report_.source.empty()) report_.source = line;
            return;
        }
        if (report_.insn < 0) report_.insn = number;
        if (size_t end = line.find(") "); line.starts_with('(') && end != std::string_view::npos) line.remove_prefix(end + 2);
        if (report_.instruction.empty()) report_.instruction = trimmed(line);
    }

    void end_step() {
        if (section_ == "At") {
            if (place_.line > 0 && report_.line == 0) {
                report_.file = place_.file;
                report_.line = static_cast<uint32_t>(place_.line);
            }
            if (place_.insn >= 0 && report_.insn < 0) report_.insn = place_.insn;
        } else if (section_ == "Causal path" && !note_.empty() && report_.path.size() < kMostSteps) {
            report_.path.push_back(place_.text() + ": " + note_);
        }
        place_ = {};
        note_.clear();
        annotating_ = instructions_ = false;
    }

    void finish() {
        report_.structured = true;
        if (!reason_.empty()) {
            // The old complaint stays in front: it is what people search for.
            if (report_.reason.empty())
                report_.reason = heading_.empty() ? reason_ : heading_ + ": " + reason_;
            else
                report_.reason += ": " + reason_;
        }
        if (!suggestion_.empty()) report_.hint = suggestion_;
    }

    VerifierReport &report_;
    std::string_view section_;
    std::string heading_, reason_, suggestion_, note_;
    Position place_;
    bool annotating_ = false, instructions_ = false;
};

} // namespace

void read_report(std::string_view text, VerifierReport &report) { Reader(report).read(text); }

} // namespace rawbpf::inline v0::verifier_log
