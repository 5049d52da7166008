// Escaping. A process chooses its own comm (prctl(PR_SET_NAME): any 15 bytes without a NUL), a JIT writes its own symbol names, a
// file system allows any path. All of it ends up in formats that split on spaces, semicolons and newlines, or in an XML document
// that one bad byte makes unreadable. So nothing is printed raw:
//
//      comm     bytes <= 0x20, 0x7f, '\' and ';'   ->  \xNN      reversible, one word
//      symbol   ';' -> ':', other controls         ->  \xNN      a ';' in Java's "Lfoo;" is no frame border
//               a space at either end              ->  \x20      a reader that trims its lines would lose the frame
//      XML      & < > " '                          ->  entities; what isn't UTF-8 or is forbidden by XML 1.0, 2.2 -> U+FFFD
#include "programs/render/text.h"

#include <algorithm>
#include <cctype>

#include "runtime/base/calendar.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::render {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd"; // U+FFFD

void append_hex_escape(std::string &out, unsigned char byte) {
    constexpr char digits[] = "0123456789abcdef";
    out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
}

struct Character {
    uint32_t code = 0;
    size_t size = 1; ///< bytes used
    bool valid = false;
};

// The next character of UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
Character next_character(std::string_view text) {
    auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    uint32_t lead = byte(0);
    if (lead < 0x80) return {lead, 1, true};
    size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4) return {};
    uint32_t code = lead & (0x7fu >> size);
    for (size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return {};
        code = code << 6 | (byte(i) & 0x3f);
    }
    constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
    return {code, size, true};
}

// What a terminal obeys, or what makes it show text in another order or on another line than it is in: controls (C0, DEL, C1),
// the marks, embeddings, overrides and isolates of bidirectional text, the separators of lines and paragraphs.
bool disturbs(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || (code >= 0x200e && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

bool xml_allows(uint32_t code) {
    return code == '\t' || code == '\n' || code == '\r' || (!disturbs(code) && code != 0xfffe && code != 0xffff);
}

} // namespace

// Each character as it is, or, where `special` says so or a terminal would obey it or it isn't UTF-8, its bytes as \xNN.
template <class F> static void append_escaped(std::string &out, std::string_view text, F special) {
    while (!text.empty()) {
        const Character c = next_character(text);
        const bool escape = !c.valid || disturbs(c.code) || special(c.code);
        for (char byte : text.substr(0, c.size)) {
            if (escape)
                append_hex_escape(out, static_cast<unsigned char>(byte));
            else
                out += byte;
        }
        text.remove_prefix(c.size);
    }
}

void append_comm(std::string &out, std::string_view comm) {
    if (comm.empty()) out += "[unknown]";
    append_escaped(out, comm, [](uint32_t c) { return c == ' ' || c == '\\' || c == ';'; });
}

void append_symbol(std::string &out, std::string_view symbol) {
    if (symbol.empty()) out += "[unknown]";
    const auto plain = [](unsigned char c) { return c > ' ' && c < 0x7f && c != ';'; };
    if (std::all_of(symbol.begin(), symbol.end(), plain)) { // nearly all names are
        out += symbol;
        return;
    }
    const std::string name = [&] {
        std::string copy(symbol);
        std::replace(copy.begin(), copy.end(), ';', ':');
        return copy;
    }();
    std::string_view inner = name;
    const bool first = inner.starts_with(' '), last = inner.size() > 1 && inner.ends_with(' ');
    inner.remove_prefix(first);
    inner.remove_suffix(last);
    if (first) append_hex_escape(out, ' ');
    append_escaped(out, inner, [](uint32_t) { return false; });
    if (last) append_hex_escape(out, ' ');
}

std::string frame_label(const Frame &frame) {
    std::string_view module = base_name(frame.module);
    if (!frame.symbol.empty() || module.empty()) return frame.symbol;
    return module.front() == '[' ? std::string(module) : format("[{}]", module);
}

std::string function_label(const Frame &frame) {
    if (!frame.symbol.empty() || frame.function_offset == 0) return frame_label(frame);
    return format("[{}+{:#x}]", base_name(frame.module), frame.function_offset);
}

void append_xml(std::string &out, std::string_view text) {
    while (!text.empty()) {
        Character c = next_character(text);
        std::string_view raw = text.substr(0, c.size);
        text.remove_prefix(c.size);
        if (!c.valid || !xml_allows(c.code))
            out += kReplacement;
        else if (c.code == '&')
            out += "&amp;";
        else if (c.code == '<')
            out += "&lt;";
        else if (c.code == '>')
            out += "&gt;";
        else if (c.code == '"')
            out += "&quot;";
        else if (c.code == '\'')
            out += "&#39;";
        else if (c.code < 0x20)
            append(out, "&#{};", c.code); // tab and line ends would be normalised to spaces in an attribute
        else
            out += raw;
    }
}

void append_quoted(std::string &out, std::string_view text) {
    const auto plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
    out += '"';
    while (!text.empty()) {
        size_t n = 0;
        while (n < text.size() && plain(text[n])) ++n;
        out += text.substr(0, n);
        text.remove_prefix(n);
        if (text.empty()) break;
        const size_t size = next_character(text).size;
        switch (text[0]) {
        case '"':
        case '\\': out += {'\\', text[0]}; break;
        case '\n': out += "\\n"; break;
        case '\t': out += "\\t"; break;
        default: append_escaped(out, text.substr(0, size), [](uint32_t) { return false; });
        }
        text.remove_prefix(size);
    }
    out += '"';
}

size_t plain_start(std::string_view text) {
    size_t n = 0;
    while (n < text.size() && text[n] >= 0x20 && text[n] < 0x7f) ++n;
    return n;
}

std::string printable(std::string_view text) {
    std::string out;
    append_printable(out, text);
    return out;
}

void append_line(std::string &out, std::string_view text) {
    append_printable(out, text);
    out += '\n';
}

void append_labels(std::string &out, const Labels &labels) {
    out += '{';
    for (const auto &[key, value] : labels) {
        if (out.back() != '{') out += ", ";
        append_printable(out, key);
        out += '=';
        append_quoted(out, value);
    }
    out += '}';
}

void append_folded_labels(std::string &out, const Labels &labels) {
    for (const auto &[key, value] : labels) {
        append_symbol(out, format("{}={}", key, value));
        out += ';';
    }
}

void append_label(std::string &out, std::string_view value) {
    std::string clean;
    append_utf8(clean, value);
    out += '"';
    for (char c : clean) {
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    out += '"';
}

void append_csv(std::string &out, std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return append_utf8(out, text);
    out += '"';
    std::string doubled;
    for (const char c : text) doubled.append(c == '"' ? 2 : 1, c);
    append_utf8(out, doubled);
    out += '"';
}

void append_printable(std::string &out, std::string_view text) {
    while (!text.empty()) {
        const size_t plain = plain_start(text);
        out += text.substr(0, plain);
        text.remove_prefix(plain);
        if (text.empty()) return;
        Character c = next_character(text);
        out += c.valid && !disturbs(c.code) ? text.substr(0, c.size) : kReplacement;
        text.remove_prefix(c.size);
    }
}

void append_utf8(std::string &out, std::string_view text) {
    while (!text.empty()) {
        const Character c = next_character(text);
        out += c.valid ? text.substr(0, c.size) : kReplacement;
        text.remove_prefix(c.size);
    }
}

void append_svg_text(std::string &out, int x, int y, std::string_view cls, std::string_view words) {
    append(out, "<text x=\"{}\" y=\"{}\"{}{}{}>", x, y, cls.empty() ? "" : " class=\"", cls, cls.empty() ? "" : "\"");
    append_xml(out, words);
    out += "</text>\n";
}

size_t columns(std::string_view text) {
    size_t n = 0;
    for (; !text.empty(); ++n) text.remove_prefix(next_character(text).size);
    return n;
}

std::string cut(std::string_view text, size_t wanted, std::string_view ellipsis) {
    if (columns(text) <= wanted) return std::string(text);
    size_t keep = wanted > columns(ellipsis) ? wanted - columns(ellipsis) : 0;
    size_t bytes = 0;
    for (size_t n = 0; n < keep; ++n) bytes += next_character(text.substr(bytes)).size;
    return std::string(text.substr(0, bytes)) + std::string(ellipsis);
}

std::string_view base_name(std::string_view path) {
    size_t slash = path.rfind('/');
    return slash == std::string_view::npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

std::string event_text(const RunInfo &run) {
    std::string out = ": ";
    append_printable(out, run.event);
    if (run.period > 1) append(out, ", one in {}", grouped(run.period));
    return out;
}

std::string grouped(uint64_t number) {
    std::string digits = format("{}", number);
    for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
    return digits;
}

std::string rfc3339(uint64_t wall_ns) {
    const uint64_t seconds = wall_ns / 1'000'000'000, of_day = seconds % 86400;
    const Date date = date_after_1970(seconds / 86400);
    return format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", date.year, date.month, date.day, of_day / 3600, of_day / 60 % 60,
                  of_day % 60, wall_ns % 1'000'000'000);
}

std::string shell_words(const std::vector<std::string> &words) {
    std::string out;
    for (const std::string &word : words) {
        if (!out.empty()) out += ' ';
        bool plain = !word.empty();
        for (unsigned char c : word)
            plain = plain && (isalnum(c) || c >= 0x80 ||
                              std::string_view("_-+=./:,@%^").find(static_cast<char>(c)) != std::string_view::npos);
        if (plain) {
            out += word;
            continue;
        }
        out += '\'';
        for (char c : word) c == '\'' ? out += "'\\''" : out += c;
        out += '\'';
    }
    return out;
}

} // namespace rawbpf::inline v0::render
