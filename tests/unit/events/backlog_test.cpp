// Records that wait, within a bound; and the reader that has them behind a ring.
#include "runtime/events/backlog.h"

#include <elf.h>
#include <string>
#include <sys/auxv.h>
#include <vector>

#include "runtime/events/ring_reader.h"
#include "tests/support/fake_ring.h"
#include "tests/support/test.h"

using namespace rawbpf;
using rawbpf::test::FakeRing;

namespace {

std::string text_of(Bytes record) { return {reinterpret_cast<const char *>(record.data()), record.size()}; }

std::vector<std::string> all_of(Backlog &backlog) {
    std::vector<std::string> out;
    for (Backlog::Chunk chunk = backlog.take(); chunk.left() != 0; chunk = backlog.take()) {
        for (Bytes record; chunk.next(record);) out.push_back(text_of(record));
        backlog.give_back(std::move(chunk));
    }
    return out;
}

// A record of a hundred bytes that says which one it is.
std::string numbered(size_t i) {
    std::string text = std::to_string(i);
    text.resize(100, '.');
    return text;
}

} // namespace

TEST_CASE("backlog: what goes in comes out, whole and in order, over many chunks") {
    Backlog::Bound bound{64 << 20};
    Backlog backlog(bound);
    std::vector<std::string> sent;
    for (size_t i = 0; i < 20'000; ++i) sent.push_back(std::string(i % 300, static_cast<char>('a' + i % 26)));
    sent.push_back(std::string(3 * Backlog::kChunkBytes, 'x')); // longer than a chunk is
    sent.emplace_back("behind it");
    for (const std::string &text : sent) REQUIRE(backlog.push(bytes_of(text)));
    CHECK(backlog.waiting() == sent.size());
    CHECK(backlog.refused() == 0);
    CHECK(bound.used > 3'000'000);
    CHECK(all_of(backlog) == sent);
    CHECK(backlog.waiting() == 0);
    CHECK(bound.used <= Backlog::kChunkBytes); // one chunk is kept
    CHECK(all_of(backlog).empty());
}

TEST_CASE("backlog: the bound is held, what it refuses is counted, and is the newest") {
    Backlog::Bound bound{3 * Backlog::kChunkBytes};
    Backlog backlog(bound);
    uint64_t taken = 0;
    for (size_t i = 0; i < 20'000; ++i) {
        const bool fits = backlog.push(bytes_of(numbered(i)));
        CHECK(fits == (backlog.refused() == 0)); // none after the first that was refused
        taken += fits;
        REQUIRE(bound.used <= bound.most);
    }
    CHECK(taken == backlog.waiting());
    CHECK(taken + backlog.refused() == 20'000);
    CHECK(taken * 112 <= bound.most);
    CHECK(taken * 112 > bound.most * 99 / 100);
    CHECK_FALSE(backlog.push(bytes_of(std::string(Backlog::kChunkBytes, 'x'))));
    // A chunk that is being read is memory as well; when it is given back there is room.
    Backlog::Chunk first = backlog.take();
    CHECK_FALSE(backlog.push(bytes_of(numbered(0))));
    backlog.give_back(std::move(first));
    CHECK(backlog.push(bytes_of("room")));
    const std::vector<std::string> rest = all_of(backlog);
    CHECK(rest.back() == "room");
    CHECK(rest[rest.size() - 2] == numbered(taken - 1));
}

TEST_CASE("backlog: what others need has room beyond the bound, and that room is nobody else's") {
    Backlog::Bound bound{2 * Backlog::kChunkBytes, 0, 2 * Backlog::kChunkBytes};
    Backlog backlog(bound);
    uint64_t taken = 0;
    while (backlog.push(bytes_of(numbered(taken)))) ++taken;
    CHECK(backlog.refused() == 1);
    uint64_t needed = 0;
    while (backlog.push_needed(bytes_of("needed"))) {
        if (++needed == 1) CHECK(backlog.refused() == 0);
        if (needed % 1000 == 0) CHECK_FALSE(backlog.push(bytes_of("other"))); // though its chunk has room
        REQUIRE(bound.used <= bound.most + bound.beyond);
    }
    CHECK(needed * 16 > bound.beyond * 99 / 100);
    CHECK_FALSE(backlog.push_needed(bytes_of("needed")));
    const std::vector<std::string> all = all_of(backlog);
    CHECK(all.size() == taken + needed);
    CHECK(all.back() == "needed");
    CHECK(bound.used <= bound.most);
    CHECK(backlog.push(bytes_of("room again")));
}

TEST_CASE("ring reader: what others need isn't refused with the rest") {
    FakeRing fake(sys::page_size());
    std::vector<RingBuffer> rings;
    rings.push_back(fake.reader());
    size_t refused = 0, sent = 0, needed = 0, seen = 0;
    const auto is_needed = [](Bytes record) { return text_of(record).starts_with("needed"); };
    RingReader reader(
        std::move(rings), 1,
        [&](Bytes record) {
            CHECK_FALSE(is_needed(record));
            ++refused;
        },
        is_needed);
    while (sent < 10'000) {
        while (fake.put(sent % 10 == 0 ? "needed" + std::to_string(sent) : numbered(sent))) ++sent;
        reader.stop();
    }
    CHECK(refused > 0);
    CHECK(reader.refused() == refused);
    std::string last;
    while (reader.read([&](Bytes record) {
        ++seen;
        if (!is_needed(record)) return;
        ++needed;
        last = text_of(record);
    }) > 0) {
    }
    CHECK(seen + refused == sent);
    CHECK(needed == (sent + 9) / 10);
    CHECK(last == "needed" + std::to_string((sent - 1) / 10 * 10));
}

TEST_CASE("ring reader: a caller that looks at one record in a while loses none that the backlog has room for") {
    FakeRing fake(sys::page_size());
    std::vector<RingBuffer> rings;
    rings.push_back(fake.reader());
    RingReader reader(std::move(rings), 64 << 20, [](Bytes) { FAIL("refused"); });
    constexpr size_t kAll = 100'000;
    size_t sent = 0, seen = 0;
    const auto see = [&](Bytes record) {
        REQUIRE(text_of(record) == numbered(seen));
        ++seen;
    };
    const auto fill = [&] {
        while (sent < kAll && fake.put(numbered(sent))) ++sent;
    };
    const auto check_peek = [&] { // at the end of a chunk, too
        Bytes next;
        CHECK(reader.peek(next) == reader.behind());
        CHECK(text_of(next) == (reader.behind() ? numbered(seen) : std::string()));
    };
    fill();
    CHECK(sent < 100); // the ring is small
    while (sent < kAll) {
        CHECK(reader.read(see, 1) == 1);
        fill();
        reader.stop(); // as a thread would have: the ring into the backlog
        check_peek();
    }
    CHECK(reader.behind());
    CHECK(reader.waiting() + seen == kAll);
    CHECK_FALSE(reader.may_sleep());
    while (reader.read(see, 1000) > 0) check_peek();
    CHECK(seen == kAll);
    CHECK(reader.may_sleep());
}

TEST_CASE("ring reader: what the backlog has no room for is shown to the caller, exactly") {
    FakeRing fake(sys::page_size());
    std::vector<RingBuffer> rings;
    rings.push_back(fake.reader());
    size_t refused = 0;
    RingReader reader(std::move(rings), 1, [&](Bytes record) {
        CHECK(record.size() == 100);
        ++refused;
    });
    size_t sent = 0, seen = 0;
    while (sent < 10'000) {
        while (fake.put(numbered(sent))) ++sent;
        reader.stop();
    }
    CHECK(refused > 0);
    while (reader.read([&](Bytes) { ++seen; }) > 0) {
    }
    CHECK(seen + refused == sent);
    CHECK(seen * 112 <= 2 * Backlog::kChunkBytes);
}

TEST_CASE("ring reader: producers that are as fast as the reader don't keep it") {
    FakeRing fake(1 << 20);
    std::vector<RingBuffer> rings;
    rings.push_back(fake.reader());
    const std::string text(400, 'x'); // more of them fit into the ring than are moved at once
    size_t refused = 0, sent = 0;
    const auto fill = [&] {
        while (sent < 100'000 && fake.put(text)) ++sent;
    };
    RingReader reader(std::move(rings), 1, [&](Bytes) {
        ++refused;
        fill();
    });
    fill();
    const size_t held = sent;
    reader.stop();
    CHECK(refused > held / 4);
    CHECK(refused < 3 * held);
    CHECK(sent < 100'000);
}

TEST_CASE("ring reader: its thread moves records while the caller does nothing, and rests with it") {
    FakeRing fake(16 * sys::page_size());
    std::vector<RingBuffer> rings;
    rings.push_back(fake.reader());
    RingReader reader(std::move(rings), 64 << 20, {});
    reader.keep_up();
    if (getauxval(AT_BASE) == 0) SKIP("a static program has one thread"); // it was started without a dynamic linker
    REQUIRE(reader.has_thread());
    constexpr size_t kAll = 20'000; // many times what the ring holds
    for (size_t sent = 0; sent < kAll;)
        if (fake.put(numbered(sent))) ++sent;
    reader.stop();
    CHECK_FALSE(reader.has_thread());
    size_t seen = 0;
    const size_t count = reader.read([&](Bytes record) {
        CHECK(text_of(record) == numbered(seen));
        ++seen;
        return seen != kAll / 2;
    });
    CHECK(count == kAll / 2);
    CHECK(reader.read([&](Bytes) { ++seen; }) == kAll / 2);
    CHECK(seen == kAll);
}
