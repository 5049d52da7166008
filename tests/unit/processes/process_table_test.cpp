// Which module an address lay in, as processes come, change and go.
#include "programs/processes/process_table.h"

#include "runtime/base/format.h"
#include "tests/support/test.h"
#include "tests/unit/processes/fakes.h"

using namespace rawbpf;
using namespace rawbpf::test;

namespace {

std::string where(ProcessTable &table, uint32_t pid, uint64_t address, bool caller = false, uint64_t now = 0) {
    const FrameLocation place = table.locate(pid, address, caller, now);
    if (place.module == kNone) return "?";
    return format("{}+{:#x}", table.modules()[place.module].path, place.file_offset);
}

} // namespace

TEST_CASE("processes: maps are read once, when a process is first seen") {
    FakeMaps proc;
    proc.processes[10] = {region(0x1000, 0x3000, "/bin/a", 0x500), region(0x5000, 0x6000, "/lib/b")};
    ProcessTable table(proc);
    CHECK(where(table, 10, 0x1010) == "/bin/a+0x510");
    CHECK(where(table, 10, 0x5fff) == "/lib/b+0xfff");
    CHECK(where(table, 10, 0x4000) == "?");
    CHECK(where(table, 10, 0x0fff) == "?");
    CHECK(where(table, 10, 0x6000) == "?");
    CHECK(where(table, 10, 0x6000, true) == "/lib/b+0x1000"); // returns behind the mapping's last call
    CHECK(proc.read.size() == 1);
    CHECK(proc.modules_met == std::vector<std::string>{"/bin/a", "/lib/b"});
    CHECK(table.sampled() == 1);
}

TEST_CASE("processes: an unknown address has the maps read again, but not for ever") {
    FakeMaps proc;
    proc.processes[10] = {region(0x1000, 0x2000, "/bin/a")};
    ProcessTable table(proc);
    const uint64_t second = 1'000'000'000;
    CHECK(where(table, 10, 0x9000, false, 1) == "?");
    proc.processes[10].push_back(region(0x9000, 0xa000, "/lib/late"));
    CHECK(where(table, 10, 0x9000, false, second / 2) == "?");
    CHECK(where(table, 10, 0x9000, false, 2 * second) == "/lib/late+0x0");
    CHECK(proc.read.size() == 2);
    for (uint64_t i = 3; i < 40; ++i) where(table, 10, 0xdead0000, false, i * 2 * second); // garbage of a walk gone wrong
    CHECK(proc.read.size() == 5);
}

TEST_CASE("processes: where all changes are told, garbage doesn't make us look, and a zombie's empty maps don't count") {
    FakeMaps proc;
    ProcessTable table(proc);
    table.all_changes_are_told();
    table.exec(10, 0);
    table.map(10, region(0x1000, 0x2000, "/bin/a"));
    const uint64_t second = 1'000'000'000;
    CHECK(where(table, 10, 0xdead0000, false, 5 * second) == "?");
    CHECK(proc.read.empty());
    proc.processes[10] = {}; // it has exited, and nobody has waited for it
    table.doubt();
    CHECK(where(table, 10, 0x1000, false, 6 * second) == "/bin/a+0x0");
    CHECK(proc.read.size() == 1);
}

TEST_CASE("processes: exec and mmap are enough for a process that is gone before anybody looks") {
    FakeMaps proc;
    ProcessTable table(proc);
    table.fork(1, 20);
    table.exec(20, 0);
    table.map(20, region(0x1000, 0x2000, "/bin/short", 0x1000));
    table.map(20, region(0x8000, 0x9000, "[vdso]", 0x8000000));
    table.exit(20, true, 1000);
    CHECK(where(table, 20, 0x1234) == "/bin/short+0x1234");
    CHECK(where(table, 20, 0x8010) == "[vdso]+0x10");
    CHECK(proc.read.empty());
    REQUIRE(proc.met_with.size() == 2);
    CHECK(proc.met_with[0] == std::vector<uint32_t>{20, 1}); // its parent may still show the same file system
    table.sweep();
    CHECK(where(table, 20, 0x1234) == "/bin/short+0x1234"); // samples may come late
    table.sweep();
    table.sweep();
    CHECK(where(table, 20, 0x1234) == "?");
}

TEST_CASE("processes: a fork sees what its parent had, until one of them changes it") {
    FakeMaps proc;
    proc.processes[1] = {region(0x1000, 0x2000, "/bin/sh")};
    ProcessTable table(proc);
    CHECK(where(table, 1, 0x1000) == "/bin/sh+0x0");
    table.fork(1, 2);
    CHECK(where(table, 2, 0x1001) == "/bin/sh+0x1");
    table.map(2, region(0x5000, 0x6000, "/lib/child"));
    CHECK(where(table, 2, 0x5000) == "/lib/child+0x0");
    CHECK(where(table, 1, 0x5000) == "?");
    table.exec(2, 0);
    table.map(2, region(0x1000, 0x3000, "/bin/other"));
    CHECK(where(table, 2, 0x1001) == "/bin/other+0x1");
    CHECK(where(table, 1, 0x1001) == "/bin/sh+0x1");
}

TEST_CASE("processes: a fork that is gone and never looked at has its parent's maps") {
    FakeMaps proc;
    proc.processes[1] = {region(0x1000, 0x2000, "/bin/sh")};
    ProcessTable table(proc);
    table.fork(1, 2); // nobody has looked at 1 yet
    CHECK(where(table, 2, 0x1001) == "/bin/sh+0x1");
    CHECK(proc.read == std::vector<uint32_t>{2, 1});
}

TEST_CASE("processes: a new mapping cuts what lay there") {
    FakeMaps proc;
    ProcessTable table(proc);
    table.exec(5, 0);
    table.map(5, region(0x1000, 0x9000, "/lib/old", 0x10000));
    table.map(5, region(0x3000, 0x5000, "/lib/new"));
    CHECK(where(table, 5, 0x2fff) == "/lib/old+0x11fff");
    CHECK(where(table, 5, 0x3000) == "/lib/new+0x0");
    CHECK(where(table, 5, 0x4fff) == "/lib/new+0x1fff");
    CHECK(where(table, 5, 0x5000) == "/lib/old+0x14000");
    table.map(5, region(0x0800, 0x3800, "/lib/front"));
    CHECK(where(table, 5, 0x2000) == "/lib/front+0x1800");
    CHECK(where(table, 5, 0x3800) == "/lib/new+0x800");
    table.map(5, region(0x0, 0x10000, "/lib/all"));
    CHECK(where(table, 5, 0x3800) == "/lib/all+0x3800");
    table.map(5, region(0x20, 0x10, "/lib/backwards")); // nonsense is passed over
    CHECK(where(table, 5, 0x15) == "/lib/all+0x15");
}

TEST_CASE("processes: what is mapped in the place of other code is noticed, and only that") {
    FakeMaps proc;
    proc.processes[10] = {region(0x1000, 0x3000, "/bin/a", 0x500), region(0x5000, 0x6000, "//anon")};
    ProcessTable table(proc);
    table.map(10, region(0x1000, 0x3000, "/bin/b")); // nobody was sampled there
    CHECK(table.remaps() == 0);
    CHECK(where(table, 10, 0x1010) == "/bin/a+0x510");
    table.map(10, region(0x3000, 0x4000, "/lib/c"));         // where nothing was
    table.map(10, region(0x2000, 0x3000, "/bin/a", 0x1500)); // the same again
    table.map(10, region(0x5000, 0x5800, "//anon"));         // a JIT's: an address there is just an address
    CHECK(table.remaps() == 0);
    table.map(10, region(0x2000, 0x3000, "/bin/a", 0x500));
    CHECK(table.remaps() == 1);
    table.map(10, region(0x2800, 0x4000, "/lib/d"));
    CHECK(table.remaps() == 2);
    table.exec(10, 0);
    table.map(10, region(0x1000, 0x3000, "/bin/d"));
    CHECK(table.remaps() == 2);
    table.doubt();
    CHECK(table.remaps() == 3);
}

TEST_CASE("processes: lost events have the maps read again, where the process still is") {
    FakeMaps proc;
    ProcessTable table(proc);
    table.exec(5, 0);
    table.map(5, region(0x1000, 0x2000, "/bin/a"));
    table.exec(6, 0);
    table.map(6, region(0x1000, 0x2000, "/bin/gone"));
    proc.processes[5] = {region(0x1000, 0x2000, "/bin/b")};
    table.doubt();
    CHECK(where(table, 5, 0x1000) == "/bin/b+0x0");
    CHECK(where(table, 6, 0x1000) == "/bin/gone+0x0");
}

TEST_CASE("processes: memory made at run time belongs to its process") {
    FakeMaps proc;
    proc.processes[9] = {region(0x1000, 0x2000, ""), region(0x2000, 0x3000, "/memfd:jit (deleted)"),
                         region(0x3000, 0x4000, "//anon")};
    ProcessTable table(proc);
    for (uint64_t address : {0x1000, 0x2000, 0x3000}) {
        const FrameLocation place = table.locate(9, address, false, 0);
        REQUIRE(place.module != kNone);
        CHECK(table.modules()[place.module].kind == ModuleKind::anonymous);
        CHECK(place.pid == 9);
        CHECK(place.address == address);
    }
}

TEST_CASE("processes: a program in memory is a file, and each such file is looked into once") {
    FakeMaps proc;
    const auto memory = [](uint64_t start, uint64_t inode) {
        symbols::Region out = region(start, start + 0x1000, "/memfd:x (deleted)", 0x100);
        out.device = 1;
        out.inode = inode;
        return out;
    };
    proc.processes[9] = {memory(0x1000, 7), memory(0x2000, 7), memory(0x3000, 8), memory(0x4000, 9)};
    proc.processes[10] = {memory(0x1000, 7), memory(0x4000, 9)};
    proc.memory_programs = {{7, true}, {8, false}};
    ProcessTable table(proc);
    const auto kind = [&](uint32_t pid, uint64_t address) {
        return table.modules()[table.locate(pid, address, false, 0).module].kind;
    };
    CHECK(kind(9, 0x1010) == ModuleKind::file);
    CHECK(kind(9, 0x2010) == ModuleKind::file);
    CHECK(kind(9, 0x3010) == ModuleKind::anonymous);
    CHECK(kind(9, 0x4010) == ModuleKind::anonymous); // its process can't be asked
    CHECK(proc.memory_looks == 3);
    CHECK(table.locate(9, 0x1010, false, 0).file_offset == 0x110);
    CHECK(kind(10, 0x1010) == ModuleKind::file);
    CHECK(proc.memory_looks == 4); // about 9, once more
    table.exec(10, 0);             // told by the kernel's events, too
    table.map(10, memory(0x5000, 7));
    CHECK(kind(10, 0x5010) == ModuleKind::file);
}

TEST_CASE("processes: the names of code made at run time are looked for until they are there, within reason") {
    constexpr uint64_t kMilli = 1'000'000;
    FakeMaps proc;
    proc.processes[9] = {region(0x1000, 0x2000, ""), region(0x2000, 0x3000, "/bin/a")};
    proc.jit_there_at = 3;
    ProcessTable table(proc);
    for (uint64_t t = 1000; t < 2000; t += 10) {
        (void)table.locate(9, 0x2000, true, t * kMilli);
        (void)table.locate(9, 0x1000, false, t * kMilli);
    }
    CHECK(proc.jit_looks == 3);
    table.exec(9, 0); // another program, that never has any
    table.map(9, region(0x1000, 0x2000, ""));
    proc.jit_looks = 0;
    proc.jit_there_at = 1'000'000;
    for (uint64_t t = 2000; t < 60'000; t += 10) (void)table.locate(9, 0x1000, false, t * kMilli);
    CHECK(proc.jit_looks > 1);
    CHECK(proc.jit_looks < 10 + 58 + 2); // ten at first, then each second
}

TEST_CASE("processes: a kernel thread is known by its empty maps, a dead process isn't one") {
    FakeMaps proc;
    proc.processes[2] = {};
    ProcessTable table(proc);
    CHECK(where(table, 2, 0x1000) == "?");
    CHECK(where(table, 3, 0x1000) == "?");
    CHECK(table.kernel_thread(2, 0));
    CHECK(!table.kernel_thread(3, 0));
    CHECK(table.kernel_thread(0, 0));
}

TEST_CASE("processes: one ends with its last thread, and no sooner") {
    FakeMaps proc;
    ProcessTable table(proc);
    table.exec(20, 0);
    table.map(20, region(0x1000, 0x2000, "/bin/server"));
    table.thread(20);
    table.thread(20);
    table.exit(20, true, 1000); // main() left by pthread_exit
    table.exit(20, false, 2000);
    for (int i = 0; i < 5; ++i) table.sweep();
    CHECK(where(table, 20, 0x1234) == "/bin/server+0x234");
    table.exit(20, false, 3000);
    for (int i = 0; i < 5; ++i) table.sweep();
    CHECK(where(table, 20, 0x1234) == "?");

    // Of one that was there before us nobody knows how many threads it has: it is kept while samples come.
    proc.processes[30] = {region(0x1000, 0x2000, "/bin/old")};
    CHECK(where(table, 30, 0x1234) == "/bin/old+0x234");
    proc.processes[30] = {}; // what /proc says of a process whose first thread has ended
    table.exit(30, true, 1000);
    for (int i = 0; i < 9; ++i) {
        table.sweep();
        CHECK(where(table, 30, 0x1234) == "/bin/old+0x234");
    }
    for (int i = 0; i < 3; ++i) table.sweep();
    CHECK(where(table, 30, 0x1234) == "?");
}

TEST_CASE("processes: wanted are the command from its exec on, and all that it starts") {
    FakeMaps proc;
    ProcessTable table(proc);
    const uint64_t second = 1'000'000'000;
    table.want(10);
    CHECK(!table.wanted(10, 1)); // still ours
    table.exec(10, 0);
    table.fork(10, 11);
    table.fork(11, 12);
    table.fork(1, 50);
    CHECK(table.wanted(10, 2));
    CHECK(table.wanted(11, 2));
    CHECK(table.wanted(12, 2));
    CHECK(!table.wanted(50, 2));
    CHECK(!table.wanted(99, 2));
    CHECK(!table.find_wanted(99, 2));
    table.exec(12, 0);
    CHECK(table.wanted(12, 3));
    table.exit(11, true, second);
    CHECK(table.wanted(11, second + 1'000'000)); // its last moments
    CHECK(!table.wanted(11, 2 * second));        // somebody else with its number
    CHECK(table.wanted(12, 2 * second));         // an orphan is still the command's
    table.fork(50, 11);                          // this one isn't
    CHECK(!table.wanted(11, second + 1'000'000));
}

TEST_CASE("processes: where events were lost, ancestors tell who is wanted") {
    FakeMaps proc;
    ProcessTable table(proc);
    table.want(10);
    table.exec(10, 0);
    proc.parents = {{13, 12}, {12, 10}, {10, 1}, {70, 60}, {60, 1}, {80, 80}};
    CHECK(!table.find_wanted(13, 5)); // as long as all is told, one that wasn't told of isn't the command's
    table.doubt();
    CHECK(table.find_wanted(13, 5));
    CHECK(table.wanted(13, 5));
    CHECK(!table.find_wanted(70, 5));
    CHECK(!table.find_wanted(80, 5)); // /proc can say anything
    CHECK(!table.find_wanted(4711, 5));
    proc.processes[13] = {region(0x1000, 0x2000, "/bin/lost")};
    CHECK(where(table, 13, 0x1001) == "/bin/lost+0x1");
}

TEST_CASE("processes: changes of those that are wanted or followed are told, once") {
    FakeMaps proc;
    proc.processes[10] = {region(0x1000, 0x2000, "/bin/a")};
    proc.processes[20] = {region(0x1000, 0x2000, "/bin/b")};
    ProcessTable table(proc);
    table.all_changes_are_told();
    table.note_changes();
    where(table, 10, 0x1000);
    where(table, 20, 0x1000);
    CHECK(table.take_changed().empty()); // nobody asked
    table.follow(10, 1);
    table.map(10, region(0x3000, 0x4000, "/lib/late"));
    table.map(20, region(0x3000, 0x4000, "/lib/late"));
    CHECK(table.take_changed() == std::vector<uint32_t>{10});
    CHECK(table.take_changed().empty());
    REQUIRE(table.image(10));
    CHECK(table.image(10)->size() == 2);
    table.exec(10, 0);
    CHECK(table.take_changed() == std::vector<uint32_t>{10});
    CHECK(!table.image(10)); // nothing is mapped yet

    table.want(30);
    table.fork(10, 30);
    table.exec(30, 0);
    table.map(30, region(0x1000, 0x2000, "/bin/c"));
    table.fork(30, 31); // the command's children from their first moment on
    CHECK(table.take_changed() == std::vector<uint32_t>{30, 31});
    CHECK(table.parent(31) == 30);
    REQUIRE(table.image(31));
    table.exit(31, true, 5);
    CHECK(table.take_changed() == std::vector<uint32_t>{31});
    CHECK(!table.image(31));
    table.fork(20, 31); // the number again, for somebody whom nobody follows: what was believed of it has to go
    table.fork(20, 10);
    CHECK(table.take_changed() == std::vector<uint32_t>{10});

    table.follow(20, 6);
    CHECK(table.take_changed() == std::vector<uint32_t>{20});
    table.exit(20, true, 7); // its other threads may go on
    CHECK(table.take_changed().empty());
    for (int i = 0; i < 4; ++i) table.sweep();
    CHECK(table.take_changed() == std::vector<uint32_t>{20});
    CHECK(!table.image(20));
}

TEST_CASE("processes: of what time that is which is known of one") {
    FakeMaps proc;
    proc.processes[10] = {region(0x1000, 0x2000, "/bin/a")};
    ProcessTable table(proc);
    table.note_changes();
    CHECK(table.as_of_ns(10) == 0);
    table.follow(10, 100);
    CHECK(table.as_of_ns(10) == 100);
    table.told_until(90); // news from before the look
    CHECK(table.as_of_ns(10) == 100);
    table.told_until(200);
    CHECK(table.as_of_ns(10) == 200);
    CHECK(table.exec_ns(10) == 0);
    table.exec(10, 210);
    table.told_until(220);
    CHECK(table.exec_ns(10) == 210);
    CHECK(table.as_of_ns(10) == 220);
    table.fork(10, 11);
    CHECK(table.exec_ns(11) == 0);
    table.doubt(); // another exec may have been among what was lost
    table.told_until(300);
    CHECK(table.as_of_ns(10) == 210);
    table.look_at(10, 310);
    CHECK(table.as_of_ns(10) == 310);

    CHECK(table.take_changed() == std::vector<uint32_t>{10});
    table.tell_again(10);
    table.tell_again(10);
    table.tell_again(12);
    CHECK(table.take_changed() == std::vector<uint32_t>{10});
}
