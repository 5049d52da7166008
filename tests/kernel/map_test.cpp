// Maps of every kind that the profilers use, in the running kernel.
#include "runtime/kernel/map.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runtime/kernel/probes.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/uapi.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

MapSpec spec_of(uint32_t type, uint32_t key, uint32_t value, uint32_t entries) {
    MapSpec spec;
    spec.name = "a map with a long, illegal name";
    spec.type = type;
    spec.key_size = key;
    spec.value_size = value;
    spec.max_entries = entries;
    return spec;
}

bool may_use_bpf() { return Map::create(spec_of(BPF_MAP_TYPE_ARRAY, 4, 4, 1)).has_value(); }

#define NEEDS_BPF()                                                                                                              \
    if (!may_use_bpf()) SKIP("needs CAP_BPF")

} // namespace

TEST_CASE("map: hash: put, get, erase, walk") {
    NEEDS_BPF();
    auto before = test::open_descriptors();
    {
        Map map = Map::create(spec_of(BPF_MAP_TYPE_HASH, 4, 8, 100)).value();
        CHECK(map.name() == "a map with a long, illegal name");
        CHECK_FALSE(map.per_cpu());
        CHECK(map.lookup_size() == 8);
        auto missing = map.get<uint32_t, uint64_t>(7);
        REQUIRE_FALSE(missing.has_value());
        CHECK(missing.error().kind == Errc::not_found);
        CHECK(missing.error().message().find("a map with a long") != std::string::npos);
        for (uint32_t i = 0; i < 100; ++i) REQUIRE(map.put<uint32_t, uint64_t>(i, i * 1000).has_value());
        CHECK(map.get<uint32_t, uint64_t>(42).value() == 42000);
        auto full = map.put<uint32_t, uint64_t>(100, 1);
        REQUIRE_FALSE(full.has_value());
        CHECK(full.error().os == E2BIG);
        CHECK(full.error().kind == Errc::no_memory);
        CHECK(full.error().message().find(" is full, with 100 entries: ") != std::string::npos);
        auto exists = map.put<uint32_t, uint64_t>(42, 1, BPF_NOEXIST);
        CHECK(exists.error().os == EEXIST);
        uint32_t key = 42, next = 0;
        CHECK(map.erase(&key).has_value());
        CHECK_FALSE(map.erase(&key).has_value());
        CHECK(map.next_key(nullptr, &next).has_value());
        // Wrong sizes never reach the kernel.
        CHECK(map.get<uint64_t, uint64_t>(1).error().kind == Errc::invalid_argument);
        CHECK(map.get<uint32_t, uint32_t>(1).error().kind == Errc::invalid_argument);
    }
    CHECK(test::open_descriptors() == before);
}

TEST_CASE("map: read_all gives every entry of a hash, in batches, and can empty it") {
    NEEDS_BPF();
    constexpr uint32_t kCount = 20000; // more than one batch
    Map map = Map::create(spec_of(BPF_MAP_TYPE_HASH, 4, 32, kCount)).value();
    std::vector<uint32_t> value(8);
    for (uint32_t i = 0; i < kCount; ++i) {
        value[0] = i ^ 0x5555;
        REQUIRE(map.update(&i, value.data()).has_value());
    }
    for (bool and_delete : {false, true}) {
        CAPTURE(and_delete);
        Map::Entries all = map.read_all(and_delete).value();
        REQUIRE(all.count == kCount);
        REQUIRE(all.keys.size() == kCount * 4);
        REQUIRE(all.values.size() == kCount * 32);
        std::vector<bool> seen(kCount);
        for (size_t i = 0; i < all.count; ++i) {
            uint32_t k = load<uint32_t>(all.keys.data() + i * 4), v = load<uint32_t>(all.values.data() + i * 32);
            REQUIRE(k < kCount);
            CHECK(v == (k ^ 0x5555));
            seen[k] = true;
        }
        CHECK(std::count(seen.begin(), seen.end(), true) == kCount);
    }
    CHECK(map.read_all().value().count == 0);
}

TEST_CASE("map: per-CPU array and hash hold a value for each possible CPU") {
    NEEDS_BPF();
    const size_t cpus = static_cast<size_t>(possible_cpu_count().value());
    for (uint32_t type : {BPF_MAP_TYPE_PERCPU_ARRAY, BPF_MAP_TYPE_PERCPU_HASH}) {
        Map map = Map::create(spec_of(type, 4, 12, 3)).value();
        CHECK(map.per_cpu());
        REQUIRE(map.lookup_size() == 16 * cpus);
        struct Value {
            uint32_t a, b, c;
        };
        std::vector<std::byte> raw(map.lookup_size());
        for (size_t cpu = 0; cpu < cpus; ++cpu) {
            Value v{static_cast<uint32_t>(cpu), 7, static_cast<uint32_t>(cpu * cpu)};
            std::memcpy(raw.data() + cpu * 16, &v, sizeof v);
        }
        uint32_t key = 2;
        REQUIRE(map.update(&key, raw.data()).has_value());
        auto values = map.get_per_cpu<uint32_t, Value>(2).value();
        REQUIRE(values.size() == cpus);
        for (size_t cpu = 0; cpu < cpus; ++cpu) {
            CHECK(values[cpu].a == cpu);
            CHECK(values[cpu].b == 7);
            CHECK(values[cpu].c == cpu * cpu);
        }
        Map::Entries all = map.read_all().value();
        CHECK(all.count == (type == BPF_MAP_TYPE_PERCPU_ARRAY ? 3 : 1));
        CHECK(all.values.size() == all.count * map.lookup_size());
    }
}

TEST_CASE("map: types without batch commands are read one by one") {
    NEEDS_BPF();
    if (!has_map_type(BPF_MAP_TYPE_QUEUE)) SKIP("needs queues, 4.20");
    Map queue = Map::create(spec_of(BPF_MAP_TYPE_QUEUE, 0, 4, 8)).value();
    for (uint32_t i = 1; i <= 3; ++i) REQUIRE(queue.update(nullptr, &i).has_value());
    CHECK(queue.read_all().error().kind == Errc::invalid_argument);
    Map::Entries all = queue.read_all(true).value();
    REQUIRE(all.count == 3);
    CHECK(load<uint32_t>(all.values.data()) == 1);

    // A stack trace map has keys, lookups and deletions, but no batch commands.
    Map stacks = Map::create(spec_of(BPF_MAP_TYPE_STACK_TRACE, 4, 8 * 16, 64)).value();
    CHECK(stacks.read_all().value().count == 0);
}

TEST_CASE("map: a frozen array can be read but no longer written") {
    NEEDS_BPF();
    if (!has_feature(Feature::map_freeze)) SKIP("needs " + std::string(feature_name(Feature::map_freeze)));
    Map map = Map::create(spec_of(BPF_MAP_TYPE_ARRAY, 4, 4, 1)).value();
    REQUIRE(map.put<uint32_t, uint32_t>(0, 5).has_value());
    REQUIRE(map.freeze().has_value());
    auto refused = map.put<uint32_t, uint32_t>(0, 6);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().kind == Errc::permission);
    CHECK(refused.error().hint.find("frozen") != std::string::npos);
    CHECK(map.get<uint32_t, uint32_t>(0).value() == 5);
}

TEST_CASE("map: rings are rounded up to whole pages") {
    NEEDS_BPF();
    if (!has_feature(Feature::ring_buffer)) SKIP("needs " + std::string(feature_name(Feature::ring_buffer)));
    Map map = Map::create(spec_of(BPF_MAP_TYPE_RINGBUF, 0, 0, 5000)).value();
    CHECK(map.max_entries() >= 8192);
    CHECK(map.max_entries() % sys::page_size() == 0);
    CHECK((map.max_entries() & (map.max_entries() - 1)) == 0);
}

TEST_CASE("map: perf event array sizes itself, map-in-map makes its inner map, LRU, LPM and prog arrays work") {
    NEEDS_BPF();
    auto before = test::open_descriptors();
    {
        Map events = Map::create(spec_of(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 0, 0, 0)).value();
        CHECK(events.max_entries() == static_cast<uint32_t>(possible_cpu_count().value()));
        MapSpec outer = spec_of(BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, 10);
        outer.inner = std::make_shared<MapSpec>(spec_of(BPF_MAP_TYPE_ARRAY, 4, 8, 2));
        Map maps = Map::create(outer).value();
        Map inner = Map::create(*outer.inner).value();
        uint32_t key = 3, fd = static_cast<uint32_t>(inner.fd());
        CHECK(maps.update(&key, &fd).has_value());
        CHECK(Map::create(spec_of(BPF_MAP_TYPE_LRU_HASH, 8, 8, 1000)).has_value());
        MapSpec trie = spec_of(BPF_MAP_TYPE_LPM_TRIE, 8, 8, 1000);
        trie.flags = BPF_F_NO_PREALLOC;
        CHECK(Map::create(trie).has_value());
        CHECK(Map::create(spec_of(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 33)).has_value());
    }
    CHECK(test::open_descriptors() == before);
}

TEST_CASE("map: what a descriptor refers to is asked from the kernel") {
    NEEDS_BPF();
    Map made = Map::create(spec_of(BPF_MAP_TYPE_LRU_HASH, 8, 24, 77)).value();
    Map same = Map::from_fd(Fd(fcntl(made.fd(), F_DUPFD_CLOEXEC, 3))).value();
    CHECK(same.type() == BPF_MAP_TYPE_LRU_HASH);
    CHECK(same.key_size() == 8);
    CHECK(same.value_size() == 24);
    CHECK(same.max_entries() == 77);
    CHECK(same.name() == "a_map_with_a_lo");
    Result<Map> none = Map::from_fd(Fd(fcntl(0, F_DUPFD_CLOEXEC, 3)));
    CHECK_FALSE(none.has_value());
}

TEST_CASE("map: a type that this kernel doesn't have is named, with what it needs") {
    NEEDS_BPF();
    Result<Map> map = Map::create(spec_of(9999, 4, 4, 1));
    REQUIRE_FALSE(map.has_value());
    CHECK(map.error().kind == Errc::unsupported);
    CHECK(map.error().message().find("creating map a map with") != std::string::npos);
    // A type that is there, asked for with nonsense, is the caller's fault.
    Result<Map> wrong = Map::create(spec_of(BPF_MAP_TYPE_ARRAY, 8, 4, 1));
    REQUIRE_FALSE(wrong.has_value());
    CHECK(wrong.error().kind == Errc::invalid_argument);
}

TEST_CASE("map: pinning where there is no bpf file system says what to mount") {
    NEEDS_BPF();
    Map map = Map::create(spec_of(BPF_MAP_TYPE_ARRAY, 4, 4, 1)).value();
    Result<void> nowhere = map.pin("/tmp/not-a-bpf-fs");
    REQUIRE_FALSE(nowhere.has_value());
    CHECK(nowhere.error().hint.find("mount -t bpf") != std::string::npos);
    CHECK(nowhere.error().message().find("/tmp/not-a-bpf-fs") != std::string::npos);
}

TEST_CASE("map: pinned, it outlives its descriptor") {
    NEEDS_BPF();
    struct statfs fs {};
    if (statfs("/sys/fs/bpf", &fs) != 0 || fs.f_type != 0xcafe4a11) SKIP("needs a bpf file system at /sys/fs/bpf");
    const std::string path = "/sys/fs/bpf/rawbpf-test-" + std::to_string(getpid());
    {
        Map map = Map::create(spec_of(BPF_MAP_TYPE_ARRAY, 4, 4, 1)).value();
        REQUIRE(map.put<uint32_t, uint32_t>(0, 77).has_value());
        REQUIRE(map.pin(path).has_value());
        CHECK(map.pin(path).error().os == EEXIST);
    }
    Map again = Map::from_fd(sys::obj_get(path).value()).value();
    CHECK(again.get<uint32_t, uint32_t>(0).value() == 77);
    CHECK(unlink(path.c_str()) == 0);
    CHECK(sys::obj_get(path).error().kind == Errc::not_found);
}
