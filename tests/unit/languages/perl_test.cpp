// Perl's words from memory that a test makes, and that lies; its names as they are sent.
#include <cstring>
#include <random>
#include <string_view>

#include "programs/languages/perl/learn.h"
#include "programs/languages/perl/names.h"
#include "programs/languages/perl/runtime.h"
#include "programs/languages/runtime.h"

#include "tests/support/test.h"
#include "tests/unit/languages/made_memory.h"

using namespace rawbpf;
using namespace rawbpf::languages;

namespace {

using Made = test::MadeMemory;
constexpr uint64_t kBase = Made::kBase, kSize = Made::kSize, kBias = 0x1000;

struct Shape { // of a build of Perl
    uint64_t stacks = 224, stride = 104, position = 16, code = 72, returns = 48, root = 1800, name = 56, package = 32;
    unsigned key = 0, subs = 5;
    bool named = false;
};

constexpr uint64_t kCode = kBase + 0x800, kData = kBase + 0x1000, kThread = kBase + 0x2000, kInterpreter = kBase + 0x3000,
                   kHeads = kBase + 0x5000, kContexts = kBase + 0x6000, kPositions = kBase + 0x8000, kSubs = kBase + 0xa000,
                   kTexts = kBase + 0x10000, kTables = kBase + 0x14000;
constexpr uint64_t kNextstate = kCode, kLeave = kCode + 0x10, kEntertry = kCode + 0x20, kDocatch = kCode + 0x40,
                   kOther = kCode + 0x60;
constexpr uint32_t kGlobType = 9, kHashType = 12, kCodeType = 13;

void put_name(Made &memory, uint64_t at, const char *name) {
    memory.put<uint32_t>(at + 4, static_cast<uint32_t>(std::strlen(name)));
    memory.put_text(at + 8, name);
}

void build(Made &memory, const Shape &shape) {
    uint64_t text = kTexts;
    const auto texts = [&](uint64_t array, std::initializer_list<const char *> all) {
        for (const char *one : all) {
            memory.put_text(text, one);
            memory.put(array, text);
            array += 8, text += 32;
        }
    };
    texts(kData, {"NULL", "WHEN", "BLOCK", "GIVEN", "LOOP_ARY", "LOOP_LAZYSV", "LOOP_LAZYIV", "LOOP_LIST", "LOOP_PLAIN", "SUB",
                  "FORMAT", "EVAL", "SUBST"});
    texts(kData + 0x100, {"null", "nextstate", "leave", "entertry", "pushmark"});
    const uint64_t functions[] = {kOther, kNextstate, kLeave, kEntertry, kOther};
    for (size_t i = 0; i < 5; ++i) memory.put(kData + 0x200 + i * 8, functions[i]);
    memory.put<uint16_t>(kData + 0x300, 3768);
    memory.put<uint32_t>(kData + 0x308, shape.key);
    memory.put<uint8_t>(kEntertry + 3, 0xe9); // jmp
    memory.put<int32_t>(kEntertry + 4, static_cast<int32_t>(kDocatch - (kEntertry + 8)));

    memory.put(kThread + 0x318 + 16 * uint64_t{shape.key}, kInterpreter);
    memory.put(kInterpreter + shape.stacks, kHeads);
    memory.put(kInterpreter + shape.stacks - 16, kPositions);
    memory.put(kInterpreter + shape.root, kSubs);
    memory.put(kInterpreter + shape.root + 8, kData + 0x400);
    memory.put(kData + 0x410, kLeave);
    const auto object = [&](uint64_t at, uint32_t type) {
        memory.put(at, at + 0x40); // its body
        memory.put<uint32_t>(at + 12, type);
        return at + 0x40;
    };
    object(kSubs, kCodeType); // the program's
    const uint64_t package = kTables, package_body = object(package, kHashType);
    put_name(memory, kTexts + 0x2000, "Some::Package");
    if (shape.package != 0) {
        memory.put(package_body + shape.package, kTexts + 0x2000);
    } else {
        memory.put(package + 16, kTables + 0x200);
        memory.put(package_body + 24, uint64_t{7});
        memory.put(kTables + 0x200 + 64, kTexts + 0x2000);
    }
    memory.put_text(kTexts + 0x2100, "/x.pl");
    put_name(memory, kTexts + 0x2200, "sub");
    for (unsigned i = 0; i < shape.subs + 2; ++i) {
        const uint64_t position = kPositions + i * 0x40;
        memory.put(position + 16, kNextstate);
        memory.put<uint32_t>(position + 36, 10 + i);
        memory.put(position + 48, kTexts + 0x2100);
    }
    // Two stacks: the inner one has the last two subs.
    const unsigned outer = shape.subs - 2;
    for (unsigned i = 0; i < 2; ++i) {
        const uint64_t head = kHeads + i * 0x40;
        memory.put(head, kData);
        memory.put(head + 8, kContexts + i * 0x1000);
        memory.put(head + 16, i == 0 ? head + 0x40 : 0);
        memory.put(head + 24, i == 0 ? 0 : kHeads);
        memory.put<uint32_t>(head + 32, i == 0 ? 1 : outer);
        memory.put<uint32_t>(head + 36, 127);
    }
    memory.put<uint8_t>(kContexts + 0x1000, 2);
    memory.put(kContexts + 0x1000 + shape.position, kPositions);
    for (unsigned i = 0; i < shape.subs; ++i) {
        const uint64_t context = i < outer ? kContexts + 0x1000 + (i + 1) * shape.stride : kContexts + (i - outer) * shape.stride,
                       sub = kSubs + (i + 1) * 0x100, body = object(sub, kCodeType);
        memory.put<uint8_t>(context, 0x29);
        memory.put(context + shape.position, kPositions + (i + 1) * 0x40);
        memory.put(context + shape.returns, i == outer ? 0 : kData + 0x400);
        memory.put(context + shape.code, sub);
        if (shape.named) {
            memory.put(body + shape.name, kTexts + 0x2200);
            memory.put<uint32_t>(body + shape.name + 36, 0x8000);
            memory.put(body + shape.name - 24, package);
        } else {
            const uint64_t glob = kTables + 0x1000 + i * 0x100, its = object(glob, kGlobType);
            memory.put(body + shape.name, glob);
            memory.put(its + 32, kTexts + 0x2200);
            memory.put(its + 40, package);
        }
    }
}

Interpreter interpreter() {
    Interpreter file;
    file.exports = {{"PL_block_type", kData - kBias},
                    {"PL_op_name", kData + 0x100 - kBias},
                    {"PL_ppaddr", kData + 0x200 - kBias},
                    {"PL_interp_size", kData + 0x300 - kBias},
                    {"PL_thr_key", kData + 0x308 - kBias}};
    elf::Segment code{};
    code.address = kCode - kBias, code.offset = 0x100, code.file_size = 0x200;
    file.code = {code};
    for (const uint64_t start : {kNextstate, kLeave, kEntertry, kDocatch, kOther})
        file.functions.push_back({start - kCode + 0x100, start - kCode + 0x110});
    return file;
}

std::optional<Layout> learnt(Made &memory, std::string &why) {
    Memory reader(memory);
    const Interpreter file = interpreter();
    return perl::learn(reader, {file, kBias, Arch::x86_64, kThread, {}}, why);
}

Bytes bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

} // namespace

TEST_CASE("learn: Perl's words, wherever they are") {
    const Shape shapes[] = {
        {},
        {.key = 3, .named = true},
        {.stacks = 216, .stride = 96, .returns = 56, .root = 1584, .package = 0}, // as 5.32
        {.stride = 112, .position = 24, .code = 80, .returns = 56, .name = 64, .package = 40, .subs = 3},
    };
    for (const Shape &shape : shapes) {
        Made memory;
        build(memory, shape);
        std::string why;
        const auto layout = learnt(memory, why);
        REQUIRE_MESSAGE(layout, why);
        const LanguageProcess &process = layout->process;
        CHECK(process.start == 0x318);
        CHECK(process.key == kData + 0x308);
        CHECK(process.hop[0] == shape.stacks);
        CHECK(process.leaf == shape.stacks - 16);
        CHECK(process.root == shape.root);
        CHECK(process.stride == shape.stride);
        CHECK(process.position == shape.position);
        CHECK(process.code == shape.code);
        CHECK(process.mark_zero == shape.returns);
        CHECK(process.line_file == 48);
        CHECK(process.line_of == 36);
        CHECK(process.name == shape.name);
        CHECK(process.kind_value == kCodeType);
        CHECK(((process.flags & LANGUAGE_OWNER_TABLE) != 0) == (shape.package == 0));
        CHECK(process.window < LANGUAGE_WINDOW);
        CHECK(process.code_bytes < LANGUAGE_CODE_BYTES);
        CHECK(layout->frames == shape.subs);
        // entertry itself, and what it jumps to
        REQUIRE(layout->resumes.size() == 2);
        CHECK(layout->resumes[1].start == kDocatch - kCode + 0x100);
        CHECK(moved(process, -kBias).key == process.key - kBias);
        CHECK(moved(process, -kBias).start == process.start);
    }
}

TEST_CASE("learn: a Perl that lies says why it isn't read, and ends") {
    const auto without = [](auto &&change) {
        Made memory;
        build(memory, {});
        change(memory);
        std::string why;
        CHECK_FALSE(learnt(memory, why));
        return why;
    };
    CHECK(without([](Made &memory) { memory.put(kThread + 0x318, uint64_t{0}); }) ==
          "no value of its threads leads to an interpreter");
    CHECK(without([](Made &memory) { memory.put(kHeads + 0x40 + 16, kHeads); }) == // a circle
          "no value of its threads leads to an interpreter");
    CHECK(without([](Made &memory) { memory.put<uint32_t>(kHeads + 32, 200); }) == // more than there is room for
          "no value of its threads leads to an interpreter");
    CHECK(without([](Made &memory) { memory.put(kContexts + 16, uint64_t{8}); }) ==
          "its stacks have too few frames yet, or some that aren't understood");
    CHECK(without([](Made &memory) { memory.put(kData + 0x410, kNextstate); }) ==
          "no word of its interpreter is the program's code");
    CHECK(without([](Made &memory) { memory.put<uint32_t>(kSubs + 0x200 + 12, kHashType); }) ==
          "no word of its contexts is a sub's code");
    CHECK(without([](Made &memory) { memory.put(kPositions + 0x40 + 48, uint64_t{0}); }) ==
          "no word of its positions is a file's path");
    CHECK(without([](Made &memory) { memory.put<uint32_t>(kTexts + 0x2204, 0); }) ==
          "no word of its subs leads to their names and packages");
    CHECK(without([](Made &memory) { memory.put<uint8_t>(kTexts, 0); }) ==
          "PL_block_type doesn't name the kinds of its contexts");

    std::mt19937_64 random(5);
    std::string why;
    for (int round = 0; round < 60; ++round) {
        Made memory;
        build(memory, {});
        for (int n = 0; n < 2000; ++n)
            memory.put<uint64_t>(kBase + random() % (kSize / 8) * 8,
                                 random() % 2 ? kBase + random() % (kSize / 8) * 8 : random() % 0x8000);
        (void)learnt(memory, why);
    }
}

TEST_CASE("names: Perl's, in UTF-8 and Latin-1, and cut ones") {
    using namespace std::string_view_literals;
    CHECK(perl::name_of(bytes("hash\4\0\0\0main\0\0"sv)) == "main");
    CHECK(perl::name_of(bytes("hash\5\0\0\0t\xc3\xaate\0\1"sv)) == "tête");
    CHECK(perl::name_of(bytes("hash\4\0\0\0t\xeate\0\0"sv)) == "tête");
    CHECK(perl::name_of(bytes("hash\x20\0\0\0main"sv)) == "main...");
    CHECK(perl::name_of(bytes("hash\4\0\0\0ma\0n\0\0"sv)).empty());
    CHECK(perl::name_of(bytes("hash\3\0\0\0main\0\0"sv)).empty()); // its length isn't its
    CHECK(perl::name_of(bytes("hash\xff\xff\xff\xffmain"sv)).empty());
    CHECK(perl::name_of(bytes("hash\4\0\0\0"sv)).empty());
    CHECK(perl::name_of({}).empty());
    CHECK(perl::file_of(bytes("/a/b.pl\0rest"sv)) == "/a/b.pl");
    CHECK(perl::file_of(bytes("/a/b"sv)) == "/a/b...");
    CHECK(perl::file_of({}).empty());
    CHECK(perl::shown("Some", "sub", "/a/b.pl") == "Some::sub");
    CHECK(perl::shown("", "sub", "/a/b.pl") == "sub");
    CHECK(perl::shown("", "", "/a/b.pl") == "b.pl");
    CHECK(perl::shown("", "", "(eval 7)") == "(eval)");
    std::mt19937_64 random(3);
    for (int round = 0; round < 20000; ++round) {
        std::vector<uint8_t> object(random() % 40);
        for (uint8_t &one : object) one = random() % 4 != 0 ? static_cast<uint8_t>(random()) : 0;
        (void)perl::name_of(std::as_bytes(std::span(object)));
    }
}

TEST_CASE("parts: which of Perl's contexts end a group") {
    Layout layout{};
    layout.process.kinds = uint64_t{LANGUAGE_KIND_FUNCTION} << 36 | uint64_t{LANGUAGE_KIND_OTHER} << 44 |
                           uint64_t{LANGUAGE_KIND_NONE} | uint64_t{LANGUAGE_KIND_ROOT} << 8;
    const auto part = [&](uint64_t id, uint64_t mark) { return perl::kRuntime.part(layout, nullptr, id, mark << 56 | 7); };
    CHECK_FALSE(part(1, 9).ends_group);
    CHECK(part(1, 9 | LANGUAGE_MARK_ZERO).ends_group);
    CHECK_FALSE(part(1, 9 | LANGUAGE_MARK_ZERO).hidden);
    CHECK(part(1, 9 | LANGUAGE_MARK_ZERO | perl::kInRegex).hidden);
    CHECK_FALSE(part(1, 11 | perl::kInRegex).hidden);
    CHECK(part(0, 0).ends_group);
    CHECK(part(0, 0).hidden);
    CHECK(part(0, 0).joins);
    CHECK_FALSE(part(0, LANGUAGE_MARK_ROOM).joins); // what is in front of it is of another room
    CHECK(part(1, 9 | LANGUAGE_MARK_ZERO | perl::kOfRegex).joins);
    CHECK_FALSE(part(1, 9 | LANGUAGE_MARK_ZERO).joins);
    CHECK_FALSE(part(1, 11 | perl::kOfRegex).joins);
    CHECK(part(1, 2).ends_group);
    CHECK_FALSE(part(1, 2).hidden);
    CHECK(perl::kRuntime.line(layout, {}, uint64_t{9} << 56 | 7) == 7);
}
