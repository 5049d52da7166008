// V8's code and its tables of positions, made in the test's own memory: as they are, lying, cut, leading in circles.
#include "programs/languages/v8/code.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "programs/languages/v8/exits.h"
#include "programs/languages/v8/heap.h"
#include "programs/languages/v8/layout.h"
#include "programs/languages/v8/positions.h"
#include "tests/support/test.h"
#include "tests/unit/languages/made_heap.h"
#include "tests/unit/languages/made_memory.h"

using namespace rawbpf;
using namespace rawbpf::languages;
using namespace rawbpf::languages::v8;
using namespace rawbpf::test;

namespace {

using Buffer = std::vector<std::byte>;

void put_number(Buffer &to, uint64_t value) {
    for (; value > 0x7f; value >>= 7) to.push_back(static_cast<std::byte>(value | 0x80));
    to.push_back(static_cast<std::byte>(value));
}
void put_difference(Buffer &to, int64_t value) {
    put_number(to, static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}
int64_t place_word(int32_t text, int32_t inlined) { return int64_t{text + 1} << 1 | int64_t{inlined + 1} << 31; }

/// As V8 writes them; every other one as the beginning of a statement.
Buffer positions_table(const std::vector<Position> &positions) {
    Buffer out;
    int64_t code = -1, word = 0;
    for (size_t i = 0; i < positions.size(); ++i) {
        const int64_t by = positions[i].code - code, next = place_word(positions[i].text, positions[i].inlined);
        put_difference(out, i % 2 == 0 ? by : -by - 1);
        put_difference(out, next - word);
        code = positions[i].code;
        word = next;
    }
    return out;
}
Buffer inlinings_table(const std::vector<Inlining> &inlinings) {
    Buffer out;
    for (const Inlining &inlining : inlinings) {
        const int64_t word = place_word(inlining.text, inlining.inlined);
        const int32_t rest[] = {inlining.function, 0x5555};
        const size_t at = out.size();
        out.resize(at + 16);
        std::memcpy(out.data() + at, &word, sizeof word);
        std::memcpy(out.data() + at + 8, rest, sizeof rest);
    }
    return out;
}

constexpr size_t kBytecodes = 70;
/// Number 4 has no operand, 5 to 8 one to four; 9 has one that is always two bytes large; the others one.
Buffer sizes_table() {
    Buffer out;
    for (const int scale : {1, 2, 4})
        for (size_t i = 0; i < kBytecodes; ++i) {
            const auto operands = static_cast<int>(i < 5 ? 0 : i < 9 ? i - 4 : 1);
            out.push_back(static_cast<std::byte>(i == 9 ? 3 : 1 + operands * scale));
        }
    return out;
}
Buffer bytes_of(std::initializer_list<int> values) {
    Buffer out;
    for (const int value : values) out.push_back(static_cast<std::byte>(value));
    return out;
}

enum Type : uint16_t {
    kArray = 200,
    kBytes = 201,
    kTrusted = 202,
    kBytecodeArray = 203,
    kStream = 204,
    kContainer = 205,
    kCode = 206,
    kShared = 207
};

constexpr uint64_t kObjects = MadeMemory::kBase + 0x4000, kMachineCode = MadeMemory::kBase + 0x20000;
constexpr uint32_t kSource = 1000;

/// A function with bytecodes, and machine code of it.
class Made {
  public:
    MadeMemory memory;
    v8::Layout objects;
    CodeLayout layout;
    BytecodeSizes sizes{sizes_table()};
    uint64_t bytecodes = 0, function = 0, table = 0, back = 0;

    /// `apart`: Code is an object of its own, as since V8 11.
    explicit Made(bool apart = true) : apart_(apart) {
        objects.map = 0, objects.instance_type = 12, objects.array_length = 8, objects.array_data = 16;
        objects.name_or_scope = 24, objects.script = 40, objects.shared_type = kShared;
        layout.bytecodes = -32, layout.offset = -40, layout.bytecodes_data = 54, layout.begin = apart ? 32 : 128;
        layout.bytecodes_type = kBytecodeArray, layout.bytes_type = kBytes, layout.trusted_bytes_type = kTrusted;
        (apart ? layout.code_type : layout.container_type) = apart ? kStream : kContainer;
        function = shared();
        bytecodes = fresh(kBytecodeArray);
        const Buffer code = bytes_of({5, 1, 6, 1, 2, 0, 5, 1, 1, 4}); // of 2 bytes, 3, a prefix and 3, 1
        memory.put(bytecodes + 8, small(static_cast<int32_t>(code.size())));
        put_bytes(bytecodes + 54, code);
        memory.put(bytecodes + 16, tagged(array(kBytes, bytes_of({0xa0, 0, 0, 0, 0xa6, 0, 0, 0, 1, 4, 0, 0, 5, 0, 0, 0}))));
        memory.put(bytecodes + 24,
                   tagged(array(kBytes, positions_table({{-1, 100, -1}, {0, 110, -1}, {5, 90, -1}, {9, 120, -1}}))));
    }
    uint64_t fresh(Type type) {
        const uint64_t at = next_;
        next_ += 0x200;
        put_object(memory, at, type);
        return at;
    }
    uint64_t shared() {
        const uint64_t at = fresh(kShared);
        memory.put(at + 24, small(0));
        memory.put(at + 40, small(static_cast<int32_t>(next_ / 0x200)));
        return at;
    }
    void put_bytes(uint64_t at, const Buffer &bytes) {
        for (size_t i = 0; i < bytes.size(); ++i) memory.put(at + i, bytes[i]);
    }
    uint64_t array(Type type, const Buffer &bytes) {
        const uint64_t at = fresh(type);
        memory.put(at + 8, small(static_cast<int32_t>(bytes.size())));
        put_bytes(at + 16, bytes);
        return at;
    }
    uint64_t list(const std::vector<uint64_t> &words) {
        const uint64_t at = fresh(kArray);
        memory.put(at + 8, small(static_cast<int32_t>(words.size())));
        for (size_t i = 0; i < words.size(); ++i) memory.put(at + 16 + 8 * i, words[i]);
        return at;
    }
    /// Machine code with such a table, behind another function's.
    void code(uint64_t its_back, uint64_t its_table) {
        back = its_back, table = its_table;
        for (const uint64_t begin : {kMachineCode, kMachineCode + 0x400}) {
            const uint64_t header = begin - static_cast<uint64_t>(layout.begin);
            const uint64_t of = fresh(apart_ ? kStream : kCode);
            memory.put(header, word(of));
            const uint64_t its_code = apart_ ? fresh(kCode) : header;
            if (apart_) memory.put(header + 8, tagged(its_code));
            memory.put(its_code + 16, tagged(back));
            memory.put(its_code + 24, tagged(table));
            memory.put(its_code + 32, apart_ ? tagged(header) : tagged(fresh(kContainer)));
            if (apart_) memory.put(its_code + 40, begin);
        }
    }
    void baseline(const Buffer &offsets) { code(bytecodes, array(kTrusted, offsets)); }
    void optimised(const std::vector<Position> &positions, const std::vector<Inlining> &inlinings,
                   const std::vector<uint64_t> &functions, std::vector<uint64_t> exits = {},
                   const Buffer &translations = Buffer(32)) {
        if (exits.empty()) { // there is another array of bytes behind the first twelve words
            exits.assign(6, small(1));
            exits[4] = tagged(array(kBytes, Buffer(48)));
        }
        std::vector<uint64_t> words(9, small(1));
        words.insert(words.end(), exits.begin(), exits.end());
        words[0] = tagged(array(kBytes, translations));
        words[2] = tagged(list(functions));
        words[6] = tagged(function);
        words[7] = tagged(array(kBytes, inlinings_table(inlinings)));
        code(list(words), array(kBytes, positions_table(positions)));
    }
    /// Says of both pieces of code that they have so many bytes, and puts these behind them.
    void behind(uint32_t size, const Buffer &bytes) {
        layout.code_size = 48;
        for (const uint64_t begin : {kMachineCode, kMachineCode + 0x400}) {
            const uint64_t header = begin - static_cast<uint64_t>(layout.begin);
            memory.put<uint32_t>((apart_ ? word(header + 8) - 1 : header) + 48, size);
            put_bytes(begin + size, bytes);
        }
    }
    [[nodiscard]] uint64_t word(uint64_t at) const {
        uint64_t out = 0;
        std::memcpy(&out, const_cast<MadeMemory &>(memory).bytes().data() + (at - MadeMemory::kBase), sizeof out);
        return out;
    }
    int32_t interpreted(uint64_t array, int32_t offset) {
        Memory reader(memory);
        Heap heap(reader, objects);
        return CodeReader(reader, heap, layout, objects, &sizes)
            .interpreted({.at = tagged(function)}, array, small(offset + 53), kSource)
            .value_or(-2);
    }
    /// Texts of the functions at bytes of the second piece of code, the innermost first; "?": no code, "": nothing proved.
    std::string at(uint64_t offset, bool with_sizes = true) {
        Memory reader(memory, 1 << 12);
        Heap heap(reader, objects);
        CodeReader code(reader, heap, layout, objects, with_sizes ? &sizes : nullptr);
        const uint64_t pc = kMachineCode + 0x400 + offset;
        const auto found = code.code_at(pc);
        if (!found) return "?";
        const auto its = heap.shared_info(tagged(function));
        std::string out;
        if (its)
            for (const Spot &spot : code.spots(*found, pc, *its, kSource))
                out += (spot.function == *its ? "own:" : std::to_string((spot.function.at - kObjects) / 0x200) + ":") +
                       std::to_string(spot.text) + " ";
        CHECK((code.is_there(*found) || !its));
        return out;
    }

  private:
    bool apart_;
    uint64_t next_ = kObjects;
};

} // namespace

TEST_CASE("v8: tables of positions are read as they were written, and others aren't") {
    const std::vector<Position> some = {{-1, 82, -1}, {0, 100, -1}, {3, 107, -1}, {3, 70, 0}, {900, -1, 2}, {901, 500, 1}};
    const Limits limits{1000, 500, 3};
    const Buffer table = positions_table(some);
    CHECK(read_positions(table, limits) == some);
    CHECK(read_positions(bytes_of({0x01, 0xcc, 0x02, 0x02, 0x48}), limits) == // as V8 writes it
          std::vector<Position>{{-1, 82, -1}, {0, 100, -1}});
    for (size_t cut = 0; cut < table.size(); ++cut) {
        const auto less = read_positions(Bytes(table).first(cut), limits);
        CHECK((!less || less->size() < some.size()));
    }
    CHECK(!read_positions({}, limits));
    CHECK(!read_positions(table, {900, 500, 3}));                   // code beyond the end
    CHECK(!read_positions(table, {1000, 99, 3}));                   // a text beyond its source
    CHECK(!read_positions(table, {1000, 500, 2}));                  // inlined by nothing
    CHECK(!read_positions(positions_table({{0, -1, -1}}), limits)); // nowhere in its own source
    CHECK(!read_positions(bytes_of({0, 3}), limits));               // external
    CHECK(!read_positions(Buffer(20, std::byte{0xff}), limits));    // no end
    CHECK(position_at(some, -1)->text == 82);
    CHECK(position_at(some, 2)->text == 100);
    CHECK(position_at(some, 3)->text == 70); // the last of both
    CHECK(position_at(some, 5000)->text == 500);
    CHECK(position_at(std::vector<Position>{{4, 1, -1}}, 3) == nullptr);

    const std::vector<Inlining> inlined = {{426, -1, 0}, {328, 0, 1}, {184, 1, 2}, {195, 1, 2}};
    CHECK(read_inlinings(inlinings_table(inlined)) == inlined);
    CHECK(read_inlinings({})->empty());
    CHECK(!read_inlinings(inlinings_table({{426, 0, 0}})));             // in itself
    CHECK(!read_inlinings(inlinings_table({{426, -1, 0}, {1, 7, 0}}))); // in a later one
    CHECK(!read_inlinings(inlinings_table({{426, -1, -2}})));
    CHECK(!read_inlinings(Buffer(15)));
}

TEST_CASE("v8: whatever is written as a table of positions ends, and is within its limits") {
    std::mt19937 random(11);
    size_t taken = 0;
    for (int round = 0; round < 20000; ++round) {
        Buffer bytes(random() % 24);
        for (std::byte &byte : bytes) byte = static_cast<std::byte>(random() % (round % 2 == 0 ? 256 : 64));
        const auto below = [&](uint32_t most) { return static_cast<uint32_t>(random() % most); };
        const Limits limits{below(100), below(100), below(4)};
        const auto positions = read_positions(bytes, limits);
        if (!positions) continue;
        ++taken;
        int32_t before = -1;
        for (const Position &position : *positions) {
            CHECK((position.code >= before && position.code < static_cast<int32_t>(limits.code)));
            CHECK(position.inlined < static_cast<int32_t>(limits.inlined));
            before = position.code;
        }
    }
    CHECK(taken > 0);
}

TEST_CASE("v8: sizes of bytecodes are found by what they must be, and lead from machine code to bytecodes") {
    Buffer file(3000, std::byte{1});
    const Buffer table = sizes_table();
    std::copy(table.begin(), table.end(), file.begin() + 1000);
    const auto sizes = BytecodeSizes::find(file);
    REQUIRE(sizes.has_value());
    CHECK(sizes->of(bytes_of({4})) == 1);
    CHECK(sizes->of(bytes_of({6, 0, 0})) == 3);
    CHECK(sizes->of(bytes_of({6, 0})) == 0); // cut
    CHECK(sizes->of(bytes_of({0, 6, 0, 0, 0, 0})) == 6);
    CHECK(sizes->of(bytes_of({1, 5, 0, 0, 0, 0})) == 6);
    CHECK(sizes->of(bytes_of({0})) == 0);
    CHECK(sizes->of(bytes_of({255, 0, 0, 0})) == 0);
    CHECK(sizes->of({}) == 0);
    CHECK(!BytecodeSizes::find({}));
    CHECK(!BytecodeSizes::find(Bytes(file).first(1150))); // the third row isn't whole
    file[1000 + 2 * kBytecodes + 30] = std::byte{9};      // and one that doesn't grow with its operands
    CHECK(!BytecodeSizes::find(file));

    const Buffer code = bytes_of({5, 1, 6, 1, 2, 4}), offsets = bytes_of({20, 10, 0x85, 1, 7}); // 133
    CHECK(bytecode_at(offsets, code, *sizes, 0) == -1);
    CHECK(bytecode_at(offsets, code, *sizes, 19) == -1);
    CHECK(bytecode_at(offsets, code, *sizes, 20) == 0);
    CHECK(bytecode_at(offsets, code, *sizes, 30) == 2);
    CHECK(bytecode_at(offsets, code, *sizes, 162) == 2);
    CHECK(bytecode_at(offsets, code, *sizes, 163) == 5);
    CHECK(!bytecode_at(offsets, code, *sizes, 170));          // behind the last one
    CHECK(!bytecode_at(bytes_of({20, 10}), code, *sizes, 0)); // too few of them
    CHECK(!bytecode_at(bytes_of({20, 10, 9, 9, 9}), code, *sizes, 0));
    CHECK(!bytecode_at(bytes_of({20, 10, 9, 0xff}), code, *sizes, 0));
    CHECK(!bytecode_at({}, code, *sizes, 0));
}

TEST_CASE("v8: the interpreter's frames have their place, and words that are none have not") {
    Made made;
    CHECK(made.interpreted(tagged(made.bytecodes), 0) == 110);
    CHECK(made.interpreted(tagged(made.bytecodes), 4) == 110);
    CHECK(made.interpreted(tagged(made.bytecodes), 5) == 90);
    CHECK(made.interpreted(tagged(made.bytecodes), 10) == -2); // beyond the end
    CHECK(made.interpreted(tagged(made.bytecodes), -1) == -2);
    CHECK(made.interpreted(tagged(made.function), 0) == -2); // another type
    CHECK(made.interpreted(made.bytecodes, 0) == -2);        // no pointer
    CHECK(made.interpreted(tagged(0x10), 0) == -2);
    Made without;
    without.memory.put(without.bytecodes + 24, small(0)); // it is made when it is needed
    CHECK(without.interpreted(tagged(without.bytecodes), 0) == -2);
    Made lies;
    lies.memory.put(lies.word(lies.bytecodes + 24) - 1 + 8, small(INT32_MAX));
    CHECK(lies.interpreted(tagged(lies.bytecodes), 0) == -2);
    Made twice; // which of them?
    twice.memory.put(twice.bytecodes + 16, twice.word(twice.bytecodes + 24));
    CHECK(twice.interpreted(tagged(twice.bytecodes), 0) == -2);
}

TEST_CASE("v8: where a frame's bytecodes have moved, its function has them") {
    Made made;
    const uint64_t gone = tagged(made.fresh(kArray));
    CHECK(made.interpreted(gone, 5) == -2); // the function has none
    made.memory.put(made.function + 8, tagged(made.bytecodes));
    CHECK(made.interpreted(gone, 5) == 90);
    const uint64_t of_baseline = made.fresh(kCode);
    made.memory.put(of_baseline + 16, tagged(made.bytecodes));
    made.memory.put(made.function + 8, small(0));
    made.memory.put(made.function + 16, tagged(of_baseline));
    CHECK(made.interpreted(gone, 5) == 90);
    CHECK(made.interpreted(tagged(made.bytecodes), 5) == 90);
}

namespace {

/// A list of exits and the numbers before it, as Maglev's: two that go back at once, and two calls'.
std::vector<uint64_t> exits_of(uint32_t code) {
    std::vector<uint64_t> out;
    for (const uint32_t word : {code, 2u, 2u, 0u, 0u, code, 4u, 2u, code + 4, 5u, 4u, code + 8, 9u, 8u, code + 12})
        out.push_back(small(static_cast<int32_t>(word)));
    return out;
}
/// Entries as V8 writes them: of columns of so many bytes.
Buffer safepoints(const std::vector<std::array<uint32_t, 3>> &entries, size_t codes) {
    Buffer out = bytes_of({9, 0, 0, 0, static_cast<int>(entries.size()), 0, 0, 0, 0xa3, 0, 0, 0});
    for (const auto &[returns_to, exit, code] : entries) {
        for (size_t i = 0; i < codes; ++i) out.push_back(static_cast<std::byte>(returns_to >> 8 * i));
        out.push_back(static_cast<std::byte>(exit));
        for (size_t i = 0; i < codes; ++i) out.push_back(static_cast<std::byte>(code >> 8 * i));
        out.push_back(std::byte{1}); // slots, and what else there is
    }
    return out;
}

} // namespace

TEST_CASE("v8: the exits of calls are found behind code, and lists and tables that are none aren't") {
    for (const uint32_t code : {0x80u, 0x6a1u, 0x2'0000u}) {
        INFO(code);
        const size_t width = code < 0x100 ? 1 : code < 0x1'0000 ? 2 : 3;
        const auto exits = read_exits(exits_of(code));
        REQUIRE(exits.has_value());
        REQUIRE(exits->size() == 4);
        CHECK(exits->front() == Exit{0, 0, static_cast<int32_t>(code)});
        CHECK(exits->back() == Exit{9, 8, static_cast<int32_t>(code) + 12});
        // 0x50 returns to what has no exit.
        const Buffer table = safepoints({{0x16, 3, code + 9}, {0x47, 4, code + 13}, {0x50, 0, 0}, {0x60, 4, code + 9}}, width);
        CHECK(exit_of_call(table, *exits, 0x16) == &(*exits)[2]);
        CHECK(exit_of_call(table, *exits, 0x47) == &(*exits)[3]);
        for (const uint32_t none : {0x15u, 0x50u, 0x60u, 0x61u}) CHECK(exit_of_call(table, *exits, none) == nullptr);
        CHECK(exit_of_call(Bytes(table).first(14), *exits, 0x16) == nullptr); // cut
        CHECK(exit_of_call(table, {}, 0x16) == nullptr);
    }
    std::vector<uint64_t> words = exits_of(0x6a1);
    words[1] = small(3); // five are said
    CHECK(!read_exits(words));
    words = exits_of(0x6a1);
    words[5] = small(-1); // TurboFan's
    CHECK(!read_exits(words));
    words = exits_of(0x6a1);
    words[0] = small(0x600); // the first isn't where their code begins
    CHECK(!read_exits(words));
    words = exits_of(0x6a1);
    words[7] = small(-1);
    CHECK(!read_exits(words));
    words = exits_of(0x6a1);
    words.pop_back();
    CHECK(!read_exits(words));
    CHECK(!read_exits({}));

    CHECK(has_one_frame(bytes_of({0x0e, 0, 2, 2, 1}), 0));
    CHECK(has_one_frame(bytes_of({9, 9, 0x0e, 0x90, 1, 2, 2, 0}), 2)); // far back
    CHECK(has_one_frame(bytes_of({3, 2, 2, 0}), 0));                   // before V8 11
    CHECK(!has_one_frame(bytes_of({0x0f, 0x18, 4, 4}), 0));            // two frames
    for (const int32_t at : {-1, 4, 5, INT32_MAX}) CHECK(!has_one_frame(bytes_of({0x0e, 0, 2, 2}), at));
    CHECK(!has_one_frame(bytes_of({0x0e, 0x80, 0x80}), 0));
}

TEST_CASE("v8: a call that isn't inlined is where its exit says, whatever the table of positions does") {
    for (const bool apart : {true, false}) {
        Made made(apart);
        made.memory.put(made.function + 8, tagged(made.bytecodes));
        const auto place = [&](const Buffer &translations) {
            made.optimised({{0, 376, -1}, {64, 411, -1}}, {}, {}, exits_of(0x1c0), translations);
            made.behind(0x1e0, safepoints({{0x16, 3, 0x1c9}, {0x47, 4, 0x1cd}}, 2));
        };
        place(bytes_of({0x0e, 0, 2, 2, 0x0e, 4, 2, 2, 0x0e, 8, 4, 4}));
        CHECK(made.at(0x15) == "own:90 ");  // the last byte of the call; bytecode 5
        CHECK(made.at(0x14) == "own:376 "); // another place
        CHECK(made.at(0x46) == "own:411 "); // two frames
        place(bytes_of({0x0e, 0, 2, 2, 0x0e, 4, 2, 2, 0x0e, 8, 2, 2}));
        CHECK(made.at(0x46) == "own:120 "); // bytecode 9
        made.memory.put(made.function + 8, small(0));
        CHECK(made.at(0x46) == "own:411 "); // the function has no bytecodes
    }
}

TEST_CASE("v8: baseline code, of both kinds of headers") {
    for (const bool apart : {true, false}) {
        Made made(apart);
        made.baseline(bytes_of({20, 10, 10, 10, 10}));
        CHECK(made.at(3) == "own:110 "); // before its first bytecode
        CHECK(made.at(20) == "own:110 ");
        CHECK(made.at(39) == "own:110 ");
        CHECK(made.at(40) == "own:90 ");
        CHECK(made.at(59) == "own:120 ");
        CHECK(made.at(60).empty()); // behind its end
        CHECK(made.at(20, false).empty());
        made.baseline(bytes_of({20, 10, 10, 10})); // of other bytecodes
        CHECK(made.at(20).empty());
    }
}

TEST_CASE("v8: optimised code has the chain of functions that were inlined, of both kinds of headers") {
    for (const bool apart : {true, false}) {
        Made made(apart);
        const uint64_t a = made.shared(), b = made.shared(), a_number = (a - kObjects) / 0x200, b_number = (b - kObjects) / 0x200;
        const std::vector<Inlining> inlined = {{426, -1, 0}, {328, 0, 1}, {195, 0, 1}};
        const std::vector<Position> positions = {{0, 376, -1}, {16, 411, -1}, {40, 291, 0}, {56, 115, 2}, {80, -1, 1}};
        made.optimised(positions, inlined, {tagged(a) | 2, tagged(b), small(9)}); // weak, strong
        CHECK(made.at(0) == "own:376 ");
        CHECK(made.at(17) == "own:411 ");
        CHECK(made.at(40) == std::to_string(a_number) + ":291 own:426 ");
        CHECK(made.at(79) == std::to_string(b_number) + ":115 " + std::to_string(a_number) + ":195 own:426 ");
        CHECK(made.at(100) == std::to_string(b_number) + ":-1 " + std::to_string(a_number) + ":328 own:426 ");
        made.optimised(positions, inlined, {tagged(a), small(9)}); // a function is missing
        CHECK(made.at(0).empty());
        made.optimised(positions, {{426, -1, 0}, {328, 0, 1}}, {tagged(a), tagged(b)}); // an inlining is
        CHECK(made.at(0).empty());
        made.optimised({{0, 376, -1}}, {}, {});
        CHECK(made.at(0) == "own:376 ");
        made.optimised({{0, kSource + 1, -1}}, {}, {}); // beyond the source
        CHECK(made.at(0).empty());
    }
}

TEST_CASE("v8: code is of one function, which it says itself or by an object that points to it") {
    Made made;
    const uint64_t other = made.shared(), wrapper = made.fresh(kCode);
    made.memory.put(wrapper + 8, tagged(made.function));
    const auto is_of = [&](uint64_t function, uint64_t bytecodes) {
        Memory reader(made.memory);
        Heap heap(reader, made.objects);
        CodeReader code(reader, heap, made.layout, made.objects, &made.sizes);
        const auto found = code.code_at(kMachineCode + 0x400);
        const auto its = heap.shared_info(tagged(function));
        return found && its && code.is_of(*found, *its, bytecodes);
    };
    made.baseline(bytes_of({20, 10, 10, 10, 10}));
    CHECK(is_of(made.function, tagged(made.bytecodes)));
    CHECK(!is_of(made.function, tagged(other)));
    CHECK(!is_of(made.function, 0));
    made.optimised({{0, 376, -1}}, {}, {});
    CHECK(is_of(made.function, 0));
    CHECK(!is_of(other, 0));
    made.memory.put(made.back + 16 + 6 * 8, tagged(wrapper));
    CHECK(is_of(made.function, 0));
    CHECK(!is_of(other, 0));
}

TEST_CASE("v8: where no header is in front of an address there is no code; and only so much is looked at") {
    Made made;
    CHECK(made.at(0) == "?");
    made.baseline(bytes_of({20, 10, 10, 10, 10}));
    made.memory.put(kMachineCode + 0x400 - 32, small(0));
    made.layout.code_size = 48;
    made.memory.put<uint32_t>(made.word(kMachineCode - 32 + 8) - 1 + 48, 0x300);
    CHECK(made.at(0) == "?"); // the function in front of it ends before
    Memory reader(made.memory);
    Heap heap(reader, made.objects);
    CodeReader code(reader, heap, made.layout, made.objects, nullptr);
    for (const uint64_t pc : {uint64_t{0}, uint64_t{31}, uint64_t{1} << 47, UINT64_MAX}) CHECK(!code.code_at(pc));
}

TEST_CASE("v8: whatever code and tables hold, reading them ends") {
    std::mt19937_64 random(18);
    for (int round = 0; round < 1500; ++round) {
        Made made(round % 2 == 0);
        const uint64_t a = made.shared();
        if (round % 4 < 2)
            made.optimised({{0, 376, -1}, {16, 411, 0}}, {{426, -1, 0}}, {tagged(a)});
        else
            made.baseline(bytes_of({20, 10, 10, 10, 10}));
        auto &bytes = made.memory.bytes();
        for (int i = 0; i < 12; ++i) { // pointers to anything, and bytes
            const uint64_t at = (i % 3 == 0 ? 0x20380 + random() % 0x80 : 0x4000 + random() % 0x4000) / 8 * 8;
            const uint64_t word = i % 2 == 0 ? tagged(MadeMemory::kBase + 0x1000 + random() % 0x8000 / 8 * 8) : random();
            std::memcpy(bytes.data() + at, &word, sizeof word);
        }
        for (const uint64_t offset : {0, 17, 40}) CHECK(made.at(offset).size() < 100000);
    }
}
