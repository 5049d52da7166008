// Section names: the whole list, exact and with targets.
#include "runtime/object/sections.h"

#include <set>

#include "asm/kinds.h"
#include "runtime/base/format.h"

#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("sections: the list is whole and each name finds itself") {
    CHECK(section_kinds().size() >= 116);
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
    CHECK(program_type_word(7) == "perf_event");
    CHECK(attach_type_word(uint32_t(AttachType::TCX_INGRESS)) == "tcx_ingress");
    CHECK(link_type_word(uint32_t(LinkType::KPROBE_MULTI)) == "kprobe_multi");
    CHECK(link_type_word(99) == "type 99");
}

TEST_CASE("sections: the rows of types agree with each other and with the kernel's names") {
    // What a small program of a type is loaded with: one at most, and it is for programs of that type.
    for (uint32_t type = 0; type < kProgramTypeCount; ++type) {
        int usual = 0;
        for (const AttachTypeRow &row : kAttachTypes) usual += row.usual && row.program == ProgramType{type};
        CHECK(usual <= 1);
        const ProgramTypeRow &row = program_type_row(type);
        CHECK((row.since.empty() == (type == 0)));
        CHECK(!row.context.starts_with("struct"));
    }
    CHECK(usual_attach_type(ProgramType::SK_LOOKUP) == AttachType::SK_LOOKUP);
    CHECK(usual_attach_type(ProgramType::KPROBE) == AttachType{0});
    // A section's attach type is for programs of the section's type; SK_SKB's and the like without one have 0.
    for (const SectionKind &kind : section_kinds())
        if (kind.attach_type != AttachType{0}) CHECK(attach_type_row(uint32_t(kind.attach_type)).program == kind.type);
    // Links that are tried by attaching to nothing need an errno that proves them.
    for (const AttachTypeRow &row : kAttachTypes)
        if (row.asked == AttachQuestion::link) CHECK(link_type_row(uint32_t(row.link)).refusal != 0);
    CHECK(first_attach_type(LinkType::TRACING) == uint32_t(AttachType::TRACE_FENTRY));
    CHECK(first_attach_type(LinkType{99}) == kAttachTypeCount);
}
