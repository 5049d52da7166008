// <rawbpf/core.h> on the running kernel: an object by its bytes, attached to a function of this program, its map and its ring
// read.
#include "runtime/core/rawbpf/core.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>

#include "asm/assemble.h"
#include "runtime/object/unit_elf.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

using namespace rawbpf;

extern "C" [[gnu::noinline, gnu::used]] void rawbpf_core_test_place() { asm volatile(""); }

namespace {

std::vector<std::byte> object_bytes(std::string_view text) {
    const Assembled made = assemble(text);
    INFO(made.report());
    REQUIRE(made);
    auto bytes = write_object(made.unit, nullptr);
    REQUIRE(bytes);
    return *bytes;
}

constexpr std::string_view kCounts = R"(
.map counts array key 4 value 8 entries 2
.map events ringbuf entries 4096
.rodata step u64 = 1
.program hit "uprobe"
    *(u32 *)(r10 - 4) = 1
    r1 = counts ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = step ll
    r1 = *(u64 *)(r1 + 0)
    lock *(u64 *)(r0 + 0) += r1
    *(u64 *)(r10 - 16) = r1
    r1 = events ll
    r2 = r10
    r2 += -16
    r3 = 8
    r4 = 0
    call bpf_ringbuf_output
out:
    r0 = 0
    exit
)";

rawbpf_object *opened(std::string_view text) {
    const std::vector<std::byte> bytes = object_bytes(text);
    rawbpf_object *object = nullptr;
    rawbpf_error error{};
    REQUIRE_MESSAGE(rawbpf_open_memory(bytes.data(), bytes.size(), "core.o", &object, &error) == RAWBPF_OK, error.text);
    return object;
}

bool unable(int code) { return code == RAWBPF_PERMISSION || code == RAWBPF_UNSUPPORTED; }

} // namespace

TEST_CASE("core.h: what isn't right is refused in words, before anything is in the kernel") {
    rawbpf_error error{};
    rawbpf_object *object = nullptr;
    CHECK(rawbpf_open_file("/nonexistent/x.o", &object, &error) == RAWBPF_NOT_FOUND);
    CHECK(error.code == RAWBPF_NOT_FOUND);
    CHECK(std::string(error.text).find("/nonexistent/x.o") != std::string::npos);
    CHECK(rawbpf_open_file("/nonexistent/x.o", &object, nullptr) == RAWBPF_NOT_FOUND);
    CHECK(rawbpf_open_memory("not an object", 13, "text", &object, &error) == RAWBPF_BAD_INPUT);
    CHECK(object == nullptr);

    object = opened(kCounts);
    uint64_t value = 3;
    CHECK(rawbpf_set_global(object, "stop", &value, sizeof value, &error) == RAWBPF_NOT_FOUND);
    CHECK(rawbpf_set_global(object, "step", &value, 4, &error) == RAWBPF_INVALID_ARGUMENT);
    CHECK(std::string(error.text) == "core.o: step has 8 bytes, not 4");
    CHECK(rawbpf_set_entries(object, "count", 5, &error) == RAWBPF_NOT_FOUND);
    CHECK(std::string(error.hint).find("counts, events") != std::string::npos);
    CHECK(rawbpf_select(object, "hits", 0, &error) == RAWBPF_NOT_FOUND);
    CHECK(rawbpf_attach(object, &error) == RAWBPF_INVALID_ARGUMENT);
    CHECK(std::string(error.hint) == "call rawbpf_load() first");
    CHECK(rawbpf_find_map(object, "counts") == nullptr);
    CHECK(rawbpf_program_fd(object, "hit", &error) == RAWBPF_INVALID_ARGUMENT);
    CHECK(rawbpf_load(nullptr, &error) == RAWBPF_INVALID_ARGUMENT);
    rawbpf_close(object);
    rawbpf_close(nullptr);
}

TEST_CASE("core.h: load, attach, read a map and a ring, and leave nothing") {
    const std::vector<std::string> before = test::open_descriptors();
    rawbpf_error error{};
    rawbpf_object *object = opened(kCounts);
    const uint64_t step = 5;
    REQUIRE(rawbpf_set_global(object, "step", &step, sizeof step, &error) == RAWBPF_OK);
    REQUIRE(rawbpf_set_entries(object, "counts", 3, &error) == RAWBPF_OK);
    if (const int code = rawbpf_load(object, &error); code != RAWBPF_OK) {
        rawbpf_close(object);
        if (unable(code)) SKIP(error.text);
        FAIL(error.text);
    }
    CHECK(rawbpf_set_global(object, "step", &step, sizeof step, &error) == RAWBPF_INVALID_ARGUMENT);
    CHECK(rawbpf_program_fd(object, "hit", &error) >= 0);

    rawbpf_map *counts = rawbpf_find_map(object, "counts");
    REQUIRE(counts);
    CHECK(rawbpf_map_fd(counts) >= 0);
    CHECK(rawbpf_map_key_size(counts) == 4);
    CHECK(rawbpf_map_value_size(counts) == 8);
    CHECK(rawbpf_map_entries(counts) == 3);
    CHECK(rawbpf_find_map(object, "count") == nullptr);
    CHECK(rawbpf_find_map(object, ".rodata") != nullptr);

    rawbpf_ring *ring = nullptr;
    CHECK(rawbpf_ring_open(object, "counts", &ring, &error) == RAWBPF_INVALID_ARGUMENT);
    REQUIRE_MESSAGE(rawbpf_ring_open(object, "events", &ring, &error) == RAWBPF_OK, error.text);
    CHECK(rawbpf_ring_fd(ring) >= 0);

    rawbpf_place place = RAWBPF_PLACE_INIT;
    place.target = "/proc/self/exe:rawbpf_core_test_no_such_place";
    CHECK(rawbpf_attach_program(object, "hit", &place, &error) < 0);
    place.target = "/proc/self/exe:rawbpf_core_test_place";
    place.pid = getpid();
    const int attached = rawbpf_attach_program(object, "hit", &place, &error);
    if (unable(attached)) {
        rawbpf_ring_close(ring);
        rawbpf_close(object);
        SKIP(error.text);
    }
    REQUIRE_MESSAGE(attached == RAWBPF_OK, error.text);
    for (int i = 0; i < 4; ++i) rawbpf_core_test_place();

    uint32_t key = 1;
    uint64_t value = 0;
    CHECK(rawbpf_map_lookup(counts, &key, &value, &error) == RAWBPF_OK);
    CHECK(value == 20);
    std::vector<uint64_t> records;
    const auto keep = [](const void *record, size_t size, void *context) {
        uint64_t step_of_it = 0;
        std::memcpy(&step_of_it, record, size < 8 ? size : 8);
        static_cast<std::vector<uint64_t> *>(context)->push_back(step_of_it);
        return static_cast<std::vector<uint64_t> *>(context)->size() == 3 ? 1 : 0;
    };
    CHECK(rawbpf_ring_read(ring, 1000, keep, &records, &error) == 3); // told to stop
    CHECK(rawbpf_ring_read(ring, 0, keep, &records, &error) == 1);
    CHECK(rawbpf_ring_read(ring, 0, keep, &records, &error) == 0);
    CHECK(records == std::vector<uint64_t>{5, 5, 5, 5});

    CHECK(rawbpf_detach(object, &error) == RAWBPF_OK);
    rawbpf_core_test_place();
    CHECK(rawbpf_map_lookup(counts, &key, &value, &error) == RAWBPF_OK);
    CHECK(value == 20);

    value = 7;
    CHECK(rawbpf_map_update(counts, &key, &value, 0, &error) == RAWBPF_OK);
    CHECK(rawbpf_map_update(counts, &key, &value, 1, &error) == RAWBPF_BUSY); // BPF_NOEXIST
    key = 9;
    CHECK(rawbpf_map_lookup(counts, &key, &value, &error) == RAWBPF_NOT_FOUND);
    key = 2;
    CHECK(rawbpf_map_next_key(counts, &key, &key, &error) == RAWBPF_NOT_FOUND);
    CHECK(rawbpf_map_next_key(counts, nullptr, &key, &error) == RAWBPF_OK);
    CHECK(key == 0);
    CHECK(rawbpf_map_delete(counts, &key, &error) == RAWBPF_INVALID_ARGUMENT);
    rawbpf_ring_close(ring);
    rawbpf_close(object);
    CHECK(test::open_descriptors() == before);
}

TEST_CASE("core.h: the verifier's refusal has its log") {
    rawbpf_object *object = opened(".program bad \"socket\"\nr0 = *(u64 *)(r10 + 8)\nexit\n");
    rawbpf_error error{};
    const int code = rawbpf_load(object, &error);
    rawbpf_close(object);
    if (code == RAWBPF_PERMISSION) SKIP(error.text);
    CHECK(code == RAWBPF_REJECTED);
    CHECK(std::string(error.log).find("r10") != std::string::npos);
    CHECK(std::strlen(error.text) > 0);
}
