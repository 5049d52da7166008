// The program's part: it can be made for each machine and each configuration; what it sends is taken apart only where it fits.
#include "programs/languages/walk_dsl.h"

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "programs/capture/parse_record.h"
#include "programs/languages/records.h"
#include "programs/profile/profile_dsl.h"
#include "programs/trace/languages.h"

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

TEST_CASE("languages: the walk's own records are no tool's") {
    RecordHead head{};
    for (const int32_t bytes : {0, 16, -14, -75}) {
        head.user_bytes = bytes;
        for (const uint32_t ending : {0u, uint32_t{LANGUAGE_IS_CODE}, 0xffffu}) {
            head.ending = ending;
            CHECK(language_record(head) == 0);
        }
    }
    head.user_bytes = LANGUAGE_RECORD;
    head.ending = LANGUAGE_IS_FRAMES;
    CHECK(language_record(head) == LANGUAGE_IS_FRAMES);
    CHECK(stack_bytes(head).all() == 0);
}

TEST_CASE("languages: a code's record says which number it explains, if it is whole") {
    LanguageCode code{};
    code.head.user_bytes = LANGUAGE_RECORD;
    code.head.ending = LANGUAGE_IS_CODE;
    code.id = 77;
    const auto bytes = std::as_bytes(std::span(&code, 1));
    CHECK(is_language_code(bytes));
    CHECK(language_code_of(bytes) == 77);
    CHECK(language_code_of(bytes.first(offsetof(LanguageCode, address))) == 77);
    CHECK_FALSE(language_code_of(bytes.first(sizeof(RecordHead))));
    CHECK_FALSE(is_language_code(bytes.first(sizeof(RecordHead) - 1)));
    code.head.ending = LANGUAGE_IS_FRAMES;
    CHECK_FALSE(language_code_of(bytes));
}

TEST_CASE("languages: frames in front of an event are that event's, or nobody's") {
    alignas(8) LanguageFrames frames{};
    frames.head.user_bytes = LANGUAGE_RECORD;
    frames.head.ending = LANGUAGE_IS_FRAMES;
    frames.head.tid = 7;
    frames.number = 99;
    frames.words[0] = 11, frames.words[1] = 12;
    const auto bytes = std::as_bytes(std::span(&frames, 1)).first(offsetof(LanguageFrames, words) + 16);
    trace::Languages languages;
    CHECK(languages.take(bytes));
    trace::Layout layout;
    layout.stack = sizeof(trace::Header);
    std::vector<std::byte> record(sizeof(trace::Header) + sizeof(trace::StackHead));
    trace::Event event;
    event.layout = &layout;
    event.header.tid = 7;
    const auto with = [&](uint64_t number) {
        trace::StackHead stack;
        stack.language = number;
        std::memcpy(record.data() + layout.stack, &stack, sizeof stack);
        event.record = record;
        return languages.of(event);
    };
    REQUIRE(with(99).size() == 2);
    CHECK(with(99)[1] == 12);
    CHECK(with(98).empty());
    CHECK(with(0).empty());
    event.header.tid = 8;
    CHECK(with(99).empty());
    frames.head.user_bytes = 0; // an event
    CHECK_FALSE(languages.take(bytes));
    CHECK(language_record(bytes.first(8)) == 0);
}
