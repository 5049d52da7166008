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

// Words that demangling adds, which no symbol spells out: types, operators, and what the compilers' own functions are called.
constexpr std::string_view kAdded =
    "_BitInt _Complex _Imaginary _Float _Accum _Fract _Sat __float128 __int128 __vector abi alias alignof allocator anonymous "
    "namespace arg "
    "auto base basic_iostream basic_istream basic_ostream basic_string bfloat16_t bool char char16_t char32_t char8_t "
    "char_traits clone "
    "closure co_await cold const const_cast construction covariant ctor decltype decimal128 decimal32 decimal64 default argument "
    "delete "
    "double dtor dynamic_cast enable_if enum explicit extern false float for friend function generic guard half hidden i128 init "
    "initializer iostream isize istream lambda literal local long module mut name never noexcept non nullptr nullptr_t object "
    "operator "
    "ostream owner pack parameter parm pixel point pointer primary reference reinterpret_cast requires restrict return returning "
    "rvalue shim short signed sizeof specialization static_cast string struct template temporary this thread throw thunk trait "
    "transaction clone true type typeid typeinfo typename u128 union unnamed unsafe unsigned usize variable virtual vector void "
    "volatile vtable wchar_t wrapper";
constexpr size_t kFewLetters = 4; // shorter runs are parts of too much

// What stands between other characters of a pattern. Digits aren't counted on: demangling writes numbers of its own.
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

} // namespace

bool could_match(std::string_view pattern, std::string_view symbol) {
    for (size_t at = 0; at < pattern.size();) {
        size_t end = at;
        while (end < pattern.size() && is_letter(pattern[end])) ++end;
        const std::string_view run = pattern.substr(at, end - at);
        if (run.size() >= kFewLetters && symbol.find(run) == std::string_view::npos && kAdded.find(run) == std::string_view::npos)
            return false;
        at = std::max(end, at + 1);
    }
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
