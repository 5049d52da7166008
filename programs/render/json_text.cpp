// Text in JSON. Symbols, comms and paths are bytes that somebody else chose: not always UTF-8, not always printable.
// nlohmann-json knows what JSON makes of each, and this is the only file that includes it (a second and a half of compile time).
#ifndef JSON_NOEXCEPTION
#define JSON_NOEXCEPTION 1
#endif
#include <algorithm>

#include <nlohmann/json.hpp>

#include "programs/render/json_line.h"

namespace rawbpf::inline v0::render {

bool writes_json() { return true; }

void append_json(std::string &out, std::string_view text) {
    // Nearly all names are plain: a tenth of the time.
    const auto plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
    if (std::all_of(text.begin(), text.end(), plain)) {
        out += '"';
        out += text;
        out += '"';
        return;
    }
    // Nearly all of it needs no care at all.
    if (plain_start(text) == text.size() && text.find_first_of("\"\\") == std::string_view::npos) {
        out += '"';
        out += text;
        out += '"';
        return;
    }
    constexpr bool kAsciiOnly = true;
    out += nlohmann::json(text).dump(-1, ' ', kAsciiOnly, nlohmann::json::error_handler_t::replace);
}

} // namespace rawbpf::inline v0::render
