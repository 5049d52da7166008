// Rust's first mangling, which borrows the Itanium shape so that old tools show something:
//
//     _ZN  4core  3fmt  5Write  9write_fmt  17h0123456789abcdef  E  .llvm.77
//          path, each part with its length        hash               suffix
//
// The hash (always "h" and 16 hex digits) tells it from C++, and is left out of the readable name. Parts are escaped, since
// linkers want plain letters: "$LT$" is <, "$u20$" a space, ".." is "::", and a leading "_" shields a "$".
// Source: rustc's compiler/rustc_symbol_mangling/src/legacy.rs.
#include "runtime/symbols/demangle.h"

#include "runtime/symbols/clones.h"
#include "runtime/symbols/text.h"
#include "runtime/symbols/utf8.h"

namespace rawbpf::inline v0::symbols {
namespace {

struct Escape {
    std::string_view code;
    char letter;
};
constexpr Escape kEscapes[] = {{"SP", '@'}, {"BP", '*'}, {"RF", '&'}, {"LT", '<'},
                               {"GT", '>'}, {"LP", '('}, {"RP", ')'}, {"C", ','}};

bool append_escape(std::string &out, std::string_view code) {
    for (const Escape &escape : kEscapes)
        if (escape.code == code) {
            out += escape.letter;
            return true;
        }
    if (code.size() < 2 || code.size() > 7 || code[0] != 'u') return false;
    uint32_t value = 0;
    for (char c : code.substr(1)) {
        int digit = hex_digit(c);
        if (digit < 0) return false;
        value = value << 4 | static_cast<uint32_t>(digit);
    }
    return value >= 0x20 && value != 0x7f && append_utf8(out, value); // no control characters on somebody's terminal
}

void append_part(std::string &out, std::string_view part) {
    if (part.starts_with("_$")) part.remove_prefix(1);
    while (!part.empty()) {
        if (part.starts_with("..")) {
            out += "::";
            part.remove_prefix(2);
        } else if (part[0] == '$') {
            size_t end = part.find('$', 1);
            if (end == std::string_view::npos || !append_escape(out, part.substr(1, end - 1))) {
                out += part; // not an escape that rustc makes: as it stands
                return;
            }
            part.remove_prefix(end + 1);
        } else {
            out += part[0];
            part.remove_prefix(1);
        }
    }
}

bool is_hash(std::string_view part) {
    if (part.size() != 17 || part[0] != 'h') return false;
    for (char c : part.substr(1))
        if (hex_digit(c) < 0) return false;
    return true;
}

} // namespace

std::optional<std::string> demangle_rust_legacy(std::string_view mangled) {
    if (!mangled.starts_with("_ZN")) return std::nullopt;
    mangled.remove_prefix(3);
    std::string out;
    std::string_view held; // the last part seen: shown only when another follows, for the final one is the hash
    while (!mangled.starts_with('E')) {
        size_t length = 0, digits = 0;
        for (; digits < mangled.size() && mangled[digits] >= '0' && mangled[digits] <= '9'; ++digits) {
            length = length * 10 + static_cast<size_t>(mangled[digits] - '0');
            if (length > mangled.size()) return std::nullopt;
        }
        if (length == 0 || mangled.size() - digits < length) return std::nullopt;
        if (!held.empty()) {
            if (!out.empty()) out += "::";
            append_part(out, held);
        }
        held = mangled.substr(digits, length);
        mangled.remove_prefix(digits + length);
    }
    mangled.remove_prefix(1);
    if (out.empty() || !is_hash(held) || (!mangled.empty() && mangled[0] != '.')) return std::nullopt;
    append_clones(out, mangled);
    return out;
}

} // namespace rawbpf::inline v0::symbols
