// Symbols of C++ and Rust are mangled, and compilers append suffixes to the symbols of copies and parts of a function. People
// write neither: they write Cache*, Cache<int>::lookup, or a symbol that a tool has shown.
//
//      int ns::f<int>(void (*)(int)) const           the list begins at the last ( of the outermost level
//      ^^^ ~~~~~~~~~~ ^^^^^^^^^^^^^^^^^^^            the name behind the last space of that level, but for "operator new"
//
// A large program has hundreds of thousands of symbols, and demangling one takes microseconds: a pattern's own words tell most of
// them apart before (could_match).
//
// Suffixes: GCC's clones (gcc/symtab-clones.cc), parts split off (.part, .cold), LLVM's (.llvm.HASH, .cold).
#include "runtime/link/function_names.h"

#include <algorithm>

#include "runtime/symbols/clones.h"
#include "runtime/symbols/demangle.h"
#include "runtime/symbols/own_words.h"

namespace rawbpf::inline v0 {
namespace {

constexpr std::string_view kSuffixes[] = {".isra.", ".constprop.", ".part.",      ".cold",
                                          ".llvm.", ".lto_priv.",  ".localalias", ".clone."};

// Where what the compiler appended begins.
size_t suffix_at(std::string_view symbol) {
    size_t at = symbol.size();
    for (std::string_view suffix : kSuffixes) at = std::min(at, symbol.find(suffix));
    return at == 0 ? symbol.size() : at;
}

// The position of the ( that the ) at `close` closes; npos where there is none.
size_t opening(std::string_view text, size_t close) {
    int depth = 0;
    for (size_t i = close + 1; i-- > 0;) {
        if (text[i] == ')') ++depth;
        if (text[i] == '(' && --depth == 0) return i;
    }
    return std::string_view::npos;
}

} // namespace

bool could_match(std::string_view pattern, std::string_view symbol) {
    // Rust writes text among the arguments of a template in hexadecimal, behind a K.
    if (symbol.starts_with("_R") && symbol.find('K') != std::string_view::npos) return true;
    for (std::string_view run = symbols::take_letters(pattern); !run.empty(); run = symbols::take_letters(pattern))
        if (symbol.find(run) == std::string_view::npos && !symbols::may_be_own(run)) return false;
    return true;
}

std::string_view without_parameters(std::string_view readable) {
    const size_t close = readable.rfind(')');
    if (close == std::string_view::npos) return readable;
    // "(anonymous namespace)::f", "{lambda(int)#1}::operator()": nothing is a list but what stands last.
    const std::string_view behind = readable.substr(close + 1);
    if (behind.find("::") != std::string_view::npos || behind.find('}') != std::string_view::npos) return readable;
    const size_t open = opening(readable, close);
    if (open == std::string_view::npos || open == 0) return readable;
    std::string_view name = readable.substr(0, open);
    if (name.ends_with("operator")) return readable; // operator() without a list
    // What is returned, of templates.
    int depth = 0;
    const size_t operators = name.rfind("operator");
    for (size_t i = std::min(operators, name.size()); i-- > 0;) {
        if (name[i] == '>' || name[i] == ')' || name[i] == '}') ++depth;
        if (name[i] == '<' || name[i] == '(' || name[i] == '{') --depth;
        if (depth == 0 && name[i] == ' ') return name.substr(i + 1);
    }
    return name;
}

FunctionNames::FunctionNames(std::string_view of) : symbol(of) {
    const size_t at = suffix_at(of);
    suffix = std::string(of.substr(at));
    readable = symbols::demangle(of.substr(0, at));
    bare = std::string(readable == of.substr(0, at) ? std::string_view(readable) : without_parameters(readable));
}

std::string FunctionNames::shown() const {
    std::string out = readable;
    symbols::append_clones(out, suffix);
    return out;
}

bool FunctionNames::is(std::string_view wanted) const {
    return wanted == symbol || wanted == readable || wanted == bare || (!suffix.empty() && wanted == shown());
}

bool FunctionNames::match(std::string_view pattern) const {
    return matches_pattern(pattern, symbol) || matches_pattern(pattern, bare) || matches_pattern(pattern, readable);
}

} // namespace rawbpf::inline v0
