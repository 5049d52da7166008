// Looks: how many there are. How long they wait is the machine's affair; tests/cli asks `top` and `map watch` about Ctrl-C.
#include "cli/waiting.h"

#include <csignal>
#include <unistd.h>

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::cli;

TEST_CASE("looks: there is a last one at the end, and none behind it") {
    Result<Looks> looks = Looks::begin({.every_ns = 3'600'000'000'000, .duration_ns = 0});
    REQUIRE(looks);
    CHECK(looks->next().value_or(false));
    CHECK_FALSE(looks->next().value_or(true));
    CHECK_FALSE(looks->next().value_or(true));
}

TEST_CASE("looks: a look that takes longer than all of them was the last") {
    Result<Looks> looks = Looks::begin({.every_ns = 1, .duration_ns = 5'000'000});
    REQUIRE(looks);
    CHECK(looks->next().value_or(false));
    while (looks->elapsed_ns() < 5'000'000) usleep(1000);
    CHECK_FALSE(looks->next().value_or(true));
}

TEST_CASE("looks: a signal makes the last one due at once") {
    Result<Looks> looks = Looks::begin({.every_ns = 3'600'000'000'000});
    REQUIRE(looks);
    REQUIRE(::kill(::getpid(), SIGTERM) == 0); // kept by Looks
    CHECK(looks->next().value_or(false));
    CHECK_FALSE(looks->next().value_or(true));
}
