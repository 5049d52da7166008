// Learning from memory that a test makes: interpreters that never were, with their words in other places; and memory that lies.
#include "programs/languages/cpython/learn.h"

#include <cstring>
#include <random>

#include "tests/support/test.h"
#include "tests/unit/languages/made_memory.h"

using namespace rawbpf;
using namespace rawbpf::languages;

namespace {

using Made = test::MadeMemory;
constexpr uint64_t kBase = Made::kBase, kSize = Made::kSize;

struct Shape { // where an interpreter has what
    uint64_t slot, first, second, code, previous, position, size, name, file, line, table, text, head = 16;
};

constexpr uint64_t kTypes = kBase + 0x1000, kNames = kBase + 0x2000, kThread = kBase + 0x4000, kState = kBase + 0x6000,
                   kBetween = kBase + 0x7000, kFrames = kBase + 0x8000, kCodes = kBase + 0x10000, kTexts = kBase + 0x20000;

constexpr uint64_t kUnits = 40; // of each function's instructions

void build(Made &memory, const Shape &shape, unsigned frames) {
    memory.put(kTypes + shape.head + 16, shape.size);
    memory.put(kTypes + shape.head + 24, uint64_t{2}); // bytes of a unit
    memory.put(kTypes + shape.head + 224, kNames);
    const std::pair<const char *, uint64_t> members[] = {
        {"co_filename", shape.file}, {"co_name", shape.name}, {"co_firstlineno", shape.line}, {"co_linetable", shape.table}};
    uint64_t at = kNames, text = kNames + 0x400;
    for (const auto &[name, offset] : members) {
        memory.put_text(text, name);
        memory.put(at, text);
        memory.put(at + 16, offset);
        at += 40, text += 32;
    }
    memory.put(kThread + shape.slot, kState);
    memory.put(kState + shape.first, shape.second == UINT64_MAX ? kFrames : kBetween);
    if (shape.second != UINT64_MAX) memory.put(kBetween + shape.second, kFrames);
    for (unsigned i = 0; i < frames; ++i) {
        const uint64_t frame = kFrames + i * 0x100, code = kCodes + i * 0x400, file = kTexts + i * 0x100;
        memory.put(frame + shape.code, code);
        memory.put(frame + shape.previous, i + 1 < frames ? frame + 0x100 : 0);
        // What lies close behind the function's instructions isn't a position.
        for (uint64_t word = 0; word < 88; word += 8)
            if (word != shape.code && word != shape.previous) memory.put(frame + word, code + shape.size + 2 * kUnits + word);
        memory.put(frame + shape.position, code + shape.size + 2 * i);
        memory.put(code + shape.head - 8, kTypes);
        memory.put(code + shape.head, kUnits);
        memory.put(code + shape.file, file);
        memory.put(file + shape.head, 5);
        memory.put_text(file + shape.text, "/x.py");
    }
}

std::optional<Layout> learnt(Made &memory, std::string &why, std::span<const LanguageProcess> refuted = {},
                             uint32_t version = 0x030b02f0, uint64_t runtime = 0) {
    Memory reader(memory);
    cpython::Build of;
    of.code_type = kTypes;
    of.version = version;
    of.runtime = runtime;
    return cpython::learn(reader, of, Arch::x86_64, kThread, refuted, why);
}

} // namespace

TEST_CASE("learn: words are found wherever a build has them") {
    const Shape shapes[] = {
        {792, 56, 8, 32, 48, 56, 184, 112, 104, 72, 128, 48},            // 3.11
        {808, 72, UINT64_MAX, 0, 8, 56, 200, 120, 112, 68, 136, 40},     // 3.13
        {808, 72, UINT64_MAX, 0, 8, 56, 216, 136, 128, 84, 152, 56, 32}, // 3.13 without a lock
        {0x180, 16, UINT64_MAX, 40, 64, 16, 160, 96, 24, 48, 88, 40},    // none that there is
    };
    for (const Shape &shape : shapes) {
        Made memory;
        build(memory, shape, 6);
        std::string why;
        const auto layout = learnt(memory, why);
        REQUIRE_MESSAGE(layout, why);
        CHECK(layout->process.start == shape.slot);
        CHECK(layout->process.hops == (shape.second == UINT64_MAX ? 1 : 2));
        CHECK(layout->process.hop[0] == shape.first);
        CHECK(layout->process.code == shape.code);
        CHECK(layout->process.previous == shape.previous);
        CHECK(layout->process.position == shape.position);
        CHECK(layout->process.file == shape.file);
        CHECK(layout->process.line == shape.line);
        CHECK(layout->text == shape.text);
        CHECK(layout->head == shape.head);
        CHECK(layout->process.table_head == shape.head);
        CHECK(layout->frames == 6);
        // A way that didn't agree with native stacks isn't given again.
        const auto other = learnt(memory, why, std::span(&layout->process, 1));
        const LanguageProcess &way = layout->process;
        if (other)
            CHECK((other->process.start != way.start || other->process.hops != way.hops || other->process.hop[1] != way.hop[1]));
        else
            CHECK(why.find("agree") != why.npos);
    }
}

TEST_CASE("learn: the table for debuggers confirms what was found, or says nothing") {
    const Shape shape{808, 72, UINT64_MAX, 0, 8, 56, 200, 120, 112, 68, 136, 40}; // 3.13
    constexpr uint64_t kRuntime = kBase + 0x30000;
    const auto confirmed = [&](const char *cookie, std::vector<uint64_t> words) {
        Made memory;
        build(memory, shape, 6);
        memory.put_text(kRuntime, cookie);
        for (size_t i = 0; i < words.size(); ++i) memory.put(kRuntime + 8 + i * 8, words[i]);
        std::string why;
        const auto layout = learnt(memory, why, {}, 0x030d00f0, kRuntime);
        REQUIRE_MESSAGE(layout, why);
        CHECK(layout->process.code == shape.code);
        const bool told = cpython::describe({.version = 0x030d00f0}, *layout).find("debuggers") != std::string::npos;
        CHECK(told == layout->confirmed);
        return layout->confirmed;
    };
    const std::vector<uint64_t> right{0x030d00f0, 0, 664, 24, 296, 0, 8, 16, 72, 152, 88, 8, 0, 56, 72, 70};
    CHECK(confirmed("xdebugpy", right));
    CHECK_FALSE(confirmed("xdebugpx", right));
    for (const size_t wrong : {8, 11, 12, 13}) { // a thread state's frame, a frame's caller, code, position
        std::vector<uint64_t> words = right;
        words[wrong] += 8;
        INFO(wrong);
        CHECK_FALSE(confirmed("xdebugpy", words));
    }
    CHECK_FALSE(confirmed("xdebugpy", {}));
}

TEST_CASE("learn: from 3.14 on a thread of a build without a lock runs its own copies of instructions") {
    const Shape shape{808, 72, UINT64_MAX, 0, 8, 56, 216, 136, 128, 84, 152, 56, 32};
    constexpr uint64_t kLists = kBase + 0x30000, kCopies = kBase + 0x38000, kList = 176, kCopy = 72;
    const auto made = [&](Made &memory, uint32_t copy, uint64_t number) {
        build(memory, shape, 6);
        for (uint64_t i = 0; i < 6; ++i) {
            const uint64_t code = kCodes + i * 0x400, list = kLists + i * 0x100, own = code + shape.size;
            memory.put(code + kList, list);
            memory.put(list, number);
            memory.put(list + 8, own);
            memory.put(list + 24, kCopies + i * 0x100);
            memory.put(kFrames + i * 0x100 + kCopy, copy);
            memory.put(kFrames + i * 0x100 + shape.position, (copy == 0 ? own : kCopies + i * 0x100) + 2 * i);
        }
    };
    std::string why;
    for (const uint32_t copy : {0u, 2u}) {
        Made memory;
        made(memory, copy, 3);
        const auto layout = learnt(memory, why, {}, 0x030e0af0);
        REQUIRE_MESSAGE(layout, why);
        const LanguageProcess &process = layout->process;
        CHECK((process.flags & LANGUAGE_THREAD_COPIES) != 0);
        CHECK(process.position == shape.position);
        CHECK(process.copies == kList);
        CHECK(process.copy == kCopy);
        CHECK(process.instructions == shape.size);
        CHECK(layout->code_size == shape.size);
    }
    Made memory;
    made(memory, 2, 2); // its list ends in front of the copy
    CHECK_FALSE(learnt(memory, why, {}, 0x030e0af0));
    CHECK(why == "no word of its frames lies in their functions' instructions");
    Made older;
    build(older, shape, 6);
    CHECK(learnt(older, why, {}, 0x030d0ff0));
}

TEST_CASE("learn: a thread's own variable leads to its frames, too") {
    Shape shape{808, 72, UINT64_MAX, 0, 8, 56, 200, 120, 112, 68, 136, 40};
    shape.slot = static_cast<uint64_t>(-0x48);
    Made memory;
    build(memory, shape, 6);
    std::string why;
    const auto layout = learnt(memory, why);
    REQUIRE_MESSAGE(layout, why);
    CHECK(layout->process.start == shape.slot);
}

TEST_CASE("learn: a frame that each thread begins with lies behind a shim without a function") {
    constexpr uint64_t kNone = kBase + 0x3f000;
    const Shape shape{808, 72, UINT64_MAX, 0, 8, 56, 200, 120, 112, 68, 136, 40};
    for (const unsigned shims : {1u, 2u}) {
        Made memory;
        build(memory, shape, 6);
        for (unsigned i = 6 - shims; i < 6; ++i) memory.put(kFrames + i * 0x100 + shape.code, kNone);
        Memory reader(memory);
        cpython::Build of;
        of.code_type = kTypes;
        of.none = kNone;
        of.version = 0x030f00f0;
        std::string why;
        const auto layout = cpython::learn(reader, of, Arch::x86_64, kThread, {}, why);
        REQUIRE_MESSAGE(layout, why);
        CHECK(layout->based == (shims == 2));
        CHECK(layout->stacked == (shims == 1));
    }
}

TEST_CASE("learn: stacks of two functions prove nothing") {
    Made memory;
    build(memory, {792, 56, 8, 32, 48, 56, 184, 112, 104, 72, 128, 48}, 2);
    std::string why;
    CHECK_FALSE(learnt(memory, why));
    CHECK(why == "its stacks have 2 Python functions, and it takes 3 of them");
}

TEST_CASE("learn: a circle of frames, rubbish, and missing memory end") {
    const Shape shape{792, 56, 8, 32, 48, 56, 184, 112, 104, 72, 128, 48};
    std::string why;
    {
        Made memory;
        build(memory, shape, 6);
        memory.put(kFrames + 5 * 0x100 + shape.previous, kFrames);
        CHECK_FALSE(learnt(memory, why));
    }
    std::mt19937_64 random(11);
    for (int round = 0; round < 60; ++round) {
        Made memory;
        build(memory, shape, 6);
        for (int n = 0; n < 400; ++n)
            memory.put(kBase + random() % (kSize / 8) * 8, random() % 2 ? kBase + random() % kSize / 8 * 8 : random());
        (void)learnt(memory, why);
    }
    Made nothing;
    nothing.bytes().clear();
    CHECK_FALSE(learnt(nothing, why));
}
