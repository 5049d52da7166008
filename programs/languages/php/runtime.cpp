#include "programs/languages/php/runtime.h"

#include <algorithm>

#include "programs/languages/php/learn.h"
#include "programs/languages/php/recognise.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::languages::php {
namespace {

/// A text's characters, as much as there is of them; of an anonymous class, whose name goes on behind a zero with where it is,
/// only what is in front of that.
std::string text_of(const __u8 *bytes, uint32_t size) {
    if (size <= kText) return {};
    const uint64_t available = std::min<uint32_t>(size, LANGUAGE_TEXT_BYTES) - kText;
    const auto length = load<uint64_t>(reinterpret_cast<const std::byte *>(bytes) + kTextLength);
    std::string out(reinterpret_cast<const char *>(bytes) + kText, std::min(length, available));
    if (const size_t zero = out.find('\0'); zero != out.npos)
        out.resize(zero);
    else if (length > available)
        out += "...";
    return out;
}

Function function(const LanguageCode &code, Bytes, const Layout &) {
    Function out;
    out.name = text_of(code.name, code.name_bytes);
    if (const std::string owner = text_of(code.owner, code.owner_bytes); !owner.empty() && !out.name.empty())
        out.name = owner + "::" + out.name;
    if (code.whole != 0) {
        out.file = text_of(code.file, code.file_bytes);
        if (out.name.empty()) out.name = out.file.substr(out.file.rfind('/') + 1); // a script, or what it includes
    }
    out.line = code.line;
    out.address = code.address;
    out.evaluated = code.whole != 0;
    return out;
}

// Functions of PHP's own (internal) run native code at once, whoever calls them. A generator has a frame without function.
Part part(const Layout &, const Function *function, uint64_t id, uint64_t word) {
    const bool evaluated = !function || function->evaluated;
    return {id != 0 && evaluated && (LANGUAGE_MARK(word) & kTop) != 0, id == 0};
}

uint32_t line(const Layout &, const Function &, uint64_t word) { return static_cast<uint32_t>(word); }

} // namespace

const Runtime kRuntime = {"PHP", "/dev/zero", recognise, learn, nullptr, describe, function, part, line, true, true};

} // namespace rawbpf::inline v0::languages::php
