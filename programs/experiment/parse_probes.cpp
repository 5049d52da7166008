// `on PROBE | PROBE, PROBE if CONDITION { ... }`: what is compiled for the kernel.
//
//      @reads[comm] += 1             an element of a map, which appears when it is first written
//      @us[comm] = hist(x / 1000)    count() sum(x) avg(x) min(x) max(x) stats(x) hist(x) lhist(x, from, to, step)
//      delete @start[tid]            let x = arg0->f_flags        x = 1
//      if x > 1 { } else if { } else { }        return
//      emit open pid, comm, file = str(arg1)    an event, for user space to show
#include "asm/nearest.h"
#include "programs/experiment/parsing.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {

bool Parser::probe(TextPlace at) {
    Probe probe;
    probe.at = at;
    std::vector<Probe::Name> alternatives;
    for (;;) {
        skip_blanks();
        Probe::Name one;
        one.at = here();
        const std::string &line = now();
        const char quote = peek();
        if (quote == '"' || quote == '\'') {
            one.text = word();
        } else {
            const size_t begin = column_;
            while (column_ < line.size()) {
                const char c = peek();
                if (c == ' ' || c == '\t' || c == ',' || c == '|' || c == '{' || c == '#' || c == '\r') break;
                ++column_;
            }
            one.text = line.substr(begin, column_ - begin);
        }
        if (one.text.empty()) {
            (void)fail_expected("a probe, such as tracepoint:sched:sched_switch or kprobe:vfs_read");
            skip_block();
            return false;
        }
        alternatives.push_back(std::move(one));
        if (eat("|")) continue;
        probe.names.push_back(std::move(alternatives));
        alternatives.clear();
        if (!eat(",")) break;
        if (at_line_end()) next_line();
    }
    if (eat_word("if")) {
        probe.condition.emplace();
        if (!expression(*probe.condition)) {
            skip_block();
            return false;
        }
    }
    if (!block(probe.body, 0)) {
        skip_block();
        return false;
    }
    out_.experiment.probes.push_back(std::move(probe));
    return true;
}

// After a mistake: on to the line that closes the block, which stands at the left, or to the next one that begins something.
void Parser::skip_block() {
    inside_ = 0;
    for (next_line(); !at_text_end(); next_line()) {
        const std::string &line = now();
        if (line.starts_with('}')) {
            next_line();
            return;
        }
        if (line.starts_with("on ") || line.starts_with(".") || line.starts_with("asm")) return;
    }
}

bool Parser::block(std::vector<Statement> &out, int depth) {
    if (depth > kDeepest) return fail(here(), "blocks are nested too deep");
    skip_lines();
    if (at_text_end())
        return fail({static_cast<uint32_t>(out_.experiment.lines.size()), 1}, "expected `{`, found the end of the text");
    const TextPlace open = here();
    if (!need("{")) return false;
    for (;;) {
        skip_lines();
        if (at_text_end()) return fail(open, "this block is never closed");
        if (eat("}")) return true;
        if (eat(";")) continue;
        if (!statement(out, depth)) return false;
        skip_blanks();
        const bool block_ended = !out.empty() && out.back().kind == Statement::Kind::branch;
        if (!block_ended && !at_line_end() && peek() != ';' && peek() != '}')
            return fail_expected("`;`, `}` or the end of the line");
    }
}

bool Parser::statement(std::vector<Statement> &out, int depth) {
    Statement statement;
    statement.at = here();
    if (!count_part(statement.at)) return false;
    if (peek() == '@') {
        if (!primary(statement.target, 0)) return false;
        if (!statement.target.steps.empty()) return fail(statement.at, "only a whole element of a map is written");
        statement.kind = Statement::Kind::assign;
        skip_blanks();
        if (eat("++")) {
            statement.op = "+=";
            statement.value.number = 1;
            statement.value.at = statement.at;
            out.push_back(std::move(statement));
            return true;
        }
        for (std::string_view op : {"+=", "-=", "|=", "="})
            if (statement.op.empty() && eat(op)) statement.op = op;
        if (statement.op.empty()) return fail_expected("`=`, `+=`, `-=`, `|=` or `++`");
        if (!expression(statement.value)) return false;
        out.push_back(std::move(statement));
        return true;
    }
    const std::string_view word = name();
    if (word == "delete") {
        statement.kind = Statement::Kind::remove;
        skip_blanks();
        if (peek() != '@') return fail_expected("an element of a map: delete @MAP[KEY]");
        if (!primary(statement.target, 0)) return false;
    } else if (word == "let") {
        statement.kind = Statement::Kind::local;
        statement.declares = true;
        statement.name = name();
        if (statement.name.empty()) return fail_expected("a name: let NAME = VALUE");
        if (!need("=") || !expression(statement.value)) return false;
    } else if (word == "if") {
        statement.kind = Statement::Kind::branch;
        if (!expression(statement.value) || !block(statement.then, depth + 1)) return false;
        const uint32_t line = line_;
        const size_t column = column_;
        skip_lines();
        if (!at_text_end() && eat_word("else")) {
            skip_blanks();
            const size_t before = column_;
            if (eat_word("if")) {
                column_ = before;
                if (depth > kDeepest) return fail(here(), "blocks are nested too deep");
                if (!this->statement(statement.otherwise, depth + 1)) return false;
            } else if (!block(statement.otherwise, depth + 1)) {
                return false;
            }
        } else {
            line_ = line;
            column_ = column;
        }
    } else if (word == "emit") {
        statement.kind = Statement::Kind::emit;
        if (!emit(statement)) return false;
    } else if (word == "return") {
        statement.kind = Statement::Kind::leave;
    } else if (!word.empty() && (skip_blanks(), peek() == '=') && peek(1) != '=') {
        statement.kind = Statement::Kind::local;
        statement.name = word;
        ++column_;
        if (!expression(statement.value)) return false;
    } else if (word.empty()) {
        return fail_expected("a statement");
    } else {
        Nearest near(word);
        for (std::string_view known : {"delete", "let", "if", "emit", "return"}) near.offer(known);
        return fail(statement.at, format("`{}` begins no statement", word),
                    near.hint().empty() ? "statements: @MAP[KEY] = VALUE, let, if, delete, emit, return" : near.hint());
    }
    out.push_back(std::move(statement));
    return true;
}

bool Parser::emit(Statement &out) {
    out.name = name();
    if (out.name.empty()) return fail_expected("an event's name: emit NAME FIELD, FIELD = VALUE, ...");
    for (;;) {
        skip_blanks();
        const TextPlace at = here();
        Statement::Field field;
        field.name = name();
        if (field.name.empty()) return fail_expected("a field: emit NAME FIELD, FIELD = VALUE, ...");
        for (const Statement::Field &other : out.fields)
            if (other.name == field.name) return fail(at, format("there is a field {} already", field.name));
        skip_blanks();
        if (peek() == '=' && peek(1) != '=') {
            ++column_;
            if (!expression(field.value)) return false;
        } else {
            field.value.kind = Expr::Kind::name;
            field.value.text = field.name;
            field.value.at = at;
            if (!count_part(at)) return false;
        }
        out.fields.push_back(std::move(field));
        if (!eat(",")) return true;
        if (at_line_end()) skip_lines();
    }
}

} // namespace rawbpf::inline v0::experiment
