// What is done, in the order of the lines.
//
//      workload COMMAND                          start it
//      wait [2s | workload]                      without: until Ctrl-C, the end of the workload, or -d
//      events [until N] [for 2s]                 show events as they come
//      every 1s [times N] { steps }              a block again and again
//      print MAP [as table|hist|log2|json] [top N]     print "words {value}"     clear MAP, MAP
//      set NAME = VALUE     set MAP[KEY] = VALUE
//      trigger FILE:FUNCTION [ARGUMENT]...       packet FILE|HEX [to PROGRAM] [times N]
//      run PROGRAM [FILE|HEX] [times N]
//      expect CONDITION     expect rejected "TEXT"     measure NAME = VALUE
#include "asm/nearest.h"
#include "programs/experiment/parsing.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {
namespace {

using Kind = Step::Kind;
struct StepRow {
    std::string_view word;
    Kind kind;
};
constexpr StepRow kSteps[] = {
    {"workload", Kind::workload}, {"wait", Kind::wait},     {"events", Kind::events},   {"print", Kind::print},
    {"clear", Kind::clear},       {"set", Kind::set},       {"trigger", Kind::trigger}, {"packet", Kind::packet},
    {"run", Kind::run},           {"expect", Kind::expect}, {"measure", Kind::measure}, {"every", Kind::every},
};

} // namespace

bool Parser::is_step(std::string_view word) {
    for (const StepRow &row : kSteps)
        if (row.word == word) return true;
    return false;
}
void Parser::offer_steps(Nearest &near) const {
    for (const StepRow &row : kSteps) near.offer(row.word);
}

bool Parser::step(std::string_view word, TextPlace at, std::vector<Step> &out, int depth) {
    Step step;
    step.at = at;
    step.source = now();
    if (const size_t begin = step.source.find_first_not_of(" \t"); begin != std::string::npos) step.source.erase(0, begin);
    for (const StepRow &row : kSteps)
        if (row.word == word) step.kind = row.kind;
    if (!count_part(at)) return false;
    switch (step.kind) {
    case Kind::workload: {
        const TextPlace command = (skip_blanks(), here());
        if (!split_command(rest(), step.command)) return fail(command, "a text of this command is never closed");
        if (step.command.empty())
            return fail(command, "expected a command: workload COMMAND [ARGUMENT]...", "with a shell: workload sh -c '...'");
        break;
    }
    case Kind::wait:
        if (eat_word("workload"))
            step.for_workload = true;
        else if (!at_line_end() && !duration(step.seconds, "a time, or `workload`"))
            return false;
        break;
    case Kind::events:
        if (!events_step(step)) return false;
        break;
    case Kind::print:
        if (!print_step(step)) return false;
        break;
    case Kind::clear:
        for (;;) {
            (void)eat("@");
            step.name = name();
            if (step.name.empty()) return fail_expected("a map: clear MAP, MAP");
            if (!eat(",")) break;
            out.push_back(step);
        }
        break;
    case Kind::set:
        if (!set_step(step)) return false;
        break;
    case Kind::trigger: {
        const TextPlace target = (skip_blanks(), here());
        const std::string_view text = this->word();
        const size_t colon = text.rfind(':');
        if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size())
            return fail(target, "expected a function of a shared library: trigger FILE:FUNCTION [NUMBER]...");
        step.name = text.substr(0, colon);
        step.text = text.substr(colon + 1);
        while (!at_line_end()) step.command.emplace_back(this->word());
        break;
    }
    case Kind::packet:
        if (!packet_step(step)) return false;
        break;
    case Kind::run:
        step.name = name();
        if (step.name.empty()) return fail_expected("a program: run PROGRAM [FILE|HEX] [times N]");
        if (eat_word("times")) {
            if (!number(step.count, "how many times")) return false;
        } else if (!at_line_end()) {
            step.text = this->word();
            if (eat_word("times") && !number(step.count, "how many times")) return false;
        }
        break;
    case Kind::expect:
        if (!expect_step(step)) return false;
        break;
    case Kind::measure:
        step.name = name();
        if (step.name.empty()) return fail_expected("a name: measure NAME = VALUE");
        if (!need("=") || !expression(step.value)) return false;
        break;
    case Kind::every:
        if (!every_step(step, depth)) return false;
        break;
    default: break;
    }
    skip_blanks();
    if ((depth == 0 || (peek() != '}' && peek() != ';')) && !need_line_end()) return false;
    out.push_back(std::move(step));
    return true;
}

bool Parser::events_step(Step &step) {
    for (;;) {
        if (at_line_end()) return true;
        if (eat_word("until")) {
            if (!number(step.count, "a number of events")) return false;
            if (step.count == 0) return fail(here(), "until 0 events have come is at once: at least 1");
        } else if (eat_word("for")) {
            if (!duration(step.seconds, "a time")) return false;
        } else {
            return fail_expected("`until N` or `for TIME`");
        }
    }
}

bool Parser::print_step(Step &step) {
    skip_blanks();
    if (peek() == '"') {
        step.kind = Kind::say;
        return pieces(step.pieces, false);
    }
    (void)eat("@");
    step.name = name();
    if (step.name.empty()) return fail_expected("a map, or a text: print MAP, print \"...\"");
    if (eat_word("as")) {
        skip_blanks();
        const TextPlace at = here();
        const std::string_view style = name();
        struct Row {
            std::string_view word;
            Style style;
        };
        constexpr Row kStyles[] = {{"table", Style::table}, {"hist", Style::hist}, {"log2", Style::log2}, {"json", Style::json}};
        const Row *found = nullptr;
        Nearest near(style);
        for (const Row &row : kStyles) {
            near.offer(row.word);
            if (row.word == style) found = &row;
        }
        if (!found) return fail(at, format("a map is printed as table, hist, log2 or json, not `{}`", style), near.hint());
        step.style = found->style;
    }
    if (eat_word("top")) {
        if (!number(step.count, "how many entries")) return false;
    }
    return true;
}

bool Parser::every_step(Step &step, int depth) {
    const TextPlace at = here();
    if (depth > 4) return fail(at, "blocks are nested too deep");
    if (!duration(step.seconds, "a time")) return false;
    if (eat_word("times") && !number(step.count, "how many times")) return false;
    const TextPlace open = (skip_blanks(), here());
    if (!need("{")) return false;
    for (;;) {
        while (!at_text_end() && (at_line_end() || eat(";"))) {
            if (at_line_end()) next_line();
        }
        if (at_text_end()) return fail(open, "this block is never closed");
        if (eat("}")) return true;
        const TextPlace begin = here();
        const std::string_view word = name();
        const uint32_t before = line_;
        bool good = true;
        if (!is_step(word)) {
            if (word.empty())
                good = fail_expected("a step, or `}`");
            else
                unknown_word(word, begin, true), good = false;
        } else {
            good = this->step(word, begin, step.body, depth + 1);
        }
        if (!good && line_ == before) next_line();
        if (!good && at_text_end()) return false;
    }
}

bool Parser::set_step(Step &step) {
    skip_blanks();
    const TextPlace at = here();
    (void)eat("@");
    step.name = name();
    if (step.name.empty()) return fail_expected("a variable or an element of a map: set NAME = VALUE, set MAP[KEY] = VALUE");
    // A part of a variable belongs to its name: limits[2].max
    if (peek() == '[') {
        Expr key;
        key.kind = Expr::Kind::map;
        key.at = at;
        key.text = step.name;
        ++column_;
        if (!arguments(key, ']', 0)) return false;
        step.key = std::move(key);
    }
    while (peek() == '.') {
        const size_t begin = column_++;
        if (name().empty()) return fail_expected("the name of a member");
        step.text += std::string_view(now()).substr(begin, column_ - begin);
    }
    if (!need("=")) return false;
    const std::string_view value = rest();
    if (value.empty()) return fail_expected("a value");
    step.command.emplace_back(value);
    return true;
}

bool Parser::packet_step(Step &step) {
    step.text = word();
    if (step.text.empty()) return fail_expected("a file, or bytes in hex: packet FILE|HEX [to PROGRAM] [times N]");
    if (eat_word("to")) {
        step.name = name();
        if (step.name.empty()) return fail_expected("a program");
    }
    if (eat_word("times") && !number(step.count, "how many times")) return false;
    return true;
}

bool Parser::expect_step(Step &step) {
    skip_blanks();
    const size_t before = column_;
    if (eat_word("rejected")) {
        skip_blanks();
        if (peek() == '"') {
            step.kind = Kind::rejected;
            return quoted(step.text);
        }
        column_ = before;
    }
    return expression(step.value);
}

// "words {field:8} {field:>6}": of an event its fields, of a message values. `{{` is a brace.
bool Parser::pieces(std::vector<Piece> &out, bool fields) {
    skip_blanks();
    if (peek() != '"') return fail_expected("a text in quotes");
    const TextPlace begin = here();
    ++column_;
    Piece piece;
    for (;;) {
        if (column_ >= now().size()) return fail(begin, "this text is never closed");
        const char c = peek();
        if (c == '"') break;
        if ((c == '{' || c == '}') && peek(1) == c) {
            piece.words += c;
            column_ += 2;
            continue;
        }
        if (c == '}') return fail(here(), "a `}` without a `{`", "a brace that is to be printed is written twice");
        if (c == '{') {
            piece.at = here();
            ++column_;
            piece.has_value = true;
            if (fields) {
                piece.field = name();
                if (piece.field.empty()) return fail_expected("the name of a field");
            } else if (!expression(piece.value)) {
                return false;
            }
            if (eat(":")) {
                piece.right = eat(">");
                uint64_t width = 0;
                if (!number(width, "a width, like {pid:7} or {bytes:>8}")) return false;
                if (width > 500) return fail(here(), "a column has at most 500 characters");
                piece.width = static_cast<uint32_t>(width);
            }
            if (peek() != '}') return fail_expected("`}`");
            ++column_;
            out.push_back(std::move(piece));
            piece = {};
            continue;
        }
        piece.words += quoted_letter();
    }
    ++column_;
    if (!piece.words.empty()) out.push_back(std::move(piece));
    return true;
}

} // namespace rawbpf::inline v0::experiment
