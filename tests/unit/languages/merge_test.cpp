// Two lists to one stack, and whether they prove each other.
#include "programs/languages/merge.h"

#include <random>
#include <string>

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::languages;

namespace {

struct Result {
    std::string stack; // leaf first: native frames by letters (E evaluates), the language's by digits
    Merged how;
};

/// `list`: digits, leaf first; '|' ends a group, '-' is a frame that only ends one.
Result merged(const std::string &native, const std::string &list, bool rooted = true, bool early = false) {
    std::vector<bool> evaluates;
    for (const char c : native) evaluates.push_back(c == 'E');
    std::vector<ListFrame> frames;
    for (const char c : list) {
        if (c == '|')
            frames.back().ends_group = true;
        else
            frames.push_back({static_cast<uint32_t>(c), c == '-', c == '-'});
    }
    Result out;
    out.how = merge(
        evaluates, frames, rooted, early, [&](size_t i) { out.stack += native[i]; },
        [&](uint32_t place) { out.stack += static_cast<char>(place); });
    return out;
}

} // namespace

TEST_CASE("merge: a group in the place of each function that evaluates") {
    CHECK(merged("aEbEc", "12|3|").stack == "a12b3c");
    CHECK(merged("aEbEc", "12|3|").how == Merged::equal);
    CHECK(merged("aEbEc", "12-3-").stack == "a12b3c"); // shims
    CHECK(merged("abc", "").stack == "abc");
    CHECK(merged("abc", "").how == Merged::equal);
}

TEST_CASE("merge: the leaf's function that isn't in the list yet stays") {
    const Result one = merged("EbEc", "3|");
    CHECK(one.stack == "Eb3c");
    CHECK(one.how == Merged::one_more);
    CHECK(merged("aEbEc", "3|").how == Merged::one_more); // in what prepares its frame
    CHECK(merged("xyEbEc", "3|").how == Merged::astray);  // what calls on is in a list, another interpreter's
}

TEST_CASE("merge: without the root both are counted from the leaf") {
    CHECK(merged("aEb", "1|2|3|", false).stack == "a1b23");
    CHECK(merged("aEb", "1|2|3|", false).how == Merged::astray);
    CHECK(merged("aEb", "12", false).stack == "a12b"); // the list was cut: its last group has no end
}

TEST_CASE("merge: more groups than functions are astray, and none is lost") {
    const Result more = merged("aEb", "1|2|");
    CHECK(more.how == Merged::astray);
    CHECK(more.stack == "1a2b");
    CHECK(merged("abc", "1|").stack == "1abc");
}

TEST_CASE("merge: what native code is about to call isn't shown yet, where such frames are known") {
    const Result one = merged("aEb", "1|2|", true, true);
    CHECK(one.how == Merged::one_less);
    CHECK(one.stack == "a2b");
    CHECK(merged("aEb", "-2|", true, true).how == Merged::one_less);
    CHECK(merged("aEb", "13|2|", true, true).how == Merged::astray); // one that has called another one runs
    CHECK(merged("aEb", "1|2|3|", true, true).how == Merged::astray);
    CHECK(merged("aEb", "1|2|", false, true).how == Merged::astray);
}

TEST_CASE("merge: what a thread begins with is no group") {
    const ListFrame function{1, false}, shim{0, true, true};
    const auto left = [](std::vector<ListFrame> list) {
        drop_base(list);
        return list.size();
    };
    CHECK(left({function, shim, shim}) == 2);
    CHECK(left({shim}) == 0);
    CHECK(left({function, shim}) == 2); // it was cut, or is another build's
    CHECK(left({function}) == 1);
    CHECK(left({}) == 0);
}

TEST_CASE("merge: every frame comes out once, in its order, whatever the lists are") {
    std::mt19937 random(7);
    for (int round = 0; round < 20000; ++round) {
        std::string native, list;
        for (unsigned n = random() % 12; n > 0; --n) native += random() % 3 == 0 ? 'E' : static_cast<char>('a' + random() % 20);
        for (unsigned n = random() % 12; n > 0; --n) {
            list += static_cast<char>('0' + random() % 10);
            if (random() % 2 != 0) list += '|';
        }
        const Result out = merged(native, list, random() % 2 != 0);
        std::string digits, letters, wanted_digits, wanted_letters;
        for (const char c : out.stack) (c >= '0' && c <= '9' ? digits : letters) += c;
        for (const char c : list)
            if (c != '|') wanted_digits += c;
        for (const char c : native)
            if (c != 'E') wanted_letters += c;
        std::erase(letters, 'E');
        REQUIRE(digits == wanted_digits);
        REQUIRE(letters == wanted_letters);
    }
}
