// The assembler: one pass over the text, then the names.
//
//      text --line by line--> instructions --end of function--> labels --end of text--> names of maps, functions ... --> Unit
//
// Nothing is allocated for a token: a cursor moves over the bytes, operators and mnemonics are looked up in tables that are
// made from opcodes.h at compile time, and only names that wait for their definition are stored. When a statement fails, the
// assembler reports where and why and goes on with the next line, so that one run shows many mistakes. It counts lines and
// columns only then.
//
// Every function here that returns bool returns false after it reported an error.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2") // -Os, as releases are built, takes three times as long
#endif

#include "asm/assemble.h"

#include <algorithm>

#include "asm/assembling.h"
#include "asm/c_spelling.h"
#include "asm/lookup.h"
#include "asm/nearest.h"

namespace rawbpf::inline v0 {

namespace assembling {

namespace {

constexpr size_t kMostComplaints = 20, kDeepestInclude = 16, kMostSources = 256;

} // namespace

// ---- words ----------------------------------------------------------------------------------------------------------------

bool Assembler::fail(const char *at, std::string message, std::string hint) {
    if (out_.complaints.size() >= kMostComplaints) {
        stop_ = true;
        return false;
    }
    if (after_semicolon_) hint = "`;` separates statements; `#` and `//` begin a comment";
    out_.complaints.push_back(complaint(at, std::move(message), std::move(hint)));
    Complaint &last = out_.complaints.back();
    const std::string_view said = last.at.message;
    if (last.hint.empty() && (said.starts_with("expected ") || said.starts_with("there is no ")))
        last.hint = hint_for_c_spelling(last.line);
    return false;
}

void Assembler::warn(const char *at, std::string message, std::string hint) {
    if (out_.warnings.size() < kMostComplaints)
        out_.warnings.push_back(complaint(at, "warning: " + std::move(message), std::move(hint)));
}

/// Of a place in the text that is read.
Complaint Assembler::complaint(const char *at, std::string message, std::string hint) const {
    Complaint complaint;
    const char *text = source_->text.data();
    const char *start = at;
    while (start > text && start[-1] != '\n') --start;
    complaint.at.file = source_->name;
    complaint.at.line = 1 + static_cast<int>(std::count(text, start, '\n'));
    complaint.at.column = 1 + static_cast<int>(at - start);
    for (char &c : message) // nothing that a terminal would obey
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    complaint.at.message = std::move(message);
    const char *end = start;
    while (*end != '\n' && *end != '\0') ++end;
    complaint.line.assign(start, end);
    complaint.hint = std::move(hint);
    return complaint;
}

std::string Assembler::found() const {
    const char *end = p_;
    if (*p_ == '\n' || *p_ == '\0' || *p_ == '#' || *p_ == ';' || *p_ == '\r') return "the end of the line";
    if (is_name(*p_))
        while (is_name(*end) && end - p_ < 40) ++end;
    else
        ++end;
    std::string out = "`";
    for (const char *at = p_; at < end; ++at) out += static_cast<unsigned char>(*at) < 0x20 || *at == 0x7f ? '?' : *at;
    return out + "`";
}

bool Assembler::expected(std::string_view what, std::string hint) {
    return fail(p_, "expected " + std::string(what) + ", found " + found(), std::move(hint));
}

void Assembler::skip_more() {
    for (;; ++p_) {
        if (*p_ == ' ' || *p_ == '\t' || *p_ == '\r') continue;
        if (*p_ != '/' || p_[1] != '*') return;
        const char *at = p_ + 2; // a comment on one line
        while (*at != '\n' && *at != '\0' && (*at != '*' || at[1] != '/')) ++at;
        if (*at != '*') return;
        p_ = at + 1;
    }
}

bool Assembler::at_end() {
    skip_space();
    return *p_ == '\n' || *p_ == '#' || *p_ == ';' || *p_ == '\0' || (*p_ == '/' && p_[1] == '/');
}

void Assembler::skip_line() {
    while (*p_ != '\n' && *p_ != '\0') ++p_;
}

bool Assembler::eat_word(std::string_view word) {
    skip_space();
    size_t i = 0;
    while (i < word.size() && p_[i] == word[i]) ++i;
    if (i < word.size() || is_name(p_[i])) return false;
    p_ += i;
    return true;
}

bool Assembler::expected_char(char c) {
    const char text[] = {'`', c, '`', 0};
    return expected(text);
}

std::string_view Assembler::name() {
    skip_space();
    if (!is_name_start(*p_) && *p_ != '.') return {};
    const char *start = p_;
    while (is_name(*p_)) ++p_;
    return {start, static_cast<size_t>(p_ - start)};
}

bool Assembler::string(std::string &out) {
    out.clear();
    if (!eat('"')) return expected("a text in quotation marks");
    auto digit = [](char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    };
    for (; *p_ != '"'; ++p_) {
        if (*p_ == '\n' || *p_ == '\0') return fail(p_, "the text has no closing quotation mark");
        if (*p_ != '\\') {
            out += *p_;
            continue;
        }
        switch (*++p_) {
        case 'n': out += '\n'; break;
        case 't': out += '\t'; break;
        case 'r': out += '\r'; break;
        case '0': out += '\0'; break;
        case '\\':
        case '"':
        case '\'': out += *p_; break;
        case 'x':
            if (digit(p_[1]) < 0 || digit(p_[2]) < 0) return fail(p_, "expected two hexadecimal digits behind \\x");
            out += static_cast<char>(digit(p_[1]) * 16 + digit(p_[2]));
            p_ += 2;
            break;
        default:
            return fail(p_, "there is no escape \\" + std::string(1, *p_), "\\n, \\t, \\r, \\0, \\\\, \\\", \\xHH are known");
        }
    }
    ++p_;
    return true;
}

// ---- lines ----------------------------------------------------------------------------------------------------------------

/// What prints have in front of an instruction: "12:", "12: (bf)", "12:<tab>bf 61 00 00 00 00 00 00<tab>".
bool Assembler::take_prefix() {
    auto hex = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); };
    if (is_digit(*p_)) {
        const char *end = p_;
        while (hex(*end)) ++end;
        if (*end == ' ' && end[1] == '<' && end - p_ == 16) { // llvm-objdump's heading: 0000000000000000 <name>:
            p_ = end + 1;
            return true;
        }
        if (*end != ':')
            return expected("an instruction",
                            is_digit(*p_) ? "put a colon after a number before an instruction: `12: exit`" : "");
        p_ = end + 1;
        skip_space();
        for (int slot = 0; slot < 2; ++slot) { // eight bytes, or sixteen
            const char *at = p_;
            int bytes = 0;
            for (; bytes < 8 && hex(at[0]) && hex(at[1]) && (at[2] == ' ' || at[2] == '\t' || at[2] == '\n'); ++bytes)
                at += at[2] == '\n' ? 2 : 3;
            if (bytes < 8) break;
            p_ = at;
            skip_space();
        }
    }
    if (*p_ == '(' && hex(p_[1]) && hex(p_[2]) && p_[3] == ')') {
        semicolon_comments_ = true; // what the verifier knows about the registers stands behind one
        auto digit = [](char c) { return is_digit(c) ? c - '0' : (c | 32) - 'a' + 10; };
        wide_hint_ = digit(p_[1]) * 16 + digit(p_[2]);
        p_ += 4;
        skip_space();
    }
    return true;
}

bool Assembler::statement() {
    const char *start = p_;
    statement_at_ = start;
    conformance_ = false;
    wide_hint_ = -1;
    if (open_struct_ != nullptr) return struct_line();
    if (is_digit(*p_) || *p_ == '(') {
        if (!take_prefix()) return false;
        if (at_end()) return true;
        start = p_;
    }
    switch (*p_) {
    case '*': return store();
    case '.': {
        const char *end = p_ + 1;
        while (is_name(*end)) ++end;
        if (*end != ':') return directive(p_);
        break;
    }
    case '<': { // llvm-objdump's labels
        ++p_;
        const char *at = p_;
        std::string_view label_name = name();
        if (label_name.empty() || !eat('>') || !eat(':')) return expected("a label");
        return bind(label_name, at);
    }
    case 'r':
    case 'w':
        if (at_register()) return assignment();
        break;
    default: break;
    }
    const std::string_view word = name();
    if (word.empty()) return expected("an instruction, a label or a directive");
    if (*p_ == ':') {
        ++p_;
        return bind(word, start);
    }
    switch (word[0]) {
    case 'i':
        if (word == "if") return branch();
        break;
    case 'g':
        if (word == "goto") return jump(*isa::find("ja"));
        if (word == "gotol") return jump(*isa::find("ja32"));
        if (word == "gotox") return jump(*isa::find("gotox"));
        break;
    case 'm':
        if (word == "may_goto") return jump(*isa::find("may_goto"));
        break;
    case 'c':
        if (word == "call") return call();
        if (word == "callx") return jump(*isa::find("callx"));
        break;
    case 'e':
        if (word == "exit") return emit(*isa::find("exit"), {}, {});
        break;
    case 'l':
        if (word == "lock") return lock();
        break;
    case 's':
        if (word == "store_release") {
            skip_space();
            if (*p_ != '(') break;
            ++p_;
            unsigned bits = 0;
            bool is_signed = false;
            Operands operands;
            Places places;
            Register from;
            std::string_view field;
            if (!memory_type(bits, is_signed) || !address(operands, true, places, field) || !need(',')) return false;
            skip_space();
            places.src = p_;
            if (!reg(from) || !need(')')) return false;
            const Form *form = isa::kFormTable.find(Shape::store_release, bits, "store_release");
            if (form == nullptr || is_signed) return no_form(start, "store_release of this type");
            operands.src = from.number;
            if (from.bits == 32 && bits == 64) return register_bits(*form, from, places.src);
            return emit(*form, operands, places, field);
        }
        break;
    default: break;
    }
    skip_space();
    if (*p_ == '=' && p_[1] != '=') {
        ++p_;
        return named(word, start);
    }
    conformance_ = true;
    return mnemonic(word, start);
}

/// A name to which a number is assigned, and that isn't a register: a constant, or a register misspelt.
bool Assembler::named(std::string_view word, const char *at) {
    const std::string near = near_register(word);
    if (!near.empty())
        return fail(at,
                    "there is no register `" + std::string(word) + "`; they are r0 to r10, and w0 to w10 for their lower halves",
                    "did you mean `" + near + "`? A constant with this name takes .const " + std::string(word) + " = n");
    if (!constant(word, at)) return false;
    if (source_->includer == nullptr) unused_.emplace(word, at);
    return true;
}

/// Statements between semicolons. In front of everything a semicolon begins a comment: llvm-objdump and bpftool print lines of C
/// in that way.
bool Assembler::line() {
    semicolon_comments_ = false;
    after_semicolon_ = false;
    if (at_end()) return true;
    for (;;) {
        const size_t before = insn_count_;
        const char *start = p_;
        if (!statement()) return false;
        if (at_end()) {
            if (*p_ != ';' || semicolon_comments_) return true;
            do ++p_;
            while (at_end() && *p_ == ';');
            if (at_end()) return true;
            after_semicolon_ = true;
            continue;
        }
        // Labels may stand in front of an instruction; anything else ends with its line or at a semicolon.
        if (insn_count_ != before || open_struct_ != nullptr || *start == '.' || p_ == start)
            return expected("the end of the line");
        const char *last = p_;
        while (last > start && (last[-1] == ' ' || last[-1] == '\t')) --last;
        if (last == start || last[-1] != ':') return expected("the end of the line");
    }
}

void Assembler::read(Source &source) {
    Source *const outer = source_;
    const char *const outer_p = p_, *const outer_start = line_start_;
    const uint32_t outer_number = line_number_;
    source_ = &source;
    p_ = source.text.data();
    const char *end = p_ + source.text.size();
    line_number_ = 1;
    while (p_ < end && !stop_) {
        line_start_ = p_;
        line();
        skip_line();
        if (*p_ == '\0' && p_ < end) {
            fail(p_, "a byte 0 in the text");
            ++p_;
            continue;
        }
        ++p_;
        ++line_number_;
    }
    source_ = outer;
    p_ = outer_p;
    line_start_ = outer_start;
    line_number_ = outer_number;
}

bool Assembler::include(const char *at) {
    std::string path;
    if (!string(path)) return false;
    size_t depth = 0;
    for (Source *up = source_; up != nullptr; up = up->includer) ++depth;
    if (depth >= kDeepestInclude) return fail(at, ".include is nested more than 16 deep");
    if (sources_.size() >= kMostSources) return fail(at, "more than 256 files are included");
    if (!at_end()) return expected("the end of the line");
    auto source = std::make_unique<Source>();
    if (options_.include == nullptr || !options_.include(options_.context, path, source->text))
        return fail(at, "`" + path + "` can't be read");
    source->name = path;
    source->includer = source_;
    source->text += '\n';
    sources_.push_back(std::move(source));
    read(*sources_.back());
    return true;
}

Assembled Assembler::run(std::string_view text) {
    out_.unit.name = options_.name;
    auto source = std::make_unique<Source>();
    source->name = options_.name;
    source->text = std::string(text) + '\n';
    sources_.push_back(std::move(source));
    source_ = sources_.back().get();
    p_ = source_->text.data();
    read(*sources_.back());
    source_ = sources_.front().get();
    if (open_struct_ != nullptr) fail(open_at_, "the struct has no .end");
    end_function();
    resolve();
    if (out_.unit.functions.empty() && out_.complaints.empty()) fail(source_->text.data(), "it has no instructions");
    if (out_.complaints.empty()) split_called();
    for (auto &[name, at] : unused_)
        warn(at, "the constant `" + name + "` isn't used; registers are r0 to r10, and w0 to w10 for their lower halves",
             ".const " + name + " = n declares a constant");
    // What was found missing at the end belongs where it stands; there are few.
    for (auto *kind : {&out_.complaints, &out_.warnings})
        for (size_t i = 1; i < kind->size(); ++i)
            for (size_t j = i;
                 j > 0 && (*kind)[j].at.file == (*kind)[j - 1].at.file && (*kind)[j].at.line < (*kind)[j - 1].at.line; --j)
                std::swap((*kind)[j], (*kind)[j - 1]);
    return std::move(out_);
}

} // namespace assembling

Assembled assemble(std::string_view text, const AssembleOptions &options) { return assembling::Assembler(options).run(text); }

namespace {
std::string report_of(const std::vector<Complaint> &complaints) {
    std::string out;
    for (const Complaint &complaint : complaints) {
        out += to_string(complaint.at) + "\n";
        const std::string line = std::to_string(complaint.at.line);
        out += "  " + line + " | ";
        for (char c : complaint.line) out += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? ' ' : c == 0x7f ? ' ' : c;
        out += "\n  " + std::string(line.size(), ' ') + " | ";
        for (int i = 0; i + 1 < complaint.at.column; ++i)
            out += static_cast<size_t>(i) < complaint.line.size() && complaint.line[static_cast<size_t>(i)] == '\t' ? '\t' : ' ';
        out += "^\n";
        if (!complaint.hint.empty()) out += "  hint: " + complaint.hint + "\n";
    }
    return out;
}
} // namespace

std::string Assembled::report() const { return report_of(complaints); }
std::string Assembled::warning_report() const { return report_of(warnings); }

} // namespace rawbpf::inline v0
