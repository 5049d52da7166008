// The heap of static executables, compiled here under other names beside the real one.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/test.h"

// All its headers are included above, so that only its own names are renamed.
namespace own {
#define malloc heap_malloc
#define free heap_free
#define calloc heap_calloc
#define realloc heap_realloc
#define memalign heap_memalign
#define aligned_alloc heap_aligned_alloc
#define posix_memalign heap_posix_memalign
#define valloc heap_valloc
#define pvalloc heap_pvalloc
#define malloc_usable_size heap_usable_size
#include "cli/static/heap.cpp"
#undef malloc
#undef free
#undef calloc
#undef realloc
#undef memalign
#undef aligned_alloc
#undef posix_memalign
#undef valloc
#undef pvalloc
#undef malloc_usable_size
} // namespace own

namespace {

struct Block {
    unsigned char *at;
    size_t size;
    unsigned char fill;
};
bool intact(const Block &block) {
    for (size_t i = 0; i < block.size; ++i)
        if (block.at[i] != block.fill) return false;
    return true;
}

} // namespace

TEST_CASE("static heap: sizes are rounded up by a quarter at most, and aligned") {
    for (size_t size = 0; size < 300'000; size += size < 200 ? 1 : size / 7) {
        void *memory = own::heap_malloc(size);
        REQUIRE(memory != nullptr);
        CHECK(reinterpret_cast<uintptr_t>(memory) % 16 == 0);
        const size_t usable = own::heap_usable_size(memory);
        CHECK(usable >= size);
        if (size > 64 && size <= 128 << 10) CHECK(usable <= size + size / 4 + 16);
        std::memset(memory, 0xa5, usable);
        own::heap_free(memory);
    }
}

TEST_CASE("static heap: no block overlaps another, whatever the order") {
    std::mt19937 random(7);
    std::vector<Block> blocks;
    for (int step = 0; step < 40'000; ++step) {
        const unsigned what = random() % 8;
        if (blocks.empty() || (what < 4 && blocks.size() < 800)) {
            const size_t size = random() % 16 == 0 ? random() % 500'000 : random() % 700;
            unsigned char *at;
            if (what == 0) {
                at = static_cast<unsigned char *>(own::heap_aligned_alloc(size_t{16} << random() % 9, size));
            } else if (what == 1) {
                at = static_cast<unsigned char *>(own::heap_calloc(size, 1));
                REQUIRE(intact({at, size, 0}));
            } else {
                at = static_cast<unsigned char *>(own::heap_malloc(size));
            }
            blocks.push_back({at, size, static_cast<unsigned char>(random())});
            std::memset(at, blocks.back().fill, size);
            continue;
        }
        Block &block = blocks[random() % blocks.size()];
        REQUIRE(intact(block));
        if (what == 4) {
            const size_t size = random() % 16 == 0 ? random() % 500'000 : random() % 700;
            auto *at = static_cast<unsigned char *>(own::heap_realloc(block.at, size));
            REQUIRE(intact({at, std::min(size, block.size), block.fill}));
            block.at = at, block.size = size;
            std::memset(at, block.fill, size);
        } else {
            own::heap_free(block.at);
            block = blocks.back();
            blocks.pop_back();
        }
    }
    for (Block &block : blocks) {
        CHECK(intact(block));
        own::heap_free(block.at);
    }
}

TEST_CASE("static heap: alignment, absurd sizes, null") {
    for (size_t alignment = 8; alignment <= 1 << 16; alignment *= 2) {
        void *memory = nullptr;
        REQUIRE(own::heap_posix_memalign(&memory, alignment, 100) == 0);
        CHECK(reinterpret_cast<uintptr_t>(memory) % alignment == 0);
        std::memset(memory, 1, 100);
        own::heap_free(memory);
    }
    void *memory = nullptr;
    CHECK(own::heap_posix_memalign(&memory, 24, 100) == EINVAL);
    errno = 0;
    CHECK(own::heap_malloc(~size_t{0}) == nullptr);
    CHECK(errno == ENOMEM);
    CHECK(own::heap_calloc(SIZE_MAX / 2, SIZE_MAX / 2) == nullptr);
    CHECK(own::heap_realloc(nullptr, 10) != nullptr);
    errno = 7;
    own::heap_free(nullptr);
    CHECK(errno == 7);
}
