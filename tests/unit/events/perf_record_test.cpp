// The records of the sideband: built byte by byte as kernel/events/core.c writes them, cut at every byte, and read out of a
// ring in plain memory.
#include <cstring>
#include <string>
#include <vector>

#include <linux/perf_event.h>
#include <sys/mman.h>

#include "runtime/events/perf_ring.h"
#include "runtime/sys/narrow_call.h"
#include "runtime/sys/perf.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

/// One record under construction.
struct Record {
    std::string bytes;
    Record(uint32_t type, uint16_t misc) { u32(type), u16(misc), u16(0); }
    Record &u8(uint8_t v) { return put(v); }
    Record &u16(uint16_t v) { return put(v); }
    Record &u32(uint32_t v) { return put(v); }
    Record &u64(uint64_t v) { return put(v); }
    Record &text(std::string_view v) {
        bytes.append(v).append(8 - v.size() % 8, '\0');
        return *this;
    }
    /// Appends the sample_id, sets the size.
    std::string end(uint32_t pid = 7, uint32_t tid = 8, uint64_t time = 123456789, uint32_t cpu = 3) {
        u32(pid), u32(tid), u64(time), u32(cpu), u32(0);
        const auto size = static_cast<uint16_t>(bytes.size());
        std::memcpy(bytes.data() + 6, &size, sizeof size);
        return bytes;
    }

  private:
    template <class T> Record &put(T v) {
        bytes.append(reinterpret_cast<const char *>(&v), sizeof v);
        return *this;
    }
};

std::string mmap_inode(std::string_view file = "/usr/lib/libx.so.1") {
    Record r(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
    r.u32(100).u32(101).u64(0x7f0000001000).u64(0x2000).u64(0x1000);
    r.u32(8).u32(1).u64(4711).u64(99).u32(PROT_READ | PROT_EXEC).u32(MAP_PRIVATE).text(file);
    return r.end();
}

std::string mmap_build_id(uint8_t size = 20) {
    Record r(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
    r.u32(100).u32(101).u64(0x400000).u64(0x1000).u64(0).u8(size).u8(0).u16(0);
    for (uint8_t i = 0; i < 20; ++i) r.u8(0xa0 + i);
    r.u32(PROT_EXEC).u32(MAP_PRIVATE).text("/bin/x");
    return r.end();
}

std::string comm(bool exec, std::string_view name) {
    return Record(PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0).u32(5).u32(6).text(name).end();
}

std::string task(uint32_t type) { return Record(type, 0).u32(20).u32(10).u32(21).u32(11).u64(55).end(); }
std::string lost(uint64_t count) { return Record(PERF_RECORD_LOST, 0).u64(1).u64(count).end(); }

SidebandRecord parse(const std::string &bytes) {
    auto record = parse_record(bytes_of(bytes));
    REQUIRE(record);
    return *record;
}

} // namespace

TEST_CASE("perf record: each kind says what it holds") {
    const std::string inode = mmap_inode(), build_id = mmap_build_id(), exec = comm(true, "bash");
    auto r = parse(inode);
    CHECK(r.pid == 7);
    CHECK(r.tid == 8);
    CHECK(r.t_ns == 123456789);
    CHECK(r.cpu == 3);
    const auto &by_inode = std::get<MapRecord>(r.what);
    CHECK(by_inode.pid == 100);
    CHECK(by_inode.tid == 101);
    CHECK(by_inode.address == 0x7f0000001000);
    CHECK(by_inode.length == 0x2000);
    CHECK(by_inode.offset == 0x1000);
    CHECK(by_inode.device_major == 8);
    CHECK(by_inode.device_minor == 1);
    CHECK(by_inode.inode == 4711);
    CHECK(by_inode.generation == 99);
    CHECK(by_inode.build_id.empty());
    CHECK(by_inode.protection == (PROT_READ | PROT_EXEC));
    CHECK(by_inode.flags == MAP_PRIVATE);
    CHECK(by_inode.file == "/usr/lib/libx.so.1");

    r = parse(build_id);
    const auto &by_build_id = std::get<MapRecord>(r.what);
    REQUIRE(by_build_id.build_id.size() == 20);
    CHECK(by_build_id.build_id[0] == std::byte{0xa0});
    CHECK(by_build_id.build_id[19] == std::byte{0xb3});
    CHECK(by_build_id.inode == 0);
    CHECK(by_build_id.file == "/bin/x");

    r = parse(exec);
    CHECK(std::get<CommRecord>(r.what).exec);
    CHECK(std::get<CommRecord>(r.what).pid == 5);
    CHECK(std::get<CommRecord>(r.what).tid == 6);
    CHECK(std::get<CommRecord>(r.what).comm == "bash");
    CHECK(!std::get<CommRecord>(parse(comm(false, "worker")).what).exec);

    const auto fork = std::get<TaskRecord>(parse(task(PERF_RECORD_FORK)).what);
    CHECK(!fork.exit);
    CHECK(fork.pid == 20);
    CHECK(fork.parent_pid == 10);
    CHECK(fork.tid == 21);
    CHECK(fork.parent_tid == 11);
    CHECK(std::get<TaskRecord>(parse(task(PERF_RECORD_EXIT)).what).exit);
    CHECK(std::get<LostRecord>(parse(lost(42)).what).count == 42);
    CHECK(std::get<OtherRecord>(parse(Record(PERF_RECORD_THROTTLE, 0).u64(1).u64(2).u64(3).end()).what).type ==
          PERF_RECORD_THROTTLE);
}

TEST_CASE("perf record: cut at every byte it is an error, whether the size field knows of the cut or not") {
    for (const std::string &whole : {mmap_inode(), mmap_build_id(), comm(true, "sh"), task(PERF_RECORD_FORK), lost(1)}) {
        for (size_t size = 0; size < whole.size(); ++size) {
            std::string cut = whole.substr(0, size);
            auto as_is = parse_record(bytes_of(cut));
            REQUIRE(!as_is);
            CHECK(as_is.error().kind == Errc::bad_input);
            if (size < 8) continue;
            const auto told = static_cast<uint16_t>(size);
            std::memcpy(cut.data() + 6, &told, sizeof told);
            // A record without its last bytes can look whole when padding is what was cut: then it must parse to something
            // that lies within it.
            if (auto record = parse_record(bytes_of(cut)))
                if (auto *map = std::get_if<MapRecord>(&record->what))
                    CHECK(map->file.data() + map->file.size() <= cut.data() + cut.size());
        }
    }
}

TEST_CASE("perf record: nonsense is refused, with its place") {
    auto too_long = parse_record(bytes_of(mmap_build_id(21)));
    REQUIRE(!too_long);
    CHECK(too_long.error().context == "perf record: offset 0x28: build-id of 21 bytes");

    std::string no_nul = mmap_inode("/x");
    std::memset(no_nul.data() + 8 + 64, 'x', no_nul.size() - 8 - 64 - 24);
    CHECK(!parse_record(bytes_of(no_nul)));

    Record wraps(PERF_RECORD_MMAP2, 0);
    wraps.u32(1).u32(1).u64(UINT64_MAX - 10).u64(0x1000).u64(0).u64(0).u64(0).u64(0).u32(0).u32(0).text("x");
    CHECK(!parse_record(bytes_of(wraps.end())));
}

namespace {

/// The mapping of a perf ring, in plain memory.
struct FakeSideband {
    size_t page = sys::page_size();
    explicit FakeSideband(size_t size) : size(size) {
        void *at = mmap(nullptr, page + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        base = static_cast<std::byte *>(at);
        ring = std::make_unique<SidebandRing>(SidebandRing::over(sys::Mapping(at, page + size)).value());
    }
    perf_event_mmap_page &control() { return *reinterpret_cast<perf_event_mmap_page *>(base); }
    bool put(std::string_view record) {
        uint64_t head = control().data_head;
        if (head + record.size() - __atomic_load_n(&control().data_tail, __ATOMIC_ACQUIRE) > size) return false;
        for (char c : record) base[page + (head++ & (size - 1))] = static_cast<std::byte>(c);
        __atomic_store_n(&control().data_head, head, __ATOMIC_RELEASE);
        return true;
    }
    size_t size;
    std::byte *base;
    std::unique_ptr<SidebandRing> ring;
};

} // namespace

TEST_CASE("sideband ring: records in order over many laps, wrapped ones put together") {
    FakeSideband fake(sys::page_size());
    uint32_t written = 0, read = 0;
    for (int round = 0; round < 2000; ++round) {
        const std::string name(1 + round % 200, static_cast<char>('a' + round % 26));
        while (fake.put(mmap_inode(name))) ++written;
        fake.ring->consume([&](const SidebandRecord &record) {
            ++read;
            const auto &map = std::get<MapRecord>(record.what);
            REQUIRE(map.file == name);
        });
        REQUIRE(fake.ring->available() == 0);
        REQUIRE(fake.control().data_tail == fake.control().data_head);
    }
    CHECK(read == written);
    CHECK(read > 2000 * 10);
    CHECK(fake.ring->malformed() == 0);
}

TEST_CASE("sideband ring: lost records are summed, malformed ones counted and passed over") {
    FakeSideband fake(sys::page_size());
    fake.put(lost(3));
    fake.put(mmap_build_id(77));
    fake.put(lost(4));
    size_t seen = 0;
    CHECK(fake.ring->consume([&](const SidebandRecord &) { ++seen; }) == 2);
    CHECK(seen == 2);
    CHECK(fake.ring->lost() == 7);
    CHECK(fake.ring->malformed() == 1);
}

TEST_CASE("sideband ring: a hostile size never leads outside, and reading goes on after it") {
    for (uint16_t size : {0, 4, 7, 9, 0x1000, 0xfff8, 0xffff}) {
        FakeSideband fake(sys::page_size());
        std::string bad = comm(false, "x");
        std::memcpy(bad.data() + 6, &size, sizeof size);
        fake.put(comm(false, "good"));
        fake.put(bad);
        CHECK(fake.ring->consume([](const SidebandRecord &) {}) == 1);
        CHECK(fake.ring->malformed() == 1);
        fake.put(comm(false, "good again"));
        CHECK(fake.ring->consume([](const SidebandRecord &) {}) == 1);
    }
    FakeSideband fake(sys::page_size());
    fake.control().data_head = uint64_t{1} << 40;
    CHECK(fake.ring->consume([](const SidebandRecord &) {}) == 0);
    CHECK(fake.ring->malformed() == 1);
}

TEST_CASE("sideband ring: what the kernel would refuse is refused before") {
    CHECK(SidebandRing::open({.pid = -1, .cpu = -1}).error().kind == Errc::invalid_argument);
    CHECK(SidebandRing::open({.pid = 1, .cpu = -1, .inherit = true}).error().kind == Errc::invalid_argument);
    CHECK(SidebandRing::open({.pid = 1, .cpu = 0, .bytes = SIZE_MAX}).error().kind == Errc::invalid_argument);
    CHECK(!SidebandRing::over({}));
}

namespace {

/// Rings of events in plain memory, since the fake kernel's descriptors can't be mapped.
std::optional<long> map_anonymously(const sys::Call &call) {
    if (call.number != __NR_mmap) return std::nullopt;
    sys::Call anonymous = call;
    anonymous.args[3] = MAP_PRIVATE | MAP_ANONYMOUS;
    anonymous.args[4] = static_cast<uint64_t>(-1);
    return sys::kernel_backend().call(anonymous);
}

} // namespace

TEST_CASE("sideband ring: whichever call fails, nothing is left open") {
    int failures = 0;
    for (int n = 1; n <= 4; ++n) {
        test::FakeKernel kernel;
        kernel.script = map_anonymously;
        kernel.fail(n, EMFILE);
        {
            auto ring = SidebandRing::open({.pid = 1, .cpu = 0});
            CHECK(ring.has_value() == !kernel.failed());
            if (!ring) CHECK(ring.error().os == EMFILE);
            failures += !ring;
        }
        CHECK(kernel.leaks() == "");
    }
    CHECK(failures == 2); // perf_event_open, mmap
}

TEST_CASE("sideband ring: a kernel that doesn't know build-ids in maps is asked again without") {
    test::FakeKernel kernel;
    int asked = 0;
    kernel.script = [&](const sys::Call &call) -> std::optional<long> {
        if (call.number != __NR_perf_event_open) return map_anonymously(call);
        ++asked;
        const auto attr = load<sys::PerfEventAttr>(reinterpret_cast<const std::byte *>(call.args[0]));
        if (attr.bits & sys::kPerfBuildId) return -EINVAL;
        return std::nullopt;
    };
    auto ring = SidebandRing::open({.pid = 1, .cpu = 0});
    REQUIRE(ring);
    CHECK(asked == 2);
    CHECK(!ring->build_ids());
    ring = SidebandRing::open({.pid = 1, .cpu = 0, .build_ids = false});
    CHECK(asked == 3);
}
