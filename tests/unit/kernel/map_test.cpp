// Maps against a fake kernel: what is tried again, and how everything is read.
#include "runtime/kernel/map.h"

#include <cerrno>
#include <cstring>

#include "runtime/kernel/probes.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"

using namespace rawbpf;
using test::FakeKernel;

namespace {

MapSpec hash(uint32_t entries = 10) {
    MapSpec spec;
    spec.name = "things";
    spec.type = BPF_MAP_TYPE_HASH;
    spec.key_size = 4;
    spec.value_size = 4;
    spec.max_entries = entries;
    spec.key_type = 1;
    spec.value_type = 2;
    return spec;
}

} // namespace

TEST_CASE("map: types are given where they are welcome, and left out where not") {
    forget_features();
    FakeKernel kernel;
    std::vector<sys::MapCreateAttr> attrs;
    bool takes_types = true;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_bpf || c.args[0] != BPF_MAP_CREATE) return {};
        sys::MapCreateAttr attr;
        std::memcpy(&attr, reinterpret_cast<void *>(c.args[1]), c.args[2]);
        attrs.push_back(attr);
        if (attr.btf_fd != 0 && !takes_types) return -524;
        return {};
    };
    CHECK(Map::create(hash(), 77).has_value());
    REQUIRE(attrs.size() == 1);
    CHECK(attrs[0].btf_fd == 77);
    CHECK(attrs[0].btf_key_type_id == 1);
    CHECK(attrs[0].btf_value_type_id == 2);
    CHECK(std::string(attrs[0].map_name) == "things");
    takes_types = false;
    CHECK(Map::create(hash(), 77).has_value());
    REQUIRE(attrs.size() == 3);
    CHECK(attrs[2].btf_fd == 0);
    CHECK(attrs[2].btf_value_type_id == 0);
    // These never take any: not even tried.
    MapSpec ring = hash();
    ring.type = BPF_MAP_TYPE_RINGBUF;
    ring.key_size = ring.value_size = 0;
    CHECK(Map::create(ring, 77).has_value());
    CHECK(attrs.back().btf_fd == 0);
    CHECK(attrs.back().max_entries == sys::page_size());
    CHECK(kernel.leaks() == "");
    forget_features();
}

TEST_CASE("map: a kernel without names gets none") {
    forget_features();
    FakeKernel kernel;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_bpf || c.args[0] != BPF_MAP_CREATE) return {};
        if (c.args[2] > offsetof(sys::MapCreateAttr, map_name)) return -E2BIG;
        return {};
    };
    CHECK(Map::create(hash()).has_value());
    CHECK(kernel.leaks() == "");
    forget_features();
}

TEST_CASE("map: a type that the kernel lacks is told from wrong arguments") {
    forget_features();
    FakeKernel kernel;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_bpf || c.args[0] != BPF_MAP_CREATE) return {};
        auto *attr = reinterpret_cast<const sys::MapCreateAttr *>(c.args[1]);
        if (attr->map_type == BPF_MAP_TYPE_RINGBUF || attr->max_entries == 10) return -EINVAL;
        return {};
    };
    MapSpec ring = hash(4096);
    ring.type = BPF_MAP_TYPE_RINGBUF;
    Error missing = Map::create(ring).error();
    CHECK(missing.kind == Errc::unsupported);
    CHECK(missing.hint == "needs ring buffers, 5.8");
    Error wrong = Map::create(hash(10)).error();
    CHECK(wrong.kind == Errc::invalid_argument);
    CHECK(wrong.message() == "creating map things (BPF_MAP_TYPE_HASH, key 4 bytes, value 4 bytes, 10 entries): BPF_MAP_CREATE: "
                             "Invalid argument (EINVAL)");
    ring.max_entries = 0xffffffff;
    CHECK(Map::create(ring).error().kind == Errc::invalid_argument);
    forget_features();
}

TEST_CASE("map: what is wrong with a definition is said, the kernel has one EINVAL for all of it") {
    forget_features();
    FakeKernel kernel;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_bpf || c.args[0] != BPF_MAP_CREATE) return {};
        auto *attr = reinterpret_cast<const sys::MapCreateAttr *>(c.args[1]);
        return std::strncmp(attr->map_name, "wrong", 5) == 0 ? std::optional<long>(-EINVAL) : std::nullopt; // probes succeed
    };
    struct Wrong {
        uint32_t type, key, value, entries, flags;
        std::string_view hint;
    };
    for (const Wrong &w : {Wrong{BPF_MAP_TYPE_HASH, 4, 4, 0, 0, "max_entries is 0"},
                           {BPF_MAP_TYPE_HASH, 0, 4, 1, 0, "have keys"},
                           {BPF_MAP_TYPE_HASH, 4, 0, 1, 0, "have values"},
                           {BPF_MAP_TYPE_ARRAY, 8, 4, 1, 0, "4 bytes"},
                           {BPF_MAP_TYPE_REUSEPORT_SOCKARRAY, 8, 8, 1, 0, "4 bytes"},
                           {BPF_MAP_TYPE_STACK, 4, 4, 1, 0, "no keys"},
                           {BPF_MAP_TYPE_RINGBUF, 0, 4, 4096, 0, "no values"},
                           {BPF_MAP_TYPE_LPM_TRIE, 8, 4, 1, 0, "BPF_F_NO_PREALLOC"},
                           {BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 1, 0, "what maps it will hold"},
                           {BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, 1, 0, "__array(values"},
                           {BPF_MAP_TYPE_TASK_STORAGE, 4, 4, 1, BPF_F_NO_PREALLOC, "storage maps"},
                           {BPF_MAP_TYPE_TASK_STORAGE, 4, 4, 0, BPF_F_NO_PREALLOC, "doesn't know the map type"},
                           {BPF_MAP_TYPE_HASH, 4, 4, 1, 0, "doesn't know the map type"}}) {
        MapSpec spec;
        spec.name = "wrong";
        spec.type = w.type, spec.key_size = w.key, spec.value_size = w.value, spec.max_entries = w.entries, spec.flags = w.flags;
        const Error error = Map::create(spec).error();
        CHECK_MESSAGE(error.hint.find(w.hint) != std::string::npos, w.type << " " << error.hint);
    }
    forget_features();
}

TEST_CASE("map: reading everything one by one, with keys that vanish and a map that never ends") {
    FakeKernel kernel;
    Map map = Map::create(hash(4)).value();
    uint32_t last = 0;
    bool endless = false;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_bpf) return {};
        auto *attr = reinterpret_cast<const sys::MapElemAttr *>(c.args[1]);
        switch (c.args[0]) {
        case BPF_MAP_LOOKUP_BATCH: return -EINVAL; // 5.5 and older
        case BPF_MAP_GET_NEXT_KEY: {
            uint32_t key = attr->key ? *reinterpret_cast<const uint32_t *>(attr->key) : 0;
            if (key >= 4 && !endless) return -ENOENT;
            last = key + 1;
            *reinterpret_cast<uint32_t *>(attr->value) = last;
            return 0;
        }
        case BPF_MAP_LOOKUP_ELEM:
            if (*reinterpret_cast<const uint32_t *>(attr->key) == 2) return -ENOENT; // deleted in between
            *reinterpret_cast<uint32_t *>(attr->value) = 100 + last;
            return 0;
        default: return {};
        }
    };
    Map::Entries all = map.read_all().value();
    REQUIRE(all.count == 3);
    CHECK(load<uint32_t>(all.keys.data() + 4) == 3);
    CHECK(load<uint32_t>(all.values.data() + 4) == 103);
    endless = true;
    CHECK(map.read_all().value().count <= 4);
}

TEST_CASE("map: a bucket that is fuller than the batch makes the batch larger; other errors come out") {
    FakeKernel kernel;
    Map map = Map::create(hash(1000)).value();
    std::vector<uint32_t> asked;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_bpf || c.args[0] != BPF_MAP_LOOKUP_BATCH) return {};
        auto *attr = reinterpret_cast<sys::MapBatchAttr *>(c.args[1]);
        asked.push_back(attr->count);
        if (asked.size() == 1) return -ENOSPC;
        attr->count = 2;
        return asked.size() == 2 ? 0 : -ENOENT;
    };
    Map::Entries all = map.read_all().value();
    CHECK(all.count == 4);
    CHECK(all.keys.size() == 16);
    REQUIRE(asked.size() == 3);
    CHECK(asked[1] == 2 * asked[0]);
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number == __NR_bpf && c.args[0] == BPF_MAP_LOOKUP_BATCH) return -EPERM;
        return {};
    };
    CHECK(map.read_all().error().kind == Errc::permission);
    CHECK(map.read_all().error().message().find("reading map things") != std::string::npos);
}

TEST_CASE("map: a full one is told to be full, and an index past the end to be none") {
    FakeKernel kernel;
    const auto refused = [&](uint32_t type, int os) {
        MapSpec spec = hash(10);
        spec.type = type;
        kernel.script = [&, os](const sys::Call &c) -> std::optional<long> {
            if (c.number == __NR_bpf && c.args[0] == BPF_MAP_UPDATE_ELEM) return -os;
            return {};
        };
        return Map::create(spec).value().put(uint32_t{77}, uint32_t{1}).error();
    };
    for (uint32_t type : {BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_HASH_OF_MAPS, BPF_MAP_TYPE_SOCKHASH, BPF_MAP_TYPE_QUEUE}) {
        const Error full = refused(type, E2BIG);
        CHECK(full.kind == Errc::no_memory);
        CHECK(full.os == E2BIG);
        CHECK(full.message() == "map things is full, with 10 entries: BPF_MAP_UPDATE_ELEM: Argument list too long (E2BIG)");
    }
    const Error trie = refused(BPF_MAP_TYPE_LPM_TRIE, ENOSPC);
    CHECK(trie.kind == Errc::no_memory);
    CHECK(trie.message().starts_with("map things is full, with 10 entries: "));
    for (uint32_t type : {BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_PERF_EVENT_ARRAY, BPF_MAP_TYPE_DEVMAP}) {
        const Error past = refused(type, E2BIG);
        CHECK(past.kind == Errc::invalid_argument);
        CHECK(past.hint == "there is no entry 77: it has 10");
    }
    const Error there = refused(BPF_MAP_TYPE_HASH, EEXIST);
    CHECK(there.kind == Errc::busy);
    CHECK(there.message() == "map things: BPF_MAP_UPDATE_ELEM: File exists (EEXIST)");
    CHECK(refused(BPF_MAP_TYPE_HASH, ENOSPC).message().starts_with("map things: "));
}
