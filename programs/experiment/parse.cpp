// Lines, and blocks that are in another language.
//
// A line begins with a word that says what it is. Two kinds of blocks hold what others read: `asm { }` the assembler, `c { }` a
// compiler. Both get a text with as many lines in front as there are in the experiment, so that what they say of line 12 is about
// line 12.
#include "programs/experiment/parse.h"

#include <algorithm>

#include "asm/nearest.h"
#include "programs/experiment/parse_characters.h"
#include "programs/experiment/parsing.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {

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

void Parser::unknown_word(std::string_view word, TextPlace at, bool in_block) {
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
    const TextPlace at = here();
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
    const TextPlace at = here();
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
    const TextPlace at = here();
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
    const TextPlace at = here();
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
