// A thread's context: taken apart in bounds; and the program that reads it, with and without.
#include "programs/labels/thread_context.h"

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "programs/capture/parse_record.h"
#include "programs/labels/layout.h"
#include "programs/languages/layout.h"
#include "programs/profile/profile_dsl.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::labels;

namespace {

std::vector<std::byte> record_of(std::string_view attributes, uint16_t size, uint8_t valid = 1) {
    std::vector<std::byte> out(LABEL_HEAD_BYTES + attributes.size());
    std::memset(out.data(), 0xab, 16);
    std::memset(out.data() + 16, 0xcd, 8);
    out[LABEL_VALID_AT] = std::byte{valid};
    std::memcpy(out.data() + LABEL_SIZE_AT, &size, sizeof size);
    std::memcpy(out.data() + LABEL_HEAD_BYTES, attributes.data(), attributes.size());
    return out;
}

} // namespace

TEST_CASE("thread context: ids, and of two attributes with one key the last") {
    const std::string_view attributes("\0\2/a\1\5alice\0\2/b\7\0", 17);
    const std::vector<std::byte> record = record_of(attributes, 17);
    const auto context = parse_thread_context(record);
    REQUIRE(context);
    CHECK(hex_id(context->trace_id) == "abababababababababababababababab");
    CHECK(hex_id(context->span_id) == "cdcdcdcdcdcdcdcd");
    CHECK(context->find(0) == "/b");
    CHECK(context->find(1) == "alice");
    CHECK(context->find(7) == "");
    CHECK(!context->find(2));
    CHECK(context->has_above(7));
    CHECK(!context->has_above(8));
    CHECK(!context->cut);
    CHECK(hex_id(Bytes(record).subspan(LABEL_HEAD_BYTES, 1)).empty());
}

TEST_CASE("thread context: what isn't whole ends it, whatever its sizes say") {
    const std::string_view attributes("\0\2/a\1\5alice", 11);
    for (size_t cut = 0; cut <= LABEL_HEAD_BYTES + attributes.size(); ++cut) {
        // Its own allocation: a sanitizer sees a byte too many.
        std::vector<std::byte> whole = record_of(attributes, 11);
        const std::vector<std::byte> record(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(cut));
        const auto context = parse_thread_context(record);
        CHECK(context.has_value() == (cut >= LABEL_HEAD_BYTES));
        if (!context) continue;
        CHECK(context->attributes.size() == (cut == LABEL_HEAD_BYTES + 11 ? 2 : cut >= LABEL_HEAD_BYTES + 4 ? 1 : 0));
        CHECK(context->cut == (cut < LABEL_HEAD_BYTES + 11));
    }
    const auto huge = parse_thread_context(record_of(attributes, UINT16_MAX));
    REQUIRE(huge);
    CHECK(huge->attributes.size() == 2);
    CHECK(huge->cut);
    CHECK(parse_thread_context(record_of(attributes, 4))->attributes.size() == 1); // what follows isn't meant
    CHECK(parse_thread_context(record_of(attributes, 0))->attributes.empty());
    for (const uint8_t valid : {0, 3, 255}) CHECK(!parse_thread_context(record_of(attributes, 11, valid)));
}

TEST_CASE("thread context: a goroutine has a number in place of ids") {
    std::vector<std::byte> record = record_of(std::string_view("\0\2/a\1\0", 6), 6, LABEL_GOROUTINE);
    const uint64_t number = 17;
    std::memcpy(record.data(), &number, sizeof number);
    const auto context = parse_thread_context(record);
    REQUIRE(context);
    CHECK(context->goroutine);
    CHECK(context->goroutine_id == 17);
    CHECK(context->trace_id.empty());
    CHECK(context->span_id.empty());
    CHECK(context->find(0) == "/a");
    CHECK(context->find(1) == "");
    CHECK(!parse_thread_context(record_of("", 0))->goroutine);
}

TEST_CASE("labels: the profile with and without") {
    const auto maps_of = [](const Unit &unit) {
        std::set<std::string> out;
        for (const MapDef &map : unit.maps) out.insert(map.name);
        return out;
    };
    ProfileConfig config{};
    config.want_kernel = config.want_user = 1;
    config.wakeup_bytes = 1 << 16;
    UnwindProgramOptions unwind;
    unwind.has_bpf_loop = unwind.has_task_pt_regs = true;
    const StackCountingOptions counting;
    for (const bool by_tables : {false, true})
        for (const bool ids : {false, true})
            for (const int more : {0, 1, 2, 3}) {
                const LabelParts parts{ids, (more & 1) != 0, (more & 2) != 0, false};
                const UnwindProgramOptions *walk = by_tables ? &unwind : nullptr;
                const Unit with = profile_unit(config, walk, &counting, by_tables, &parts),
                           without = profile_unit(config, walk, &counting, by_tables);
                auto expected = maps_of(without);
                CHECK(expected.count("label_processes") == 0);
                expected.insert("label_processes");
                if (parts.attributes) expected.insert("label_keys");
                CHECK(maps_of(with) == expected);
            }
}

TEST_CASE("labels: words behind those of an interpreter's frames, if they fit") {
    std::vector<uint64_t> record(sizeof(RecordHead) / 8 + 6, 7);
    record.back() = 9;
    RecordHead head{};
    head.user_bytes = 16;
    const auto taken = [&](uint32_t language, uint32_t labels) {
        head.ending = language << 16 | labels << 25;
        return stacks_of(head, std::as_bytes(std::span(record)), sizeof(RecordHead));
    };
    const auto both = taken(2, 1);
    REQUIRE(both);
    CHECK(both->language.size() == 2);
    CHECK(both->language[1] == 7);
    REQUIRE(both->labels.size() == 8);
    CHECK(load<uint64_t>(both->labels.data()) == 9);
    CHECK(both->rest.size() == 8);
    CHECK(taken(0, 4));
    CHECK(taken(256, 0) == std::nullopt);
    CHECK(taken(1, 4) == std::nullopt);
    CHECK(taken(0x1ff, 0x7f) == std::nullopt);
    // A whole list and a whole record are told apart.
    CHECK(RAWBPF_LANGUAGE_WORDS(2u * LANGUAGE_FRAMES << 16 | static_cast<uint32_t>(LABEL_MOST_WORDS) << 25) ==
          2 * LANGUAGE_FRAMES);
    CHECK(RAWBPF_LABEL_WORDS(2u * LANGUAGE_FRAMES << 16 | static_cast<uint32_t>(LABEL_MOST_WORDS) << 25) == LABEL_MOST_WORDS);
}
