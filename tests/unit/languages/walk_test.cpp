// The program's part: it can be made for each machine and each configuration; what it sends is taken apart only where it fits.
#include "programs/languages/walk_dsl.h"

#include "programs/capture/parse_record.h"
#include "programs/profile/profile_dsl.h"

#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("languages: the profile with and without") {
    ProfileConfig config{};
    config.want_kernel = config.want_user = 1;
    config.wakeup_bytes = 1 << 16;
    UnwindProgramOptions unwind;
    unwind.has_bpf_loop = unwind.has_task_pt_regs = true;
    const StackCountingOptions counting;
    for (const bool copies : {false, true}) {
        unwind.copies = copies;
        const Unit with = profile_unit(config, &unwind, &counting, true),
                   without = profile_unit(config, &unwind, &counting, false);
        CHECK(with.maps.size() == without.maps.size() + 3);
        for (const MapDef &map : with.maps)
            if (map.name == "language_processes") CHECK(map.value_size == sizeof(LanguageProcess));
    }
}

TEST_CASE("languages: words at a record's end, if they fit") {
    std::vector<uint64_t> record(sizeof(RecordHead) / 8 + 6, 7);
    RecordHead head{};
    head.user_bytes = 16;
    const auto taken = [&](uint32_t words) {
        head.ending = words << 16;
        return stacks_of(head, std::as_bytes(std::span(record)), sizeof(RecordHead));
    };
    for (uint32_t words = 0; words <= 4; ++words) {
        const auto stacks = taken(words);
        REQUIRE(stacks);
        CHECK(stacks->user.size() == 2);
        CHECK(stacks->language.size() == words);
        CHECK(stacks->rest.size() == (4 - words) * 8);
    }
    CHECK_FALSE(taken(5));
    CHECK_FALSE(taken(0xffff));
}
