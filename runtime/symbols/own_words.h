// What the demanglers write of their own. Private to them, and to what tells symbols apart without demangling them.
//
//     _ZTV5Cache   ->   vtable for Cache        "Cache" stands in the symbol; "vtable" doesn't
//
// could_match() (runtime/link/function_names.h) relies on kOwnWords: a pattern's word that stands neither there nor in a symbol
// is in no name that the symbol reads as. Therefore the demanglers write Text, and a literal whose words the table lacks doesn't
// compile.
#pragma once

#include <cstddef>
#include <string_view>

namespace rawbpf::inline v0::symbols {

/// Types, operators, and what the compilers' own functions are called. Numbers, and words of less than kFewLetters, aren't
/// needed.
inline constexpr std::string_view kOwnWords =
    "_BitInt _Complex _Float _Imaginary __float128 __int128 alignof allocator anonymous auto basic_iostream basic_istream "
    "basic_ostream basic_string bfloat16_t bool char char16_t char32_t char8_t clone closure co_await const const_cast "
    "construction "
    "covariant decimal128 decimal32 decimal64 decltype default delete double dynamic_cast enum extern false float function guard "
    "half init iostream isize istream lambda literal long name namespace noexcept null nullptr object operator ostream parameter "
    "parm pixel punycode reference reinterpret_cast requires restrict return shim short signed sizeof static_cast string struct "
    "template temporary this throw thunk transaction true type typeid typeinfo union unnamed unsafe unsigned usize variable "
    "vector "
    "virtual void volatile vtable wchar_t wrapper";
inline constexpr size_t kFewLetters = 4; ///< shorter runs of letters are parts of too much

/// Cuts the first run of letters (and _) off `text`; empty in the end. Digits are no letters: demanglers write numbers, too.
constexpr std::string_view take_letters(std::string_view &text) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    while (!text.empty() && !letter(text.front())) text.remove_prefix(1);
    size_t end = 0;
    while (end < text.size() && letter(text[end])) ++end;
    const std::string_view run = text.substr(0, end);
    text.remove_prefix(end);
    return run;
}

/// Whether a demangler may have written this run of letters, or it is too short to tell.
constexpr bool may_be_own(std::string_view run) {
    return run.size() < kFewLetters || kOwnWords.find(run) != std::string_view::npos;
}

/// Whether the table has all words of what a demangler writes.
constexpr bool has_own_words(std::string_view text) {
    for (std::string_view run = take_letters(text); !run.empty(); run = take_letters(text))
        if (!may_be_own(run)) return false;
    return true;
}

void own_words_lacks_a_word_of_this_text(); // not constexpr, and nowhere defined: its call is the compiler's message

/// Something that a demangler writes: a literal, which is checked, or a part of the symbol.
class Text {
  public:
    constexpr Text() = default;
    consteval Text(const char *literal) : view_(literal) { // NOLINT: implicit, so that every literal comes this way
        if (!has_own_words(view_)) own_words_lacks_a_word_of_this_text();
    }
    /// `part`: of the symbol, or of another Text; a number.
    constexpr explicit Text(std::string_view part) : view_(part) {}
    [[nodiscard]] constexpr std::string_view view() const { return view_; }

  private:
    std::string_view view_;
};

} // namespace rawbpf::inline v0::symbols
