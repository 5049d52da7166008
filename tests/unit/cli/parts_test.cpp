#include "cli/parts.h"

#include <string_view>
#include <vector>

#include "tests/support/test.h"

#include "cli/commands.h"

using namespace rawbpf;
using namespace rawbpf::cli;

TEST_CASE("parts: a list of words has a word or not") {
    CHECK(has_word("asm trace", "asm"));
    CHECK(has_word("asm trace", "trace"));
    CHECK_FALSE(has_word("asm trace", "tra"));
    CHECK_FALSE(has_word("asm trace", "usdt"));
    CHECK_FALSE(has_word("", "asm"));
}

TEST_CASE("parts: what was left out is named, and the option that brings it") {
    const Error error = left_out(Part::emulator, "exec");
    CHECK(error.kind == Errc::unsupported);
    CHECK(error.message() == "exec: this build leaves out the emulator");
    CHECK(error.hint == "build rawbpf with -Dparts=...,exec, or without -Dparts and -Dprofile: then it has all parts");
}

TEST_CASE("parts: a command is there or was left out, never neither") {
    for (const std::string_view name :
         {"trace", "custom", "usdt list", "usdt trace", "exec", "step", "inspect", "btf dump", "gen skeleton", "asm", "isa"}) {
        const size_t space = name.find(' ');
        std::vector<std::string_view> words = {name.substr(0, space)};
        if (space != std::string_view::npos) words.push_back(name.substr(space + 1));
        CAPTURE(name);
        CHECK((find_command(name) != nullptr) == !left_out_command(words).has_value());
    }
    const std::string_view nonsense[] = {"nonsense"};
    CHECK_FALSE(left_out_command(nonsense).has_value());
    CHECK_FALSE(left_out_command({}).has_value());
}
