// How the frames of made code are left, by what stacks say of them.
#include "programs/processes/frame_search.h"

#include <vector>

#include "tests/support/test.h"

using rawbpf::UniformFrame;
using rawbpf::processes::FrameSearch;
using Leads = FrameSearch::Leads;

namespace {

/// As many stacks, of which each says the same; no words: nothing.
void ask(FrameSearch &search, uint32_t stacks, UniformFrame form) {
    for (uint32_t i = 0; i < stacks; ++i) {
        search.looked();
        search.ask([&](const UniformFrame &tried) {
            if (tried == form) return Leads::whole;
            return tried.words == form.words ? Leads::on : Leads::nowhere;
        });
    }
}

} // namespace

TEST_CASE("frame search: a form is known when two of three stacks say the same") {
    for (const UniformFrame form : {UniformFrame{4, 0}, UniformFrame{22, -4}, UniformFrame{32, -8}}) {
        FrameSearch search;
        CHECK(search.asks());
        ask(search, 22, form);
        CHECK(search.asks());
        CHECK_FALSE(search.found());
        ask(search, 10, {});
        CHECK_FALSE(search.asks());
        CHECK(search.found() == form);
    }
}

TEST_CASE("frame search: where stacks disagree there is none") {
    FrameSearch search;
    ask(search, 21, {4, 0});
    ask(search, 11, {4, -2});
    CHECK_FALSE(search.asks());
    CHECK_FALSE(search.found());
    FrameSearch biased; // a few stacks end in code that otherwise has frame pointers
    ask(biased, 20, {1, 0});
    for (int i = 0; i < 12; ++i) biased.against();
    CHECK_FALSE(biased.asks());
    CHECK_FALSE(biased.found());
    FrameSearch nowhere;
    ask(nowhere, 32, {});
    CHECK_FALSE(nowhere.asks());
    CHECK_FALSE(nowhere.found());
}

TEST_CASE("frame search: the smallest that leads to the root is taken; a saved rbp is looked for where one leads on") {
    FrameSearch search;
    std::vector<UniformFrame> tried;
    search.ask([&](const UniformFrame &form) {
        tried.push_back(form);
        if (form.words == 2) return Leads::on;
        return form.words == 3 || form.words == 7 ? Leads::whole : Leads::nowhere;
    });
    std::vector<UniformFrame> expected{{1, 0}, {2, 0}};
    for (int16_t fp = -2; fp >= -8; --fp) expected.push_back({2, fp});
    expected.push_back({3, 0});
    CHECK(tried == expected);
    tried.clear();
    search.ask([&](const UniformFrame &form) {
        tried.push_back(form);
        return Leads::nowhere;
    });
    CHECK(tried.size() == FrameSearch::kMost);
    tried.clear();
    search.ask([&](const UniformFrame &form) { // a process that lies
        tried.push_back(form);
        return Leads::on;
    });
    CHECK(tried.size() == FrameSearch::kMost + FrameSearch::kMostOn * FrameSearch::kMostSaved);
}

TEST_CASE("frame search: a process whose stacks don't end there is left alone after some hundred of them") {
    FrameSearch search;
    for (uint32_t i = 0; i < FrameSearch::kLooked; ++i) {
        CHECK(search.asks());
        search.looked();
    }
    CHECK_FALSE(search.asks());
    CHECK_FALSE(search.found());
}
