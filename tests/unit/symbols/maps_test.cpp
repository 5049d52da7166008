// /proc/PID/maps: lines as the kernel prints them, and lines it never would.
#include "runtime/symbols/maps.h"

#include <sys/sysmacros.h>
#include <unistd.h>

#include "runtime/sys/file.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::symbols;

static constexpr std::string_view kMaps =
    "5581c8a00000-5581c8a02000 r--p 00000000 fe:00 1442                       /usr/bin/cat\n"
    "5581c8a02000-5581c8a06000 r-xp 00002000 fe:00 1442                       /usr/bin/cat\n"
    "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
    "7f0000002000-7f0000003000 r-xp 00000000 00:01 77 /memfd:jit cache (deleted)\n"
    "7f0000004000-7f0000005000 r-xp 00001000 08:11 5  /tmp/my lib (v2).so (deleted)\n"
    "7f0000006000-7f0000007000 r-xs 00003000 08:11 6  /tmp/two\\012lines.so\n"
    "7ffd0a5f6000-7ffd0a5f8000 r-xp 00000000 00:00 0                          [vdso]\n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

TEST_CASE("maps: keeps the executable regions with all their fields") {
    ProcessMaps maps = parse_maps(42, kMaps);
    CHECK(maps.pid == 42);
    REQUIRE(maps.regions.size() == 7);
    const Region &cat = maps.regions[0];
    CHECK(cat.start == 0x5581c8a02000);
    CHECK(cat.end == 0x5581c8a06000);
    CHECK(cat.file_offset == 0x2000);
    CHECK(cat.device == makedev(0xfe, 0));
    CHECK(cat.inode == 1442);
    CHECK(cat.path == "/usr/bin/cat");
    CHECK(cat.kind() == RegionKind::file);
    CHECK(cat.offset_of(0x5581c8a02010) == 0x2010);
    CHECK(maps.regions[1].path.empty());
    CHECK(maps.regions[1].kind() == RegionKind::anonymous);
    CHECK(maps.regions[2].kind() == RegionKind::memfd);
    CHECK(maps.regions[3].kind() == RegionKind::deleted);
    CHECK(maps.regions[3].path == "/tmp/my lib (v2).so (deleted)");
    CHECK(maps.regions[3].file() == "/tmp/my lib (v2).so");
    CHECK(maps.regions[4].file() == "/tmp/two\nlines.so");
    CHECK(maps.regions[5].kind() == RegionKind::vdso);
    CHECK(maps.regions[5].file().empty());
    CHECK(maps.regions[6].kind() == RegionKind::vsyscall);
}

TEST_CASE("maps: finds the region of an address, ends excluded") {
    ProcessMaps maps = parse_maps(1, kMaps);
    CHECK(maps.find(0x5581c8a01fff) == nullptr);
    CHECK(maps.find(0x5581c8a02000) == &maps.regions[0]);
    CHECK(maps.find(0x5581c8a05fff) == &maps.regions[0]);
    CHECK(maps.find(0x5581c8a06000) == nullptr);
    CHECK(maps.find(0) == nullptr);
    CHECK(maps.find(UINT64_MAX) == nullptr);
    CHECK(parse_maps(1, "").find(5) == nullptr);
}

TEST_CASE("maps: lines out of order are sorted, malformed ones passed over") {
    ProcessMaps maps = parse_maps(1, "2000-3000 r-xp 0 0:0 0 /b\n"
                                     "1000-2000 r-xp 0 0:0 0 /a\n"
                                     "3000-3000 r-xp 0 0:0 0 /empty\n"
                                     "5000-4000 r-xp 0 0:0 0 /backwards\n"
                                     "6000 7000 r-xp 0 0:0 0 /no dash\n"
                                     "11112222333344445-7000 r-xp 0 0:0 0 /too many digits\n"
                                     "6000-7000 r-xp 0 0:0 99999999999999999999 /inode overflows\n"
                                     "-\n\n"
                                     "6000-7000 r-x\n"
                                     "6000-7000 r-xp 0 0:0 0 /last, no newline");
    REQUIRE(maps.regions.size() == 3);
    CHECK(maps.regions[0].path == "/a");
    CHECK(maps.regions[1].path == "/b");
    CHECK(maps.regions[2].path == "/last, no newline");
}

TEST_CASE("maps: cut at every byte, the regions are those of the whole lines plus at most one") {
    size_t whole = 0;
    for (size_t cut = 0; cut <= kMaps.size(); ++cut) {
        ProcessMaps maps = parse_maps(1, kMaps.substr(0, cut));
        CHECK(maps.regions.size() >= whole);
        CHECK(maps.regions.size() <= whole + 1);
        if (cut > 0 && kMaps[cut - 1] == '\n') whole = maps.regions.size();
    }
    CHECK(whole == 7);
}

TEST_CASE("maps: this process's own code is found") {
    Result<ProcessMaps> maps = read_maps(getpid());
    REQUIRE(maps);
    const Region *here = maps->find(reinterpret_cast<uintptr_t>(&parse_maps));
    REQUIRE(here);
    CHECK(here->kind() == RegionKind::file);
    CHECK(here->file() == sys::read_link("/proc/self/exe").value());
}

TEST_CASE("maps: a process that isn't there is not_found") {
    Result<ProcessMaps> maps = read_maps(0x7ffffffe); // above the largest pid_max
    REQUIRE(!maps);
    CHECK(maps.error().kind == Errc::not_found);
    CHECK(maps.error().message().find("/proc/2147483646/maps") != std::string::npos);
}
