// The first thread's pointer, by what lies there; and how a process's pages are read.
#include "programs/languages/thread_pointer.h"

#include <vector>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/emulated.h"
#include "tests/support/sanitized.h"
#include "tests/support/test.h"
#include "tests/unit/languages/made_memory.h"

using namespace rawbpf;
using namespace rawbpf::languages;

namespace {

std::optional<uint64_t> found(test::MadeMemory &pages, std::string_view maps, Arch arch = Arch::x86_64) {
    Memory memory(pages);
    return find_thread_pointer(memory, maps, arch);
}

} // namespace

TEST_CASE("thread pointer: a block that says its own address twice, in memory without a file") {
    constexpr std::string_view kMaps = "00400000-00401000 r-xp 00000000 08:01 77                         /bin/a\n"
                                       "00010000-00012000 rw-p 00000000 00:00 0 \n";
    test::MadeMemory pages;
    CHECK(!found(pages, kMaps));
    pages.put(0x10100, 0x10100); // once is an empty list's head
    CHECK(!found(pages, kMaps));
    pages.put(0x11740, 0x11740);
    pages.put(0x11750, 0x11740);
    CHECK(found(pages, kMaps) == 0x11740);
    CHECK(!found(pages, kMaps, Arch::arm64));
    for (const std::string_view other :
         {"10000-12000 rw-p 00000000 08:01 77 /lib/x\n", "10000-12000 r--p 00000000 00:00 0\n",
          "10000-12000 rw-p 00000000 00:00 0 [heap]\n", "10000-52000 rw-p 00000000 00:00 0\n",
          "10000-12000 rw-s 00000000 00:00 0\n", "12000-10000 rw-p 00000000 00:00 0\n", "nonsense", ""})
        CHECK(!found(pages, other));
}

TEST_CASE("thread pointer: a block at the end of a large region, behind what was mapped right below it later") {
    test::MadeMemory pages;
    const auto block = [&](uint64_t at) {
        pages.put(at, at);
        pages.put(at + 16, at);
    };
    block(0x45740);
    CHECK(found(pages, "00001000-00048000 rw-p 00000000 00:00 0\n") == 0x45740);
    block(0x4a740); // what looks like one, in a smaller region, is nearer to what is usual
    CHECK(found(pages, "00001000-00048000 rw-p 00000000 00:00 0\n0004a000-0004d000 rw-p 00000000 00:00 0\n") == 0x4a740);
}

TEST_CASE("thread pointer: arm64's block, by glibc's table of the thread's blocks") {
    constexpr std::string_view kMaps = "00010000-00012000 rw-p 00000000 00:00 0 \n";
    test::MadeMemory pages;
    const auto block = [&](uint64_t at, uint64_t table, uint64_t entries, uint64_t changes, uint64_t first) {
        pages.put(at, table);
        pages.put(at + 8, 0);
        pages.put(table - 16, entries);
        pages.put(table, changes);
        pages.put(table + 16, first);
    };
    block(0x10100, 0x11100, 0, 1, 0x10110);        // no entries
    block(0x10200, 0x11200, 15, 1, 0x10208);       // a block within the two words
    block(0x10300, 0x11300, 15, 1, 0x90000000);    // far away
    block(0x10400, 0x11400, 15, 1 << 30, 0x10410); // changed too often
    block(0x10500, 0x11504, 15, 1, 0x10510);       // no address of words
    block(0x10600, 0x11600, 15, 1, 0x10610);
    pages.put(0x10608, 1); // the second word is taken
    CHECK(!found(pages, kMaps, Arch::arm64));
    block(0x11740, 0x10800, 15, 1, 0x11750);
    CHECK(found(pages, kMaps, Arch::arm64) == 0x11740);
    CHECK(!found(pages, kMaps, Arch::riscv64));
}

#ifdef __x86_64__
TEST_CASE("thread pointer: this process's own first thread") {
    if (test::kSanitized) SKIP("a sanitizer's memory has other blocks in front");
    REQUIRE(getpid() == gettid());
    auto pages = ProcessPages::open_mapped(static_cast<uint32_t>(getpid()));
    REQUIRE(pages);
    Memory memory(*pages);
    CHECK(find_thread_pointer(memory, pages->maps(), Arch::x86_64) == static_cast<uint64_t>(pthread_self()));
}
#endif

TEST_CASE("process pages: what was mapped is read, and no more is asked for") {
    if (test::memory_is_elsewhere()) SKIP("an emulator runs this, and /proc has the host's addresses");
    const size_t page = Pages::kPage;
    const auto map = [&] {
        void *at = mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(at != MAP_FAILED);
        return static_cast<char *>(at);
    };
    char *before = map();
    before[0] = 'b';
    REQUIRE(munmap(before + page, page) == 0);
    auto pages = ProcessPages::open_mapped(static_cast<uint32_t>(getpid()));
    auto any = ProcessPages::open(static_cast<uint32_t>(getpid()));
    REQUIRE(pages);
    REQUIRE(any);
    char *later = map();
    later[0] = 'l';
    const auto first = [&](ProcessPages &of, const char *at) {
        std::vector<std::byte> bytes(page);
        return of.read(reinterpret_cast<uintptr_t>(at), bytes) ? static_cast<char>(bytes[0]) : '-';
    };
    CHECK(first(*pages, before) == 'b');
    CHECK(first(*pages, before + page) == '-');
    CHECK(first(*any, later) == 'l');
    CHECK(first(*pages, later) == '-'); // it wasn't there
    for (const uint64_t wild : {uint64_t{0}, uint64_t{0x2020202020202000}, ~uint64_t{page - 1}})
        CHECK(first(*pages, reinterpret_cast<const char *>(wild)) == '-');
    munmap(before, page);
    munmap(before + 2 * page, page);
    CHECK(first(*pages, before) == '-'); // it is gone by now
    munmap(later, 3 * page);
}
