// How large the frames of made code are, by what stacks say of it.
#include "programs/processes/frame_size.h"

#include <vector>

#include "tests/support/test.h"

using rawbpf::processes::FrameSize;

namespace {

/// As many stacks, of which each says the same.
void ask(FrameSize &size, uint32_t stacks, int16_t words) {
    for (uint32_t i = 0; i < stacks; ++i) {
        size.looked();
        size.ask([&](int16_t tried) { return tried == words; });
    }
}

} // namespace

TEST_CASE("frame size: it is known when two of three stacks say the same") {
    FrameSize size;
    CHECK(size.asks());
    ask(size, 22, 4);
    CHECK(size.asks());
    CHECK_FALSE(size.words());
    ask(size, 10, 0);
    CHECK_FALSE(size.asks());
    CHECK(size.words() == 4);
}

TEST_CASE("frame size: where stacks disagree there is none") {
    FrameSize size;
    ask(size, 21, 4);
    ask(size, 11, 6);
    CHECK_FALSE(size.asks());
    CHECK_FALSE(size.words());
    FrameSize nowhere;
    ask(nowhere, 32, 0);
    CHECK_FALSE(nowhere.asks());
    CHECK_FALSE(nowhere.words());
}

TEST_CASE("frame size: the smallest that leads on is taken") {
    FrameSize size;
    std::vector<int16_t> tried;
    const auto leads = [&](int16_t words) {
        tried.push_back(words);
        return words == 3 || words == 7;
    };
    size.ask(leads);
    CHECK(tried == std::vector<int16_t>{1, 2, 3});
    tried.clear();
    size.ask([&](int16_t words) {
        tried.push_back(words);
        return false;
    });
    CHECK(tried.size() == FrameSize::kMost);
}

TEST_CASE("frame size: a process whose stacks don't end there is left alone after some hundred of them") {
    FrameSize size;
    for (uint32_t i = 0; i < FrameSize::kLooked; ++i) {
        CHECK(size.asks());
        size.looked();
    }
    CHECK_FALSE(size.asks());
    CHECK_FALSE(size.words());
}
