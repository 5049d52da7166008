// The heap of static executables: malloc, free and their kin, which the C library lets a program bring along ("Replacing malloc"
// in glibc's manual; all of the family, or none).
//
// Why: glibc's own allocator can print its statistics, so it needs stdio, so it needs locales, character conversion and the code
// that loads shared objects with converters: 450 KB of an empty static program's 680. The program asks for little and runs one
// thread, so the simplest design that scales does:
//
//      a block:   [ size class | bytes asked to reach it ] [ the caller's memory, aligned to 16 ... ]
//      classes:   16 32 48 64 | 80 96 112 128 | 160 192 224 256 | 320 ...  up to 128 KiB, four to a doubling: a quarter is wasted
//                 at most
//      free:      a list a class, last in first out; blocks are cut from regions of 256 KiB
//      larger:    a mapping of their own, given back when freed, moved by mremap when they grow
//
// Freed small blocks are kept for their class and never merged: a profiler asks for the same sizes again and again. A lock
// guards it, so that a thread of a library may allocate too.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

namespace {

struct Header {
    uint64_t size;  ///< of the caller's memory, as rounded up
    uint32_t shift; ///< how far the block's own start lies before this header: 0 unless it was aligned
    uint32_t slot;  ///< size class, or kMapped
};
static_assert(sizeof(Header) == 16);

constexpr uint32_t kMapped = ~0u;
constexpr size_t kLargest = 128 << 10, kRegion = 256 << 10;
constexpr unsigned kClasses = 4 + 4 * 11; // 16..64 in steps of 16, then four to each doubling up to 128 KiB

struct Free {
    Free *next;
};
Free *g_free[kClasses];
char *g_region;
size_t g_left;
std::atomic_flag g_lock = ATOMIC_FLAG_INIT;

struct Locked {
    Locked() {
        while (g_lock.test_and_set(std::memory_order_acquire)) {
        }
    }
    ~Locked() { g_lock.clear(std::memory_order_release); }
};

unsigned class_of(size_t size) {
    if (size <= 64) return size <= 16 ? 0 : static_cast<unsigned>((size - 1) / 16);
    const unsigned log = 63 - static_cast<unsigned>(__builtin_clzll(size - 1)); // size is in (2^log, 2^(log+1)]
    return 4 * (log - 5) + static_cast<unsigned>((size - 1) >> (log - 2) & 3);
}
size_t size_of_class(unsigned slot) {
    if (slot < 4) return 16 * (slot + 1);
    const unsigned log = slot / 4 + 5;
    return (size_t{1} << log) + (slot % 4 + 1) * (size_t{1} << (log - 2));
}

Header *header_of(void *memory) { return static_cast<Header *>(memory) - 1; }

void *map(size_t size) {
    void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

void *out_of_memory() {
    errno = ENOMEM;
    return nullptr;
}

void *allocate(size_t size) {
    if (size > PTRDIFF_MAX) return out_of_memory();
    if (size > kLargest) {
        const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), whole = (size + sizeof(Header) + page - 1) & ~(page - 1);
        auto *header = static_cast<Header *>(map(whole));
        if (!header) return out_of_memory();
        *header = {whole - sizeof(Header), 0, kMapped};
        return header + 1;
    }
    const unsigned slot = class_of(size);
    Locked locked;
    if (Free *block = g_free[slot]) {
        g_free[slot] = block->next;
        return block;
    }
    const size_t room = size_of_class(slot), whole = room + sizeof(Header);
    if (g_left < whole) { // what is left of the old region, at most 128 KiB, was never touched
        auto *region = static_cast<char *>(map(kRegion));
        if (!region) return out_of_memory();
        g_region = region, g_left = kRegion;
    }
    auto *header = reinterpret_cast<Header *>(g_region);
    g_region += whole, g_left -= whole;
    *header = {room, 0, slot};
    return header + 1;
}

void release(void *memory) {
    if (!memory) return;
    if (const uint32_t shift = header_of(memory)->shift) memory = static_cast<char *>(memory) - shift;
    Header *header = header_of(memory);
    if (header->slot == kMapped) {
        munmap(header, header->size + sizeof(Header));
        return;
    }
    Locked locked;
    auto *block = static_cast<Free *>(memory);
    block->next = g_free[header->slot];
    g_free[header->slot] = block;
}

void *allocate_aligned(size_t alignment, size_t size) {
    if (alignment <= 16) return allocate(size);
    if (size > PTRDIFF_MAX - alignment) return out_of_memory();
    auto *memory = static_cast<char *>(allocate(size + alignment));
    if (!memory) return nullptr;
    auto *at = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(memory) + alignment - 1) & ~(alignment - 1));
    if (at != memory)
        *header_of(at) = {header_of(memory)->size - static_cast<size_t>(at - memory), static_cast<uint32_t>(at - memory), 0};
    return at;
}

} // namespace

extern "C" {

void *malloc(size_t size) { return allocate(size); }
void free(void *memory) {
    const int kept = errno; // free() leaves it alone, POSIX.1-2024
    release(memory);
    errno = kept;
}
void *calloc(size_t count, size_t size) {
    size_t all;
    if (__builtin_mul_overflow(count, size, &all)) return out_of_memory();
    void *memory = allocate(all);
    if (memory && all <= kLargest) std::memset(memory, 0, all); // a new mapping is zero already
    return memory;
}
void *realloc(void *memory, size_t size) {
    if (!memory) return allocate(size);
    Header *header = header_of(memory);
    if (size <= header->size && (size > header->size / 2 || header->size <= 64)) return memory;
    if (header->slot == kMapped && !header->shift && size > kLargest && size <= PTRDIFF_MAX) {
        const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), whole = (size + sizeof(Header) + page - 1) & ~(page - 1);
        void *moved = mremap(header, header->size + sizeof(Header), whole, MREMAP_MAYMOVE);
        if (moved == MAP_FAILED) return out_of_memory();
        static_cast<Header *>(moved)->size = whole - sizeof(Header);
        return static_cast<Header *>(moved) + 1;
    }
    void *other = allocate(size);
    if (!other) return nullptr;
    std::memcpy(other, memory, size < header->size ? size : header->size);
    release(memory);
    return other;
}
void *memalign(size_t alignment, size_t size) { return allocate_aligned(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return allocate_aligned(alignment, size); }
int posix_memalign(void **out, size_t alignment, size_t size) {
    if (alignment < sizeof(void *) || (alignment & (alignment - 1))) return EINVAL;
    void *memory = allocate_aligned(alignment, size);
    if (!memory) return ENOMEM;
    *out = memory;
    return 0;
}
void *valloc(size_t size) { return allocate_aligned(static_cast<size_t>(sysconf(_SC_PAGESIZE)), size); }
void *pvalloc(size_t size) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return allocate_aligned(page, (size + page - 1) & ~(page - 1));
}
size_t malloc_usable_size(void *memory) { return memory ? header_of(memory)->size : 0; }
}
