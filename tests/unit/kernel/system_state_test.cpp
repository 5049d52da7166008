// The texts of /proc and /sys, as kernels write them and as they don't.
#include "runtime/kernel/system_state.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("system state: settings are whole numbers") {
    CHECK(parse_setting("2\n") == 2);
    CHECK(parse_setting("-1\n") == -1);
    CHECK(parse_setting("  100000 ") == 100000);
    for (const char *text : {"", "\n", "yes", "1x", "1 2", "99999999999999999999", "-"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_setting(text));
    }
}

TEST_CASE("system state: lockdown's brackets") {
    CHECK(parse_chosen("none [integrity] confidentiality\n") == "integrity");
    CHECK(parse_chosen("[none] integrity confidentiality\n") == "none");
    CHECK(parse_chosen("none integrity") == "");
    CHECK(parse_chosen("]none[") == "");
    CHECK(parse_chosen("") == "");
}

TEST_CASE("system state: the list of security modules") {
    CHECK(parse_comma_list("capability,landlock,bpf\n") == std::vector<std::string>{"capability", "landlock", "bpf"});
    CHECK(parse_comma_list(",bpf,,") == std::vector<std::string>{"bpf"});
    CHECK(parse_comma_list("\n").empty());
}

TEST_CASE("system state: which user namespace") {
    CHECK(is_first_user_namespace("         0          0 4294967295\n"));
    CHECK_FALSE(is_first_user_namespace("         0     100000      65536\n"));
    CHECK_FALSE(is_first_user_namespace("0 0 4294967295\n0 0 1\n"));
    CHECK_FALSE(is_first_user_namespace("0 0"));
    CHECK_FALSE(is_first_user_namespace(""));
}
