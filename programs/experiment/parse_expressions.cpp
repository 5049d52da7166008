// Values: C's operators with C's binding, over names, texts, elements of maps and calls.
//
//      @start[tid]            an element of a map           arg0->f_inode->i_size      through pointers, by the kernel's types
//      str(filename)          a call                        10ms                       nanoseconds
#include <algorithm>
#include <charconv>

#include "programs/experiment/parse_characters.h"
#include "programs/experiment/parsing.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {

using trace::Operator;

bool Parser::binary(Expr &out, int level, int depth) {
    if (!unary(out, depth)) return false;
    for (;;) {
        skip_blanks();
        const std::string_view rest = std::string_view(now()).substr(std::min(column_, now().size()));
        const trace::OperatorRow *row = nullptr;
        for (const trace::OperatorRow &each : trace::kBinaryOperators)
            if (rest.starts_with(each.text)) {
                row = &each;
                break;
            }
        // `a |` in front of another probe, `+=` and the like aren't for a value to take.
        if (!row || row->level < level ||
            (rest.size() > row->text.size() && rest[row->text.size()] == '=' && row->level != 6 && row->level != 7))
            return true;
        Expr both;
        both.kind = Expr::Kind::binary;
        both.op = row->op;
        both.at = here();
        if (!count_part(both.at)) return false;
        column_ += row->text.size();
        both.args.push_back(std::move(out));
        both.args.emplace_back();
        if (!binary(both.args[1], row->level + 1, depth + 1)) return false;
        out = std::move(both);
    }
}

bool Parser::unary(Expr &out, int depth) {
    skip_blanks();
    if (depth > kDeepest) return fail(here(), format("values are nested more than {} deep", kDeepest));
    const char c = peek();
    if (c == '-' || c == '!' || c == '~') {
        if (c == '!' && peek(1) == '=') return fail_expected("a value");
        out.kind = Expr::Kind::unary;
        out.op = c == '-' ? Operator::negate : c == '!' ? Operator::not_ : Operator::complement;
        out.at = here();
        ++column_;
        out.args.emplace_back();
        return count_part(out.at) && unary(out.args[0], depth + 1);
    }
    return primary(out, depth);
}

bool Parser::primary(Expr &out, int depth) {
    skip_blanks();
    out.at = here();
    if (!count_part(out.at)) return false;
    const char c = peek();
    if (c == '(') {
        const TextPlace open = here();
        ++column_;
        ++inside_;
        const bool good = binary(out, 1, depth + 1);
        if (good) {
            skip_blanks();
            --inside_;
            if (peek() != ')') return at_text_end() ? fail(open, "this `(` is never closed") : fail_expected("`)`");
            ++column_;
        } else {
            --inside_;
        }
        return good;
    }
    if (c == '"') {
        out.kind = Expr::Kind::text;
        return quoted(out.text);
    }
    if (c == '\'') {
        out.kind = Expr::Kind::number;
        return character(out.number);
    }
    if (is_digit(c)) {
        out.kind = Expr::Kind::number;
        return number_literal(out.number);
    }
    if (c == '@') {
        ++column_;
        out.kind = Expr::Kind::map;
        out.text = name();
        if (out.text.empty()) return fail(out.at, "expected a map's name behind `@`");
        if (peek() == '[') {
            out.keyed = true;
            ++column_;
            if (!arguments(out, ']', depth)) return false;
        }
        return steps(out, depth);
    }
    const std::string_view word = name();
    if (word.empty()) return fail_expected("a value");
    out.kind = Expr::Kind::name;
    out.text = word;
    if (peek() == '(') {
        out.kind = Expr::Kind::call;
        ++column_;
        if (!arguments(out, ')', depth)) return false;
    }
    return steps(out, depth);
}

bool Parser::arguments(Expr &out, char end, int depth) {
    ++inside_;
    bool good = true;
    skip_blanks();
    if (peek() == end) {
        if (end == ']') good = fail(here(), "expected a key between the brackets");
    } else {
        for (;;) {
            out.args.emplace_back();
            good = binary(out.args.back(), 1, depth + 1);
            if (!good || !eat(",")) break;
        }
    }
    if (good) {
        skip_blanks();
        if (peek() != end) good = fail_expected(format("`,` or `{}`", end));
    }
    --inside_;
    if (good) ++column_;
    return good;
}

bool Parser::steps(Expr &out, int depth) {
    for (int n = 0;; ++n) {
        if (depth + n > kDeepest) return fail(here(), format("values are nested more than {} deep", kDeepest));
        if (peek() == '-' && peek(1) == '>')
            column_ += 2;
        else if (peek() == '.')
            ++column_;
        else if (peek() == '[' && out.kind != Expr::Kind::map) {
            trace::Step step;
            step.column = static_cast<uint32_t>(column_);
            ++column_;
            if (out.kind == Expr::Kind::name && !is_digit(peek())) { // an element of a map, in an expectation: counts["cat"]
                if (out.keyed || !out.steps.empty()) return fail_expected("a number");
                out.keyed = true;
                if (!arguments(out, ']', depth)) return false;
                continue;
            }
            const size_t before = column_;
            if (!number(step.index, "a number")) return false;
            if (out.kind == Expr::Kind::name && peek() == ',' && !out.keyed && out.steps.empty()) {
                column_ = before;
                out.keyed = true;
                if (!arguments(out, ']', depth)) return false;
                continue;
            }
            if (!need("]")) return false;
            out.steps.push_back(std::move(step));
            continue;
        } else {
            return true;
        }
        trace::Step step;
        step.column = static_cast<uint32_t>(column_);
        step.member = name();
        if (step.member.empty()) return fail_expected("the name of a member");
        out.steps.push_back(std::move(step));
    }
}

bool Parser::number_literal(uint64_t &out) {
    const TextPlace at = here();
    const std::string &line = now();
    const char *begin = line.data() + column_, *end = line.data() + line.size();
    const bool hex = end - begin > 2 && begin[0] == '0' && (begin[1] == 'x' || begin[1] == 'X');
    const auto [stopped, error] = std::from_chars(begin + (hex ? 2 : 0), end, out, hex ? 16 : 10);
    if (error == std::errc::result_out_of_range) return fail(at, "the number has more than 64 bits");
    if (error != std::errc()) return fail(at, "expected a number");
    column_ = static_cast<size_t>(stopped - line.data());
    const size_t unit_at = column_;
    while ((peek() >= 'a' && peek() <= 'z') || (peek() >= 'A' && peek() <= 'Z') || peek() == '_' || is_digit(peek())) ++column_;
    const std::string_view unit = std::string_view(line).substr(unit_at, column_ - unit_at);
    if (unit.empty()) return true;
    struct Unit {
        std::string_view name;
        uint64_t scale;
    };
    constexpr Unit kUnits[] = {{"ns", 1},      {"us", 1000},   {"ms", 1'000'000}, {"s", 1'000'000'000},
                               {"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}};
    for (const Unit &known : kUnits)
        if (known.name == unit) {
            if (__builtin_mul_overflow(out, known.scale, &out)) return fail(at, "the number has more than 64 bits");
            return true;
        }
    return fail({at.line, static_cast<uint32_t>(unit_at) + 1}, format("`{}` is no unit", unit),
                "times: ns us ms s; sizes: k m g");
}

bool Parser::character(uint64_t &out) {
    const TextPlace at = here();
    ++column_;
    char c = peek();
    if (c == '\\') {
        ++column_;
        c = peek();
        c = c == 'n' ? '\n' : c == 't' ? '\t' : c == '0' ? '\0' : c;
    }
    out = static_cast<unsigned char>(c);
    ++column_;
    if (peek() != '\'') return fail(at, "expected one character in quotes, like 'a'");
    ++column_;
    return true;
}

} // namespace rawbpf::inline v0::experiment
