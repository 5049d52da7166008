// PHP's and Ruby's words from memory that a test makes, and that lies; Ruby's lines from tables.
#include <cstring>
#include <random>

#include "programs/languages/php/learn.h"
#include "programs/languages/ruby/learn.h"
#include "programs/languages/ruby/lines.h"
#include "programs/languages/runtime.h"

#include "tests/support/test.h"
#include "tests/unit/languages/made_memory.h"

using namespace rawbpf;
using namespace rawbpf::languages;

namespace {

using Made = test::MadeMemory;
constexpr uint64_t kBase = Made::kBase, kSize = Made::kSize;

constexpr uint64_t kGlobals = kBase + 0x1000, kFrames = kBase + 0x4000, kFunctions = kBase + 0x8000, kTexts = kBase + 0x10000,
                   kInstructions = kBase + 0x18000;

// A PHP whose words are elsewhere by `shift`.
void build_php(Made &memory, unsigned frames, uint64_t shift) {
    const auto text = [&](uint64_t at, const char *of) {
        memory.put<uint32_t>(at + 4, 0x16);
        memory.put<uint64_t>(at + 16, std::strlen(of));
        for (size_t i = 0; i < std::strlen(of); ++i) memory.put(at + 24 + i, of[i]);
    };
    memory.put<uint64_t>(kGlobals + 400 + shift, kFrames);
    for (unsigned i = 0; i < frames; ++i) {
        const uint64_t frame = kFrames + i * 0x80, function = kFunctions + i * 0x100, at = kInstructions + i * 0x40;
        memory.put<uint64_t>(frame, at);
        memory.put<uint64_t>(frame + 24, function);
        memory.put<uint64_t>(frame + 48, i + 1 < frames ? frame + 0x80 : 0);
        memory.put<uint8_t>(frame + 42, i + 1 < frames ? 0 : 3);
        memory.put<uint8_t>(function, 2);
        if (i + 1 < frames) memory.put<uint64_t>(function + 8, kTexts + i * 0x40);
        text(kTexts + i * 0x40, "f");
        memory.put<uint64_t>(function + 136 + shift, kTexts + 0x4000);
        memory.put<uint32_t>(function + 144 + shift, 10 * i + 1);
        memory.put<uint32_t>(function + 148 + shift, 10 * i + 9);
        memory.put<uint32_t>(at + 24, 10 * i + 5);
    }
    text(kTexts + 0x4000, "/x.php");
}

std::optional<Layout> learnt(Made &memory, std::optional<Layout> (*learn)(Memory &, const Lesson &, std::string &),
                             std::string &why) {
    Memory reader(memory);
    Interpreter file;
    file.exports["executor_globals"] = kGlobals - 0x1000;
    return learn(reader, {file, 0x1000, Arch::x86_64, kBase + 0x2000, {}}, why);
}

} // namespace

TEST_CASE("learn: PHP's words, wherever they are") {
    for (const uint64_t shift : {uint64_t{0}, uint64_t{16}, uint64_t{24}}) {
        Made memory;
        build_php(memory, 5, shift);
        std::string why;
        const auto layout = learnt(memory, php::learn, why);
        REQUIRE_MESSAGE(layout, why);
        CHECK(layout->process.start == kGlobals + 400 + shift);
        CHECK(layout->process.code == 24);
        CHECK(layout->process.previous == 48);
        CHECK(layout->process.mark == 42);
        CHECK(layout->process.position == 0);
        CHECK(layout->process.line_of == 24);
        CHECK(layout->process.file == 136 + shift);
        CHECK(layout->frames == 5);
        CHECK(moved(layout->process, -uint64_t{0x1000}).start == layout->process.start - 0x1000);
    }
    Made one;
    build_php(one, 1, 0);
    std::string why;
    CHECK_FALSE(learnt(one, php::learn, why));
    CHECK(why == "its stacks have 1 PHP functions, and it takes 2 of them");
}

TEST_CASE("learn: rubbish and circles of PHP and Ruby end") {
    std::mt19937_64 random(5);
    std::string why;
    for (int round = 0; round < 60; ++round) {
        Made memory;
        build_php(memory, 6, 0);
        if (round == 0) memory.put<uint64_t>(kFrames + 5 * 0x80 + 48, kFrames);
        for (int n = 0; n < (round == 0 ? 0 : 2000); ++n)
            memory.put<uint64_t>(kBase + random() % (kSize / 8) * 8,
                                 random() % 2 ? kBase + random() % (kSize / 8) * 8 : random() % 0x8000);
        const auto layout = learnt(memory, php::learn, why);
        if (round == 0) CHECK_FALSE(layout);
        (void)learnt(memory, ruby::learn, why);
    }
}

TEST_CASE("lines: Ruby's entries by an index that counts") {
    // Entries begin at the positions 0, 3, 60 and 130.
    std::vector<uint64_t> index(6 + 10);
    const auto count = [](unsigned position) { return 1u + (position >= 3) + (position >= 60) + (position >= 130); };
    for (unsigned i = 0; i < 54; ++i) index[i / 9] |= uint64_t{count(i)} << (i % 9 * 7);
    index[6] = count(53);
    const unsigned bits[] = {60 - 54, 130 - 54};
    for (const unsigned bit : bits) index[8 + bit / 64] |= uint64_t{1} << (bit % 64);
    for (unsigned part = 1; part < 8; ++part) index[7] |= static_cast<uint64_t>((part > 0) + (part > 1)) << ((part - 1) * 9);
    const std::vector<int32_t> entries = {11, 0, 0, 12, 0, 0, 13, 0, 0, 14, 0, 0};
    for (unsigned position = 0; position < 300; ++position) {
        CHECK(ruby::entry_at(std::as_bytes(std::span(index)), position) == count(position));
        CHECK(ruby::line_at(std::as_bytes(std::span(entries)), 12, std::as_bytes(std::span(index)), position) ==
              10 + count(position));
    }
    CHECK_FALSE(ruby::entry_at(std::as_bytes(std::span(index)), 54 + 512));
    CHECK(ruby::line_at(std::as_bytes(std::span(entries)).first(24), 12, std::as_bytes(std::span(index)), 61) == 0);
    std::mt19937_64 random(9);
    for (int round = 0; round < 20000; ++round) {
        std::vector<uint8_t> bytes(random() % 160);
        for (uint8_t &one : bytes) one = static_cast<uint8_t>(random());
        const Bytes all = std::as_bytes(std::span(bytes));
        (void)ruby::line_at(all, 12, all, random() % 2 ? random() % 2000 : random());
        (void)ruby::string_of(all, random() % 2 ? ruby::kEmbedded : ruby::kEmbeddedShort);
    }
}

TEST_CASE("strings: Ruby's, embedded in two ways, and apart") {
    std::vector<uint8_t> object(64);
    const auto text = [&](uint64_t flags, uint32_t at, const char *characters) {
        std::memcpy(object.data(), &flags, 8);
        std::memcpy(object.data() + at, characters, std::strlen(characters));
    };
    text(5 | 4 << 14, 16, "main");
    CHECK(ruby::string_of(std::as_bytes(std::span(object)), ruby::kEmbeddedShort) == "main");
    uint64_t length = 3;
    text(5, 24, "abc");
    std::memcpy(object.data() + 16, &length, 8);
    CHECK(ruby::string_of(std::as_bytes(std::span(object)), ruby::kEmbedded) == "abc");
    length = 40;
    text(5 | ruby::kFar, 32, "/a/path");
    std::memcpy(object.data() + 16, &length, 8);
    CHECK(ruby::string_of(std::as_bytes(std::span(object)).first(39), ruby::kEmbedded) == "/a/path...");
}
