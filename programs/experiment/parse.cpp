// Lines, parameters, and blocks that are in another language.
//
// A line begins with a word that says what it is. Two kinds of blocks hold what others read: `asm { }` the assembler, `c { }` a
// compiler. Both get a text with as many lines in front as there are in the experiment, so that what they say of line 12 is about
// line 12. `$name` is replaced in the text before anything else is read, so a parameter can be a number, a name or a path; carets
// stand under the line as it reads then. Over 600 lines: one function a word that begins a line, and they share the reader's
// place.
#include "programs/experiment/parse.h"

#include <algorithm>

#include "asm/nearest.h"
#include "programs/experiment/parsing.h"
#include "runtime/base/format.h"
#include "runtime/base/numbers.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr size_t kMostComplaints = 20;
constexpr double kMostSeconds = 1e7;
constexpr size_t kMostLines = 100'000, kMostLineBytes = 16'384, kMostValueBytes = 4096;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_name(char c) { return begins_name(c) || is_digit(c); }

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
}
std::string_view first_word(std::string_view line) {
    line = trimmed(line);
    size_t end = 0;
    while (end < line.size() && in_name(line[end])) ++end;
    return line.substr(0, end);
}
// Where the comment of a line begins; its size: it has none.
size_t comment_of(std::string_view line) {
    char quote = 0;
    for (size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (quote) {
            if (c == '\\') ++i;
            if (c == quote) quote = 0;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '#') {
            return i;
        }
    }
    return line.size();
}

// Which braces of C are open, line by line: not those in texts and comments.
class CBraces {
  public:
    [[nodiscard]] bool open() const { return depth_ > 0; }
    void read(std::string_view line) {
        char quote = 0;
        for (size_t i = 0; i < line.size(); ++i) {
            const char c = line[i];
            const char next = i + 1 < line.size() ? line[i + 1] : '\0';
            if (comment_) {
                if (c == '*' && next == '/') comment_ = false, ++i;
            } else if (quote) {
                if (c == '\\') ++i;
                if (c == quote) quote = 0;
            } else if (c == '/' && next == '/') {
                return;
            } else if (c == '/' && next == '*') {
                comment_ = true, ++i;
            } else if (c == '"' || c == '\'') {
                quote = c;
            } else {
                depth_ += (c == '{') - (c == '}');
            }
        }
    }

  private:
    int depth_ = 0;
    bool comment_ = false;
};
bool begins_c(std::string_view bare) { return first_word(bare) == "c" && bare.ends_with('{') && trimmed(bare.substr(1)) == "{"; }

} // namespace

void Mistakes::add(Complaint complaint) {
    if (complaints_.size() < kMostComplaints) complaints_.push_back(std::move(complaint));
}
void Mistakes::add(const std::vector<std::string> &lines, Place at, std::string message, std::string hint) {
    Complaint complaint;
    complaint.at = {static_cast<int>(at.line), static_cast<int>(at.column), std::move(message), file_};
    if (at.line != 0 && at.line <= lines.size()) complaint.line = lines[at.line - 1];
    complaint.hint = std::move(hint);
    add(std::move(complaint));
}
std::string Mistakes::report() const {
    std::string out;
    for (const Complaint &complaint : complaints_) {
        if (complaint.at.line == 0) { // of the whole text, or of the command line
            append(out, "{}: {}\n", file_, complaint.at.message);
            if (!complaint.hint.empty()) append(out, "  hint: {}\n", complaint.hint);
            continue;
        }
        Assembled one;
        one.complaints.push_back(complaint);
        out += one.report();
    }
    return out;
}

bool split_command(std::string_view text, std::vector<std::string> &out) {
    std::string word;
    bool in_word = false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (is_blank(c)) {
            if (in_word) out.push_back(std::move(word));
            word.clear();
            in_word = false;
            continue;
        }
        in_word = true;
        if (c == '\'' || c == '"') {
            for (++i; i < text.size() && text[i] != c; ++i) {
                if (c == '"' && text[i] == '\\' && i + 1 < text.size()) ++i;
                word += text[i];
            }
            if (i == text.size()) return false;
        } else if (c == '\\' && i + 1 < text.size()) {
            word += text[++i];
        } else {
            word += c;
        }
    }
    if (in_word) out.push_back(std::move(word));
    return true;
}

Parsed parse(std::string_view text, std::string_view name, const std::vector<Setting> &settings) {
    return Parser(text, name, settings).run();
}

// ---- parameters ------------------------------------------------------------------------------------------------------------

Parser::Parser(std::string_view text, std::string_view name, const std::vector<Setting> &settings) {
    out_.experiment.name = name;
    out_.mistakes = Mistakes(std::string(name));
    expand(text, settings);
}

void Parser::expand(std::string_view text, const std::vector<Setting> &settings) {
    std::vector<std::string_view> lines;
    while (!text.empty() && lines.size() < kMostLines) {
        const size_t end = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    Experiment &e = out_.experiment;
    for (const std::string_view line : lines) e.lines.emplace_back(line.substr(0, kMostLineBytes));
    for (size_t i = 0; i < lines.size(); ++i)
        if (lines[i].size() > kMostLineBytes)
            fail({static_cast<uint32_t>(i) + 1, 1},
                 format("a line has at most {} bytes, this one has {}", kMostLineBytes, lines[i].size()));
    if (!text.empty()) fail({kMostLines, 1}, format("an experiment has at most {} lines", kMostLines));
    for (size_t i = 0; i < e.lines.size(); ++i)
        if (first_word(e.lines[i]) == "param") read_param(e.lines[i], static_cast<uint32_t>(i) + 1, settings);
    for (const Setting &setting : settings) {
        const auto named = [&](const Param &param) { return param.name == setting.name; };
        if (std::any_of(e.params.begin(), e.params.end(), named)) continue;
        Nearest near(setting.name);
        for (const Param &param : e.params) near.offer(param.name);
        std::string hint = near.hint();
        if (hint.empty() && !e.params.empty()) {
            hint = "there are";
            for (const Param &param : e.params) hint += " " + param.name;
        }
        out_.mistakes.add(e.lines, {}, format("there is no parameter {}", setting.name), std::move(hint));
    }
    broken_.resize(e.lines.size());
    CBraces c_code; // there # begins no comment
    for (size_t i = 0; i < e.lines.size(); ++i) {
        const std::string_view bare = trimmed(e.lines[i]);
        const bool inside = c_code.open();
        if (inside || begins_c(bare)) c_code.read(inside ? bare : "{");
        if (first_word(bare) == "param" || bare.find('$') == std::string_view::npos) continue;
        const size_t comment = inside ? e.lines[i].size() : comment_of(e.lines[i]);
        const size_t before = out_.mistakes.count();
        std::string expanded = expand_line(std::string_view(e.lines[i]).substr(0, comment), static_cast<uint32_t>(i) + 1);
        broken_[i] = out_.mistakes.count() != before;
        expanded += std::string_view(e.lines[i]).substr(comment);
        e.lines[i] = std::move(expanded);
    }
    for (const std::string &line : e.lines) {
        const std::string_view bare = trimmed(line);
        if (bare.empty() || bare.starts_with("#!")) continue;
        if (bare.starts_with('#'))
            e.title = trimmed(
                bare.substr(bare.find_first_not_of('#') == std::string_view::npos ? bare.size() : bare.find_first_not_of('#')));
        break;
    }
}

void Parser::read_param(std::string_view line, uint32_t number, const std::vector<Setting> &settings) {
    Param param;
    size_t at = line.find("param") + 5;
    const auto column = [&] { return Place{number, static_cast<uint32_t>(at) + 1}; };
    const size_t comment = comment_of(line);
    if (comment < line.size()) param.help = trimmed(line.substr(comment + 1));
    line = line.substr(0, comment);
    while (at < line.size() && is_blank(line[at])) ++at;
    param.at = column();
    const size_t begin = at;
    while (at < line.size() && in_name(line[at])) ++at;
    param.name = line.substr(begin, at - begin);
    if (param.name.empty() || is_digit(param.name[0])) {
        fail(param.at, "expected a parameter's name: param NAME = VALUE");
        return;
    }
    while (at < line.size() && is_blank(line[at])) ++at;
    if (at == line.size() || line[at] != '=') {
        fail(column(), format("expected `=` and the value that {} has when nobody sets it", param.name));
        return;
    }
    ++at;
    std::string_view value = trimmed(line.substr(at));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
        value = value.substr(1, value.size() - 2);
    param.value = value;
    for (const Param &other : out_.experiment.params)
        if (other.name == param.name) {
            fail(param.at, format("there is a parameter {} already, in line {}", param.name, other.at.line));
            return;
        }
    for (const Setting &setting : settings)
        if (setting.name == param.name) param.value = setting.value;
    if (param.value.size() > kMostValueBytes || param.value.find('\n') != std::string::npos) {
        fail(param.at, format("the value of {} is too long, or has more than one line", param.name));
        param.value.clear();
    }
    out_.experiment.params.push_back(std::move(param));
}

std::string Parser::expand_line(std::string_view line, uint32_t number) {
    std::string out;
    for (size_t i = 0; i < line.size(); ++i) {
        if (line[i] != '$') {
            out += line[i];
            continue;
        }
        const Place at{number, static_cast<uint32_t>(i) + 1};
        if (i + 1 < line.size() && line[i + 1] == '$') {
            out += '$';
            ++i;
            continue;
        }
        const bool braces = i + 1 < line.size() && line[i + 1] == '{';
        const size_t begin = i + 1 + braces;
        size_t end = begin;
        while (end < line.size() && in_name(line[end])) ++end;
        const std::string_view wanted = line.substr(begin, end - begin);
        if (wanted.empty() || (braces && (end == line.size() || line[end] != '}'))) {
            fail(at, "expected a parameter's name behind `$`", "`$$` is one `$`");
            return std::string(line);
        }
        const Param *found = nullptr;
        for (const Param &param : out_.experiment.params)
            if (param.name == wanted) found = &param;
        if (!found) {
            Nearest near(wanted);
            for (const Param &param : out_.experiment.params) near.offer(param.name);
            std::string hint = near.hint();
            fail(at, format("there is no parameter {}", wanted),
                 hint.empty() ? format("param {} = VALUE makes one; `$$` is one `$`", wanted) : hint);
            return std::string(line);
        }
        if (out.size() + found->value.size() > kMostLineBytes) {
            fail(at, format("with the parameters' values the line has more than {} bytes", kMostLineBytes));
            return std::string(line);
        }
        out += found->value;
        i = end + braces - 1;
    }
    return out;
}

// ---- the cursor ------------------------------------------------------------------------------------------------------------

const std::string &Parser::now() const {
    static const std::string kNothing;
    return at_text_end() ? kNothing : out_.experiment.lines[line_];
}
char Parser::peek(size_t ahead) const {
    const std::string &line = now();
    return column_ + ahead < line.size() ? line[column_ + ahead] : '\0';
}
void Parser::skip_blanks() {
    for (;;) {
        while (is_blank(peek())) ++column_;
        if (peek() == '#') column_ = now().size();
        if (inside_ == 0 || at_text_end() || column_ < now().size()) return;
        next_line();
    }
}
void Parser::skip_lines() {
    while (!at_text_end()) {
        skip_blanks();
        if (column_ < now().size()) return;
        next_line();
    }
}
bool Parser::at_line_end() {
    skip_blanks();
    return column_ >= now().size();
}
std::string_view Parser::name() {
    skip_blanks();
    if (!begins_name(peek())) return {};
    const size_t begin = column_;
    while (in_name(peek())) ++column_;
    return std::string_view(now()).substr(begin, column_ - begin);
}
std::string_view Parser::word() {
    skip_blanks();
    const std::string &line = now();
    const char quote = peek();
    if (quote == '"' || quote == '\'') {
        const size_t end = line.find(quote, column_ + 1);
        if (end == std::string::npos) {
            fail(here(), "this text is never closed");
            column_ = line.size();
            return {};
        }
        const std::string_view out = std::string_view(line).substr(column_ + 1, end - column_ - 1);
        column_ = end + 1;
        return out;
    }
    const size_t begin = column_;
    while (column_ < line.size() && !is_blank(peek()) && peek() != '#') ++column_;
    return std::string_view(line).substr(begin, column_ - begin);
}
std::string_view Parser::rest() {
    skip_blanks();
    const std::string_view line = std::string_view(now()).substr(std::min(column_, now().size()));
    column_ = now().size();
    return trimmed(line.substr(0, comment_of(line)));
}
bool Parser::eat(std::string_view symbol) {
    skip_blanks();
    if (!std::string_view(now()).substr(std::min(column_, now().size())).starts_with(symbol)) return false;
    column_ += symbol.size();
    return true;
}
bool Parser::eat_word(std::string_view wanted) {
    skip_blanks();
    const size_t before = column_;
    if (name() == wanted) return true;
    column_ = before;
    return false;
}
bool Parser::need(std::string_view symbol) { return eat(symbol) || fail_expected(format("`{}`", symbol)); }
bool Parser::need_line_end() {
    if (at_line_end()) return true;
    return fail_expected("the end of the line");
}
std::string Parser::found() {
    if (at_line_end()) return "the end of the line";
    const std::string_view line = std::string_view(now()).substr(column_);
    size_t end = 0;
    while (end < line.size() && in_name(line[end])) ++end;
    return format("`{}`", line.substr(0, std::max<size_t>(std::min<size_t>(end, 40), 1)));
}
bool Parser::fail(Place at, std::string message, std::string hint) {
    out_.mistakes.add(out_.experiment.lines, at, std::move(message), std::move(hint));
    return false;
}
bool Parser::fail_expected(std::string_view what, std::string hint) {
    std::string message = format("expected {}, found {}", what, found());
    return fail(here(), std::move(message), std::move(hint));
}
bool Parser::count_part(Place at) {
    if (++parts_ <= kMostParts) return true;
    if (parts_ == kMostParts + 1) fail(at, format("an experiment has at most {} values and statements", kMostParts));
    return false;
}
bool Parser::number(uint64_t &out, std::string_view what) {
    skip_blanks();
    if (!is_digit(peek())) return fail_expected(what);
    return number_literal(out);
}
bool Parser::duration(double &seconds, std::string_view what) {
    skip_blanks();
    const Place at = here();
    const std::string_view text = word();
    const Result<double> value = parse_seconds(text);
    if (!value || !(*value > 0) || *value > kMostSeconds)
        return fail(at, format("expected {}, like 2s, 500ms or 1m{}{}", what, text.empty() ? "" : ", found ", text));
    seconds = *value;
    return true;
}
bool Parser::quoted(std::string &out) {
    skip_blanks();
    if (peek() != '"') return fail_expected("a text in quotes");
    const Place begin = here();
    for (++column_;; ++column_) {
        if (column_ >= now().size()) return fail(begin, "this text is never closed");
        char c = peek();
        if (c == '"') break;
        if (c == '\\') {
            ++column_;
            c = peek();
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
        }
        out += c;
    }
    ++column_;
    return true;
}

// ---- lines -----------------------------------------------------------------------------------------------------------------

namespace {
struct WordRow {
    std::string_view word, what;
};
// What begins a line that isn't a step.
constexpr WordRow kWords[] = {
    {"param", "a parameter"}, {"map", "a map"},      {"asm", "assembly"}, {"object", "an object file"},   {"c", "a program in C"},
    {"license", "a license"}, {"attach", "a place"}, {"on", "a probe"},   {"format", "a line of output"},
};
} // namespace

void Parser::unknown_word(std::string_view word, Place at, bool in_block) {
    Nearest near(word);
    if (!in_block)
        for (const WordRow &row : kWords) near.offer(row.word);
    offer_steps(near);
    std::string hint = near.hint();
    if (hint.empty())
        hint = in_block ? "a line in here is a step, such as print, clear or events"
                        : "a line begins with param, map, asm, object, c, attach, on, format, or is a step: workload, wait, "
                          "events, print, set, expect ...";
    fail(at, format("`{}` begins no line of an experiment", word), std::move(hint));
}

Parsed Parser::run() {
    Experiment &e = out_.experiment;
    assembly_.resize(e.lines.size());
    while (!at_text_end()) {
        skip_lines();
        if (at_text_end()) break;
        const uint32_t before = line_;
        if (!broken_[line_]) line();
        if (line_ == before) next_line(); // whatever it was, the next one is another
        inside_ = 0;
    }
    for (const std::string &text : assembly_)
        if (!trimmed(text).empty()) {
            for (const std::string &each : assembly_) (e.assembly += each) += '\n';
            break;
        }
    if (!out_.mistakes.any() && e.assembly.empty() && e.sources.empty() && e.probes.empty() && e.steps.empty())
        out_.mistakes.add(e.lines, {}, "there is nothing to do in it",
                          "`rawbpf help experiment` describes experiments; `rawbpf run --list` has some");
    return std::move(out_);
}

void Parser::line() {
    const Place at = here();
    if (peek() == '.') {
        (void)assembler_line();
        return;
    }
    const std::string_view word = name();
    if (word.empty()) {
        (void)fail_expected("a word that says what this line is");
        return;
    }
    if (word == "param") return;
    bool done = false;
    if (word == "map")
        done = map_line();
    else if (word == "asm")
        done = raw_block(assembly_[line_]);
    else if (word == "object")
        done = source_line(false);
    else if (word == "c")
        done = source_line(true);
    else if (word == "license")
        done = license_line();
    else if (word == "attach")
        done = attach_line();
    else if (word == "on")
        done = probe(at);
    else if (word == "format")
        done = format_line();
    else if (is_step(word))
        done = step(word, at, out_.experiment.steps, 0);
    else
        unknown_word(word, at, false);
    (void)done;
}

// `.struct`, `.rodata` and so on stand for themselves; a struct goes on to its `.end`.
bool Parser::assembler_line() {
    const Place at = here();
    const std::string_view directive = first_word(std::string_view(now()).substr(column_ + 1));
    if (directive == "program" || directive == "function")
        return fail(at, format("`.{}` stands in a block: asm {{", directive), "the block ends with a line that has only a `}`");
    assembly_[line_] = now();
    if (directive != "struct") return true;
    for (next_line(); !at_text_end(); next_line()) {
        assembly_[line_] = now();
        if (trimmed(now().substr(0, comment_of(now()))) == ".end") {
            next_line();
            return true;
        }
    }
    return true; // the assembler says that its end is missing
}

// What the assembler calls `.map`: the dot goes where a blank was, or else everything moves by one.
bool Parser::map_line() {
    const size_t word = column_ - 3;
    std::string text = now();
    if (word > 0 && is_blank(text[word - 1]))
        text[word - 1] = '.';
    else
        text.insert(word, ".");
    assembly_[line_] = text;
    return true;
}

// Up to the line that has only a `}` (of C: the one that belongs to the `{`); what is between stands where it stood.
bool Parser::raw_block(std::string &text) {
    const Place at = here();
    if (!need("{") || !need_line_end()) return false;
    const bool assembly = &text == &assembly_[line_];
    CBraces braces;
    braces.read("{");
    for (next_line(); !at_text_end(); next_line()) {
        if (!assembly) braces.read(now());
        if (trimmed(now()) == "}" && (assembly || !braces.open())) {
            next_line();
            return true;
        }
        if (assembly)
            assembly_[line_] = now();
        else
            (text += now()) += '\n';
    }
    return fail(at, "this block is never closed", "it ends with a line that has only a `}`");
}

bool Parser::source_line(bool is_c) {
    Source source;
    skip_blanks();
    source.at = here();
    source.is_c = is_c;
    if (is_c && peek() == '{') {
        source.text.assign(line_ + 1, '\n');
        if (!raw_block(source.text)) return false;
    } else {
        source.path = word();
        if (source.path.empty()) return fail_expected(is_c ? "a file, or `{`" : "an object file: object FILE.bpf.o");
        if (!need_line_end()) return false;
    }
    out_.experiment.sources.push_back(std::move(source));
    return true;
}

bool Parser::license_line() {
    std::string text;
    if (!quoted(text) || !need_line_end()) return false;
    out_.experiment.license = std::move(text);
    return true;
}

bool Parser::attach_line() {
    Attach attach;
    skip_blanks();
    attach.at = here();
    attach.program = word();
    if (attach.program.empty()) return fail_expected("a program: attach PROGRAM PROBE");
    skip_blanks();
    const Place at = here();
    const std::string_view how = word();
    if (how.empty())
        return fail_expected("a place: a probe, `interface NAME`, `cgroup DIR`, `netns FILE`, `every N`, or `nowhere`");
    if (how == "interface" || how == "cgroup" || how == "netns" || how == "every") {
        attach.way = how;
        attach.target = word();
        if (attach.target.empty())
            return fail_expected(how == "interface" ? "the name of a network interface"
                                 : how == "every"   ? "a number, Hz: every 99"
                                                    : "a path");
        if (how == "interface") attach.egress = eat_word("egress");
    } else if (how == "nowhere") {
        attach.way = how;
    } else if (how.find(':') != std::string_view::npos || how.find('/') != std::string_view::npos) {
        attach.way = "section";
        attach.target = how;
        const size_t colon = attach.target.find(':');
        if (colon != std::string::npos && attach.target.find('/') > colon) attach.target[colon] = '/';
        if (attach.target.starts_with("tracepoint/") || attach.target.starts_with("tp/"))
            std::replace(attach.target.begin(), attach.target.end(), ':', '/');
    } else {
        Nearest near(how);
        for (std::string_view known : {"interface", "cgroup", "netns", "every", "nowhere"}) near.offer(known);
        return fail(
            at, format("`{}` is no place for a program", how),
            near.hint().empty()
                ? "a place is a probe, such as kprobe:vfs_read, or interface NAME, cgroup DIR, netns FILE, every N, nowhere"
                : near.hint());
    }
    if (!need_line_end()) return false;
    out_.experiment.attachments.push_back(std::move(attach));
    return true;
}

bool Parser::format_line() {
    Format format;
    skip_blanks();
    format.at = here();
    format.event = word();
    if (format.event.empty()) return fail_expected("an event: format EVENT \"...\", or format RING as STRUCT \"...\"");
    if (eat_word("as")) {
        format.ring = std::move(format.event);
        format.event = name();
        if (format.event.empty()) return fail_expected("a struct");
    }
    if (!pieces(format.pieces, true) || !need_line_end()) return false;
    for (const Format &other : out_.experiment.formats)
        if (other.event == format.event && other.ring == format.ring)
            return fail(format.at, rawbpf::format("{} has a format already, in line {}", format.event, other.at.line));
    out_.experiment.formats.push_back(std::move(format));
    return true;
}

} // namespace rawbpf::inline v0::experiment
