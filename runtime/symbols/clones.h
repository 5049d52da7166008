// What compilers append to the name of a copy of a function: ".cold", ".isra.0", ".part.2", ".llvm.123".
#pragma once

#include <string>
#include <string_view>

#include "runtime/symbols/own_words.h"

namespace rawbpf::inline v0::symbols {

/// Appends " [clone .cold]" for each such suffix, as c++filt and perf do; what has another form is appended as it stands.
inline void append_clones(std::string &out, std::string_view suffix) {
    auto digits = [&](size_t at) {
        while (at < suffix.size() && suffix[at] >= '0' && suffix[at] <= '9') ++at;
        return at;
    };
    while (suffix.size() > 1 && suffix[0] == '.') {
        size_t end = 1;
        while (end < suffix.size() && suffix[end] != '.') ++end;
        while (end + 1 < suffix.size() && suffix[end] == '.') { // ".llvm" takes its ".123" along
            size_t number = digits(end + 1);
            if (number == end + 1 || (number < suffix.size() && suffix[number] != '.')) break;
            end = number;
        }
        out += Text(" [clone ").view();
        out += suffix.substr(0, end);
        out += ']';
        suffix.remove_prefix(end);
    }
    out += suffix;
}

} // namespace rawbpf::inline v0::symbols
