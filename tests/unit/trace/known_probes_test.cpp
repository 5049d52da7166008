// The table of what USDT probes' arguments mean.
#include "programs/trace/known_probes.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;

TEST_CASE("trace known probes: the table that is built in is read to its end") {
    const KnownProbes &known = KnownProbes::built_in();
    const Signature *query = known.find("postgresql", "query__start"); // the first project
    REQUIRE(query);
    REQUIRE(query->parameters.size() == 1);
    CHECK(query->parameters[0].name == "query");
    CHECK(query->parameters[0].type.show == Show::text);
    const Signature *dial = known.find("go", "net_dial_end"); // the last line
    REQUIRE(dial);
    REQUIRE(dial->parameters.size() == 6);
    CHECK(dial->parameters[0].type.show == Show::counted);
    CHECK(dial->parameters[1].is_length);
    CHECK_FALSE(dial->parameters[4].is_length);
    CHECK(known.find("ruby", "method__entry")->parameters[0].name == "class");
    const Signature *entry = known.find("hotspot", "method__entry");
    REQUIRE(entry);
    CHECK(entry->parameters[1].name == "class");
    CHECK(entry->parameters[1].type.show == Show::counted);
    CHECK(entry->parameters[2].is_length);
    CHECK(known.find("libvirt", "object_new")->parameters[1].type.show == Show::text);
    CHECK(known.find("postgresql", "no_such_probe") == nullptr);
    CHECK(known.size() > 100);
}

TEST_CASE("trace known probes: a user's table adds and replaces") {
    KnownProbes known = KnownProbes::built_in();
    const size_t before = known.size();
    REQUIRE(known.add("# mine\r\n\n  shop:order(int id, const char *what, u32 what_len)\npython:gc__start(u8 level)", "t"));
    CHECK(known.size() == before + 1);
    CHECK(known.find("shop", "order")->parameters[1].type.show == Show::counted);
    CHECK(known.find("python", "gc__start")->parameters[0].name == "level");

    const auto wrong = [&](const char *table) {
        const Result<void> added = known.add(table, "my.probes");
        return added ? std::string() : added.error().message();
    };
    CHECK(wrong("shop:a()\nshop(int)").find("my.probes:2: \"shop(int)\" isn't PROVIDER:NAME(ARGUMENTS)") != std::string::npos);
    CHECK(wrong("shop:a(nonsense x)").find("my.probes:1: type `nonsense") != std::string::npos);
    CHECK(wrong(":a(int)") != "");
    CHECK(wrong("shop:(int)") != "");
}
