// The program's part: it can be made for each machine and each configuration; what it sends is taken apart only where it fits.
#include "programs/languages/walk_dsl.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "asm/builder.h"
#include "programs/capture/parse_record.h"
#include "programs/languages/records.h"
#include "programs/profile/profile_dsl.h"
#include "programs/trace/languages.h"
#include "runtime/emulator/machine.h"
#include "runtime/object/unit_object.h"
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

TEST_CASE("languages: what a frame's own byte holds is never taken for what ends a list") {
    constexpr uint32_t kPid = 7, kFrames = 256, kFrameBytes = 64, kPosition = 24, kMark = 32;
    constexpr uint64_t kNone = 0x5000;
    struct Scratch {
        RecordHead head;
        uint64_t frames[LanguageWalk::kMostWords];
    };
    Builder b("walk");
    LanguageWalk languages(b);
    const Rings rings(b, "events", 1 << 16);
    const MapRef scratch = b.array<Scratch>("scratch", 1);
    const MapRef memory = b.array<std::array<std::byte, (1 + kFrames) * kFrameBytes>>("memory", 1);
    Code &f = b.program("kprobe", "walk");
    const Slot pid = f.stack<uint32_t>("pid"), zero = f.stack<uint32_t>("zero");
    const Label none = f.label("none");
    f.mov(r6, r1);
    f.store<uint32_t>(pid, kPid);
    f.store<uint32_t>(zero, 0);
    f.call(helper::map_lookup_elem, memory, zero);
    f.jump_if(r0 == 0, none);
    f.call(helper::map_lookup_elem, scratch, zero);
    f.jump_if(r0 == 0, none);
    f.mov(r8, r0);
    f.mov(r9, 0);
    f.mov(r7, 0); // kept
    RecordPlace place;
    place.head = offsetof(Scratch, head);
    place.frames = offsetof(Scratch, frames);
    languages.walk(f, place, {pid, zero, f.stack<uint64_t>("counts"), f.stack<uint64_t>("state"), &rings});
    f.bind(none);
    f.ret(0);
    Built built = b.finish();
    REQUIRE_MESSAGE(built, built.report());
    ObjectSpec spec = object_of(*built).value();
    auto machine = emulator::Machine::create(spec);
    REQUIRE_MESSAGE(machine, machine.error().message());
    const auto map = [&](std::string_view name) -> emulator::EmulatedMap & {
        return **std::find_if((*machine)->maps().begin(), (*machine)->maps().end(),
                              [&](const auto &one) { return one->name() == name; });
    };
    std::vector<std::byte> context(512);
    REQUIRE((*machine)->set_memory(context));

    // 128 frames a walk: those whose bytes are 0 to 127, then the others.
    const uint64_t address = map("memory").value_address(0);
    const auto put = [&](uint64_t at, const auto &value) { std::memcpy(map("memory").value_at(0) + at, &value, sizeof value); };
    for (uint32_t i = 0; i < kFrames; ++i) {
        const uint64_t at = uint64_t{1 + i} * kFrameBytes;
        put(at, kNone);
        put(at + 8, i % 128 == 127 ? uint64_t{0} : address + at + kFrameBytes);
        put(at + kPosition, uint64_t{i});
        put(at + kMark, static_cast<uint8_t>(i));
    }
    for (const uint32_t first : {0u, 128u}) {
        put(0, address + uint64_t{1 + first} * kFrameBytes);
        LanguageProcess process{};
        process.start = address;
        process.none = kNone;
        process.previous = 8;
        process.position = kPosition;
        process.mark = kMark;
        process.window = kMark + 1;
        process.code_bytes = 8;
        REQUIRE(map("language_processes")
                    .update(reinterpret_cast<const uint8_t *>(&kPid), reinterpret_cast<const uint8_t *>(&process), 0) == 0);
        Scratch before{};
        before.head.ending = UNWIND_TABLES;
        std::memcpy(map("scratch").value_at(0), &before, sizeof before);
        REQUIRE((*machine)->enter(0));
        const auto ran = (*machine)->run();
        REQUIRE_MESSAGE(ran, ran.error().message());
        Scratch after;
        std::memcpy(&after, map("scratch").value_at(0), sizeof after);
        REQUIRE((after.head.ending >> 16) == 256);
        for (uint32_t i = 0; i < 128; ++i) {
            const uint32_t byte = first + i;
            INFO(byte);
            CHECK(after.frames[2 * i] == 0);
            CHECK(LANGUAGE_MARK(after.frames[2 * i + 1]) == (byte & LANGUAGE_MARKS));
        }
    }
}
