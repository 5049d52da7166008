// The words that demanglers write of their own. A literal in a demangler whose words the table lacks doesn't compile: Text's
// constructor asks has_own_words(), which these tests ask, too.
#include "runtime/symbols/own_words.h"

#include <algorithm>
#include <string_view>

#include "tests/support/test.h"

using namespace rawbpf::symbols;

static_assert(has_own_words("vtable for "));
static_assert(has_own_words("{lambda("));
static_assert(has_own_words("unsigned __int128"));
static_assert(has_own_words("*mut ")); // short: parts of too much
static_assert(!has_own_words("metaclass for "));
static_assert(!has_own_words("vtable metaclass"));
static_assert(!has_own_words("vtable_of"));

TEST_CASE("own words: runs of letters are cut off one by one") {
    std::string_view text = "{unnamed type#12} __int128";
    for (const std::string_view run : {"unnamed", "type", "__int", "", ""}) CHECK(take_letters(text) == run);
}

TEST_CASE("own words: the table holds each word once, in order, and none that is too short") {
    std::string_view rest = kOwnWords, last;
    while (!rest.empty()) {
        const std::string_view word = rest.substr(0, rest.find(' '));
        CHECK_MESSAGE(word.size() >= kFewLetters, word);
        CHECK_MESSAGE(last < word, word);
        last = word;
        rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    }
}
