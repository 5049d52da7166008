// News of processes from several rings, put in order by their clocks.
#include "programs/processes/process_events.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "tests/support/test.h"
#include "tests/unit/processes/fakes.h"

using namespace rawbpf;
using namespace rawbpf::test;

namespace {

/// A perf ring as the kernel writes it: page 0 with data_head, then the data.
class FakeSideband {
  public:
    FakeSideband() {
        page_ = sys::page_size();
        memory_ = memfd_create("sideband", MFD_CLOEXEC);
        if (ftruncate(memory_, static_cast<off_t>(2 * page_)) != 0) std::abort();
        base_ = static_cast<std::byte *>(mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0));
        head()->data_offset = page_;
        head()->data_size = page_;
    }
    ~FakeSideband() {
        munmap(base_, 2 * page_);
        close(memory_);
    }
    SidebandRing reader() {
        void *view = mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
        return SidebandRing::over(sys::Mapping(view, 2 * page_)).value();
    }
    void put(uint32_t type, uint16_t misc, std::string body, uint32_t pid, uint64_t t_ns) {
        body.resize((body.size() + 7) / 8 * 8);
        const auto add = [&](auto value) { body.append(reinterpret_cast<const char *>(&value), sizeof value); };
        add(pid), add(pid), add(t_ns), add(uint32_t{0}), add(uint32_t{0}); // sample_id
        perf_event_header header{type, misc, static_cast<uint16_t>(sizeof header + body.size())};
        std::memcpy(base_ + page_ + head()->data_head, &header, sizeof header);
        std::memcpy(base_ + page_ + head()->data_head + sizeof header, body.data(), body.size());
        head()->data_head = head()->data_head + header.size;
    }
    void fork(uint32_t parent, uint32_t child, uint64_t t_ns) { task(PERF_RECORD_FORK, child, parent, child, t_ns); }
    void exit(uint32_t pid, uint32_t tid, uint64_t t_ns) { task(PERF_RECORD_EXIT, pid, pid, tid, t_ns); }
    void exec(uint32_t pid, uint64_t t_ns) {
        std::string body(reinterpret_cast<const char *>(&pid), 4);
        put(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, body + body + std::string("name\0", 5), pid, t_ns);
    }
    void map(uint32_t pid, uint64_t at, const std::string &file, uint64_t t_ns) {
        std::string body;
        const auto add = [&](auto value) { body.append(reinterpret_cast<const char *>(&value), sizeof value); };
        add(pid), add(pid), add(at), add(uint64_t{0x1000}), add(uint64_t{0}); // start, length, offset
        add(uint32_t{8}), add(uint32_t{1}), add(uint64_t{77}), add(uint64_t{0});
        add(uint32_t{PROT_READ | PROT_EXEC}), add(uint32_t{MAP_PRIVATE});
        put(PERF_RECORD_MMAP2, 0, body + file + '\0', pid, t_ns);
    }

  private:
    void task(uint32_t type, uint32_t pid, uint32_t parent, uint32_t tid, uint64_t t_ns) {
        std::string body;
        const auto add = [&](auto value) { body.append(reinterpret_cast<const char *>(&value), sizeof value); };
        add(pid), add(parent), add(tid), add(parent), add(t_ns);
        put(type, 0, body, pid, t_ns);
    }
    perf_event_mmap_page *head() { return reinterpret_cast<perf_event_mmap_page *>(base_); }
    size_t page_;
    int memory_;
    std::byte *base_;
};

} // namespace

TEST_CASE("process events: rings are merged by time, and applied up to a time") {
    FakeSideband one, two;
    ProcessEvents events;
    events.adopt(one.reader());
    events.adopt(two.reader());
    // Born on one CPU, moved to the other in the middle of its start.
    one.fork(1, 50, 100);
    two.exec(50, 200);
    one.map(50, 0x1000, "/bin/early", 300);
    two.map(50, 0x1000, "/bin/late", 400); // replaces it
    one.exit(50, 50, 500);

    FakeMaps proc;
    ProcessTable table(proc);
    const auto path = [&](uint64_t now) {
        const FrameLocation place = table.locate(50, 0x1010, false, now);
        return place.module == kNone ? std::string("?") : table.modules()[place.module].path;
    };
    events.gather();
    CHECK(events.gathered_ns() > 0);
    events.apply(299, table);
    CHECK(path(299) == "?");
    events.apply(300, table);
    CHECK(path(300) == "/bin/early");
    events.apply(450, table);
    CHECK(path(450) == "/bin/late");
    CHECK(table.exec_ns(50) == 200);
    CHECK(table.as_of_ns(50) == 450);
    CHECK(table.modules()[table.locate(50, 0x1010, false, 0).module].inode == 77);
    CHECK(proc.read.empty()); // fork and exec said all there is
    events.apply(1000, table);
    for (int i = 0; i < 3; ++i) table.sweep();
    CHECK(path(1000) == "?");
}

TEST_CASE("process events: later news joins what waits, threads are no processes") {
    FakeSideband ring;
    ProcessEvents events;
    events.adopt(ring.reader());
    FakeMaps proc;
    ProcessTable table(proc);
    ring.exec(60, 1000);
    ring.map(60, 0x1000, "/bin/a", 1001);
    events.gather();
    ring.exit(60, 61, 900);   // a thread of it, told late
    ring.exec(UINT32_MAX, 1); // in another pid namespace
    ring.map(60, 0x2000, "/lib/b", 1002);
    events.gather();
    events.apply(2000, table);
    for (int i = 0; i < 5; ++i) table.sweep();
    CHECK(table.locate(60, 0x1000, false, 0).module != kNone);
    CHECK(table.locate(60, 0x2000, false, 0).module != kNone);
    CHECK(events.lost() == 0);
}
