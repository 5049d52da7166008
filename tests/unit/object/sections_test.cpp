// Section names: the whole list, exact and with targets.
#include "runtime/object/sections.h"

#include <set>

#include "runtime/base/format.h"

#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("sections: the list is whole and each name finds itself") {
    CHECK(section_kinds().size() == 116);
    std::set<std::string_view> seen;
    for (const SectionKind &kind : section_kinds()) {
        CHECK(seen.insert(kind.name).second);
        CHECK(find_section_kind(kind.name) == &kind);
        const std::string with_target = format("{}/x/y", kind.name);
        if (kind.target == SectionTarget::none) {
            CHECK(!find_section_kind(with_target));
        } else {
            CHECK(find_section_kind(with_target) == &kind);
            CHECK(section_target(kind, with_target) == "x/y");
        }
    }
}

TEST_CASE("sections: what the kinds say") {
    const SectionKind *kind = find_section_kind("?fentry.s/vfs_read");
    REQUIRE(kind);
    CHECK(kind->type == ProgramType::TRACING);
    CHECK(kind->attach_type == AttachType::TRACE_FENTRY);
    CHECK(kind->sleepable);
    CHECK(needs_attach_btf(*kind));
    CHECK(section_target(*kind, "?fentry.s/vfs_read") == "vfs_read");
    CHECK(find_section_kind("xdp.frags")->xdp_frags);
    CHECK(find_section_kind("perf_event")->type == ProgramType::PERF_EVENT);
    CHECK(!find_section_kind("perf_event/x"));
    CHECK(!find_section_kind("kprobes"));
    CHECK(!find_section_kind(""));
    CHECK(!needs_attach_btf(*find_section_kind("kprobe")));
}

TEST_CASE("sections: names of types") {
    CHECK(program_type_name(7) == "PERF_EVENT");
    CHECK(map_type_name(27) == "RINGBUF");
    CHECK(map_type_since(27) == "5.8");
    CHECK(attach_type_name(26) == "MODIFY_RETURN");
    CHECK(program_type_name(1000) == "?");
}
