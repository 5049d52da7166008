// The parser's class: its parts are files. Private to the room.
//
//      parse.cpp               lines, blocks of other languages
//      parse_parameters.cpp    parameters and their places
//      parse_cursor.cpp        the place in the text
//      parse_steps.cpp         what is done, line by line
//      parse_probes.cpp        `on PROBE { ... }`
//      parse_expressions.cpp   values
//
// Every function that returns bool returns false after it reported a mistake.
#pragma once

#include <string>
#include <string_view>

#include "programs/experiment/parse.h"

namespace rawbpf::inline v0 {
class Nearest;
}

namespace rawbpf::inline v0::experiment {

class Parser {
  public:
    Parser(std::string_view text, std::string_view name, const std::vector<Setting> &settings);
    [[nodiscard]] Parsed run();

  private:
    static constexpr int kDeepest = 48;          ///< blocks and parentheses
    static constexpr size_t kMostParts = 20'000; ///< expressions and statements of a text: what one writes by hand is hundreds

    // parse_parameters.cpp
    void expand(std::string_view text, const std::vector<Setting> &settings);
    void read_param(std::string_view line, uint32_t number, const std::vector<Setting> &settings);
    [[nodiscard]] std::string expand_line(std::string_view line, uint32_t number);

    // parse.cpp
    void line();
    bool map_line();
    bool assembler_line();
    bool source_line(bool is_c);
    bool raw_block(std::string &text);
    bool attach_line();
    bool license_line();
    bool format_line();
    void unknown_word(std::string_view word, TextPlace at, bool in_block);

    // parse_cursor.cpp: a place in one line; a block goes on in the next
    [[nodiscard]] TextPlace here() const { return {line_ + 1, static_cast<uint32_t>(column_) + 1}; }
    [[nodiscard]] const std::string &now() const;
    [[nodiscard]] char peek(size_t ahead = 0) const;
    void skip_blanks();
    void skip_lines(); ///< blanks, ends of lines, comments
    [[nodiscard]] bool at_line_end();
    [[nodiscard]] bool at_text_end() const { return line_ >= out_.experiment.lines.size(); }
    void next_line() { ++line_, column_ = 0; }
    [[nodiscard]] std::string_view name(); ///< empty: there is none
    [[nodiscard]] std::string_view word(); ///< up to a blank; a text in quotes without them
    [[nodiscard]] std::string_view rest(); ///< of the line, without blanks at both ends and without a comment
    bool eat(std::string_view symbol);
    bool eat_word(std::string_view word);
    bool need(std::string_view symbol);
    bool need_line_end();
    bool quoted(std::string &out);
    char quoted_letter(); ///< of a text in quotes, where \n and \t are one
    bool duration(double &seconds, std::string_view what);
    bool number(uint64_t &out, std::string_view what);
    [[nodiscard]] std::string found();
    bool fail(TextPlace at, std::string message, std::string hint = {});
    bool fail_expected(std::string_view what, std::string hint = {});
    bool count_part(TextPlace at);

    // parse_steps.cpp
    [[nodiscard]] static bool is_step(std::string_view word);
    bool step(std::string_view word, TextPlace at, std::vector<Step> &out, int depth);
    bool print_step(Step &step);
    bool every_step(Step &step, int depth);
    bool set_step(Step &step);
    bool packet_step(Step &step);
    bool events_step(Step &step);
    bool expect_step(Step &step);
    bool pieces(std::vector<Piece> &out, bool fields);
    void offer_steps(Nearest &near) const;

    // parse_probes.cpp
    bool probe(TextPlace at);
    bool block(std::vector<Statement> &out, int depth);
    bool statement(std::vector<Statement> &out, int depth);
    bool emit(Statement &out);
    void skip_block();

    // parse_expressions.cpp
    bool expression(Expr &out) { return binary(out, 1, 0); }
    bool binary(Expr &out, int level, int depth);
    bool unary(Expr &out, int depth);
    bool primary(Expr &out, int depth);
    bool steps(Expr &out, int depth);
    bool arguments(Expr &out, char end, int depth);
    bool number_literal(uint64_t &out);
    bool character(uint64_t &out);

    Parsed out_;
    uint32_t line_ = 0;
    size_t column_ = 0;
    size_t parts_ = 0;
    int inside_ = 0; ///< parentheses: ends of lines are blanks
    std::vector<std::string> assembly_;
    std::vector<bool> broken_; ///< lines whose parameters there aren't: nothing else is said of them
};

} // namespace rawbpf::inline v0::experiment
