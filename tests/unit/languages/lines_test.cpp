// Tables of lines and strings, as CPython has them. The tables here are what `code.co_linetable` and `co_lnotab` of CPython hold.
#include "programs/languages/cpython/lines.h"

#include <random>

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::languages::cpython;

namespace {

Bytes bytes(const std::vector<uint8_t> &of) { return std::as_bytes(std::span(of)); }

std::vector<uint8_t> object(uint64_t length, uint32_t state, size_t head, const std::vector<uint8_t> &characters) {
    std::vector<uint8_t> out(head);
    std::memcpy(out.data() + 16, &length, 8);
    std::memcpy(out.data() + 32, &state, 4);
    out.insert(out.end(), characters.begin(), characters.end());
    return out;
}

} // namespace

TEST_CASE("lines: 3.11's locations") {
    // one line form with 1 line on, 2 instructions; short form, 1; long form, 2 lines back; no columns, 5 on; no location
    const std::vector<uint8_t> table = {
        0x80 | 11 << 3 | 1, 0, 4, 0x80 | 3 << 3, 0x12, 0x80 | 14 << 3 | 2, 5, 0, 1, 2, 0x80 | 13 << 3, 10, 0x80 | 15 << 3};
    const auto line = [&](uint64_t offset) { return line_at(bytes(table), LineTable::locations, 10, offset); };
    CHECK(line(0) == 11);
    CHECK(line(3) == 11);
    CHECK(line(4) == 11);
    CHECK(line(6) == 9);
    CHECK(line(11) == 9);
    CHECK(line(12) == 14);
    CHECK(line(14) == 0); // has none
    CHECK(line(16) == 0); // behind the end
}

TEST_CASE("lines: 3.10's ranges and the pairs before") {
    const std::vector<uint8_t> ranges = {4, 1, 2, 0x80, 6, 0xff};
    CHECK(line_at(bytes(ranges), LineTable::ranges, 10, 0) == 11);
    CHECK(line_at(bytes(ranges), LineTable::ranges, 10, 4) == 0);
    CHECK(line_at(bytes(ranges), LineTable::ranges, 10, 6) == 10);
    const std::vector<uint8_t> pairs = {0, 1, 4, 2, 8, 0xff};
    CHECK(line_at(bytes(pairs), LineTable::pairs, 10, 0) == 11);
    CHECK(line_at(bytes(pairs), LineTable::pairs, 10, 4) == 13);
    CHECK(line_at(bytes(pairs), LineTable::pairs, 10, 12) == 12);
}

TEST_CASE("lines: anybody's bytes are read to their end at most") {
    std::mt19937 random(3);
    for (int round = 0; round < 20000; ++round) {
        std::vector<uint8_t> table(random() % 40);
        for (uint8_t &one : table) one = static_cast<uint8_t>(random());
        for (const LineTable format : {LineTable::locations, LineTable::ranges, LineTable::pairs})
            (void)line_at(bytes(table), format, random(), random() % 100);
        (void)string_of(bytes(table), random() % 2 ? 16 : 32, random() % 2 ? 40 : 56);
    }
}

TEST_CASE("strings: of one, two and four bytes a character, of both layouts, cut ones") {
    constexpr uint32_t kAscii = 1 << 2 | 1 << 5 | 1 << 6, kLatin = 1 << 2 | 1 << 5, kTwo = 2 << 2 | 1 << 5,
                       kFour = 4 << 2 | 1 << 5;
    CHECK(string_of(bytes(object(4, kAscii, 48, {'m', 'a', 'i', 'n', 0})), 16, 48) == "main");
    CHECK(string_of(bytes(object(4, kAscii, 40, {'m', 'a', 'i', 'n', 0})), 16, 40) == "main");
    CHECK(string_of(bytes(object(2, kLatin, 72, {'g', 0xe9})), 16, 48) == "g\u00e9");
    CHECK(string_of(bytes(object(2, kTwo, 56, {0x41, 0, 0xb1, 0x03})), 16, 40) == "A\u03b1");
    CHECK(string_of(bytes(object(1, kFour, 72, {0x00, 0xf6, 0x01, 0})), 16, 48) == "\U0001f600");
    CHECK(string_of(bytes(object(9, kAscii, 48, {'m', 'a'})), 16, 48) == "ma...");
    CHECK(string_of(bytes(object(4, kAscii << 14, 40, {'m', 'a', 'i', 'n'})), 16, 40) == "main"); // 3.14
    CHECK(string_of(bytes(object(4, kAscii << 6, 40, {'m', 'a', 'i', 'n'})), 16, 40) == "main");  // without a lock
    CHECK_FALSE(string_of(bytes(object(4, 0, 48, {'m', 'a', 'i', 'n'})), 16, 48));
    CHECK_FALSE(string_of({}, 16, 48));
    // Without a lock of the interpreter each object has 16 bytes more in front.
    const auto shared = [](std::vector<uint8_t> of) {
        of.insert(of.begin(), 16, 0xff);
        return of;
    };
    CHECK(string_of(bytes(shared(object(4, kAscii, 40, {'m', 'a', 'i', 'n', 0}))), 32, 56) == "main");
    CHECK(string_of(bytes(shared(object(2, kTwo, 56, {0x41, 0, 0xb1, 0x03}))), 32, 56) == "A\u03b1");
    CHECK_FALSE(string_of(bytes(object(4, kAscii, 40, {'m', 'a', 'i', 'n', 0})), 32, 56));
}
