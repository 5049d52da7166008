// Tests that aren't: what tests/vm/lines_test runs to see that programs read the runner's lines as they are meant.
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "tests/support/test.h"

namespace {

bool told_to(const char *what) {
    const char *request = std::getenv("RAWBPF_SAMPLE");
    return request != nullptr && std::strcmp(request, what) == 0;
}

} // namespace

TEST_CASE("sample: passes") { CHECK(true); }

TEST_CASE("sample: a name: with colons, commas and: needs nothing") {
    if (told_to("pass")) return;
    SKIP("needs a reason: one\nwith colons: and lines");
}

TEST_CASE("sample: a name") { SKIP("with colons, commas and: needs nothing: needs another reason"); }

TEST_CASE("sample: fails: now and then") { CHECK_MESSAGE(told_to("pass"), "the reason"); }

TEST_CASE("sample: never comes back") {
    while (told_to("hang")) pause();
}

TEST_CASE("sample: dies") {
    if (told_to("die")) (void)raise(SIGKILL);
}

TEST_CASE("sample: passes: at last") {
    FLAKY("wrong: in the\nfirst of two");
    CHECK_MESSAGE(!told_to("fail"), "wrong in both");
}

TEST_CASE("sample: is the last") { CHECK(true); }
