// C++ names, as the Itanium ABI mangles them (which is what every compiler on Linux does).
//
//     "_ZN3foo3barIiEEvPKc.cold"  --Parser-->  tree  --print-->  "void foo::bar<int>(char const*) [clone .cold]"
//
// Every C++ standard library has this as abi::__cxa_demangle, but not for us: a name is input from somebody else's file, and that
// function has no bound on its output. "_Z1fSt4pairIiiES_IS0_S0_ES_IS1_S1_E..." doubles with each 11 letters, so a symbol of 226
// bytes makes it allocate 138 MB, and one of 400 brings the machine down. Here the text is at most kMaxText, the work in
// proportion, the depth of recursion a constant; a name that wants more stays mangled.
//
// The readable form is c++filt's, except that ">>" needs no space between since 2011.
#include "runtime/symbols/demangle.h"

#include "runtime/symbols/clones.h"
#include "runtime/symbols/cxx_parser.h"

namespace rawbpf::inline v0::symbols {
namespace {

constexpr size_t kMaxMangled = 32 << 10;
constexpr size_t kMaxText = 64 << 10;

} // namespace

std::optional<std::string> demangle_cxx(std::string_view mangled) {
    if (!mangled.starts_with("_Z") || mangled.size() > kMaxMangled) return std::nullopt;
    cxx::Parser parser(mangled);
    const cxx::Node *name = parser.mangled_name();
    if (!name) return std::nullopt;
    std::string text;
    if (!cxx::print(*name, text, kMaxText) || text.empty()) return std::nullopt;
    append_clones(text, parser.rest());
    return text;
}

} // namespace rawbpf::inline v0::symbols
