// Names and strings as C and C++ take them.
#include "programs/inspect/c_words.h"

#include "runtime/base/format.h"

namespace rawbpf::inline v0::inspect {
namespace {

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

} // namespace

std::string identifier(std::string_view text) {
    std::string out;
    for (char c : text) out += letter(c) ? c : '_';
    if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out.insert(0, 1, '_');
    return out;
}

std::string section_word(std::string_view section) {
    while (!section.empty() && section.front() == '.') section.remove_prefix(1);
    return identifier(section);
}

std::string commented(std::string_view text) {
    std::string out;
    for (char c : text) {
        if (!out.empty() && ((c == '/' && out.back() == '*') || (c == '*' && out.back() == '/'))) out += ' ';
        out += c >= 0x20 && c != 0x7f ? c : '?';
    }
    return out;
}

std::string unique(std::set<std::string> &taken, std::string wanted) {
    std::string name = wanted;
    for (int n = 2; !taken.insert(name).second; ++n) name = format("{}_{}", wanted, n);
    return name;
}

void append_bytes(std::string &out, Bytes bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) append(out, "{}{},", i % 24 ? "" : "\n    ", static_cast<unsigned>(bytes[i]));
}

std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\')
            out += {'\\', c};
        else if (c >= 0x20 && c < 0x7f)
            out += c;
        else
            append(out, "\\{:03o}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
    return out + '"';
}

} // namespace rawbpf::inline v0::inspect
