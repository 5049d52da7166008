#include "programs/languages/perl/runtime.h"

#include <algorithm>

#include "programs/languages/perl/learn.h"
#include "programs/languages/perl/names.h"
#include "programs/languages/perl/recognise.h"

namespace rawbpf::inline v0::languages::perl {
namespace {

Bytes text(const __u8 *bytes, uint32_t size) {
    return {reinterpret_cast<const std::byte *>(bytes), std::min<size_t>(size, LANGUAGE_TEXT_BYTES)};
}

Function function(const LanguageCode &code, Bytes, const Layout &) {
    Function out;
    out.file = file_of(text(code.file, code.file_bytes));
    // What is in the place of the first line are its flags: a lexical sub (`my sub`) has no package.
    const std::string package = (code.line & kLexical) != 0 ? "" : name_of(text(code.owner, code.owner_bytes));
    out.name = shown(package, name_of(text(code.name, code.name_bytes)), out.file);
    out.address = code.address;
    return out;
}

// What native code calls ends with no operation to go on with: a sub has nothing to return to, and the block by which sort
// compares, or a pattern's code, has nothing behind it. So a sub that is the last that such code calls has nothing to return to,
// either, though no native code called it: it lies in the same room (what is tied, overloaded and the like has one of its own).
Part part(const Layout &layout, const Function *, uint64_t id, uint64_t word) {
    const uint64_t mark = LANGUAGE_MARK(word);
    const uint64_t kind = layout.process.kinds >> (mark % 16 * LANGUAGE_KIND_BITS) & 15;
    const bool alone = (mark & LANGUAGE_MARK_ROOM) != 0;
    if (kind == LANGUAGE_KIND_NONE) return {true, true, !alone};
    if (kind == LANGUAGE_KIND_ROOT) return {true, id == 0};
    const bool sub = kind == LANGUAGE_KIND_FUNCTION;
    return {(mark & LANGUAGE_MARK_ZERO) != 0, id == 0 || (sub && (mark & kInRegex) != 0),
            sub && (mark & (kInRegex | kOfRegex)) != 0 && !alone};
}

uint32_t line(const Layout &, const Function &, uint64_t word) { return static_cast<uint32_t>(word); }

} // namespace

const Runtime kRuntime = {"Perl", "", recognise, learn, nullptr, describe, function, part, line, true};

} // namespace rawbpf::inline v0::languages::perl
