// The byte reader: never past the end, and errors that say where.
#include "runtime/base/bytes.h"

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "runtime/base/fail.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("bytes: a reader stops at the end and says where") {
    const unsigned char raw[] = {1, 0, 0, 0, 'a', 'b', 0, 'c'};
    ByteReader r(std::as_bytes(std::span(raw)), "x.o: .test", 0x40);
    CHECK(*r.read<uint32_t>() == 1);
    CHECK(*r.c_string() == "ab");
    auto unterminated = r.c_string();
    REQUIRE(!unterminated);
    CHECK(unterminated.error().context == "x.o: .test: offset 0x47: string has no end");
    auto past = r.read<uint64_t>();
    REQUIRE(!past);
    CHECK(past.error().kind == Errc::bad_input);
    CHECK(past.error().context == "x.o: .test: offset 0x47: needs 8 bytes, and 1 are left");
    CHECK(r.take(1));
    CHECK(r.done());
    CHECK(!r.seek(9));
}

TEST_CASE("bytes: the other byte order is swapped") {
    const unsigned char raw[] = {0x12, 0x34, 0x56, 0x78};
    ByteReader r(std::as_bytes(std::span(raw)), "x", 0, true);
    CHECK(*r.read<uint32_t>() == 0x12345678u);
}

static Result<int> outer(bool good) {
    auto inner = [&]() -> Result<int> {
        if (!good) return fail_os(2, "opening {}", "/nowhere");
        return 41;
    };
    int value = TRY_IN(inner(), "reading {}", "the answer");
    return value + 1;
}

TEST_CASE("result: TRY passes errors on with a phrase in front") {
    CHECK(*outer(true) == 42);
    auto bad = outer(false);
    REQUIRE(!bad);
    CHECK(bad.error().kind == Errc::not_found);
    CHECK(bad.error().message() == "reading the answer: opening /nowhere: No such file or directory (ENOENT)");
}

// A refusal must not be read as a false: Result<bool> more = map.next_key(...).
template <class T, class From> constexpr bool makes = std::is_constructible_v<Result<T>, From>;
static_assert(makes<bool, bool> && makes<bool, const bool &> && makes<bool, Result<bool>> && makes<bool, Unexpected>);
static_assert(!makes<bool, Result<void>> && !makes<bool, Result<int>> && !makes<bool, const Result<std::string> &>);
static_assert(!makes<bool, int> && !makes<bool, const char *> && !makes<bool, std::optional<int>>);
static_assert(makes<int, int> && makes<std::string, std::string_view> && makes<std::optional<int>, int>);
static_assert(!makes<std::optional<bool>, Result<bool>> && !makes<int, Result<bool>>);
