// A process maps hundreds of files, and several want to know something of each: it is opened once for all of them.
#include "programs/processes/of_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>

#include "runtime/sys/invoke.h"
#include "tests/support/emulated.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "tests/unit/processes/fakes.h"

using namespace rawbpf;
using namespace rawbpf::test;

namespace {

struct Opened : sys::Observer {
    int count = 0;
    // The folder that a path begins in isn't read.
    void after(const sys::Call &call, long result) override {
        const bool opens = call.number == __NR_openat2 || (call.number == __NR_openat && (call.args[2] & O_PATH) == 0);
        count += opens && result >= 0;
    }
};

int read_at_all;
std::optional<int> machine(const elf::Elf &, Bytes bytes) {
    ++read_at_all;
    return static_cast<int>(std::to_integer<int>(bytes[18]));
}
std::optional<std::string> nothing(const elf::Elf &, Bytes) {
    ++read_at_all;
    return std::nullopt;
}

/// This process, with that file mapped.
ProcessTable::Mapping mapped(FakeMaps &maps, ProcessTable &table, const std::string &path) {
    struct stat about {};
    REQUIRE(stat(path.c_str(), &about) == 0);
    symbols::Region file = region(0x1000, 0x2000, path, 0, about.st_ino);
    file.device = about.st_dev;
    const auto self = static_cast<uint32_t>(getpid());
    maps.processes[self] = {file};
    table.look_at(self, 1);
    return table.image(self)->front();
}

} // namespace

TEST_CASE("files' answers: a file is opened once for all who ask") {
    if (test::memory_is_elsewhere()) SKIP("an emulator runs this, and /proc has the host's addresses");
    FakeMaps maps;
    ProcessTable table(maps);
    FileReader reader(table);
    OfFiles<int> machines(reader);
    OfFiles<std::string> others(reader);
    machines.start(machine);
    others.start(nothing);
    const auto self = static_cast<uint32_t>(getpid());
    char exe[4096] = {};
    REQUIRE(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    const ProcessTable::Mapping mapping = mapped(maps, table, exe);

    Opened opened;
    sys::observe(&opened);
    read_at_all = 0;
    const int *first = machines.of(self, mapping);
    const int once = opened.count;
    CHECK(others.of(self, mapping) == nullptr); // it was read, and says nothing
    CHECK(machines.of(self, mapping) == first);
    sys::observe(nullptr);
    REQUIRE(first != nullptr);
    CHECK(once == 1);
    CHECK(opened.count == once);
    CHECK(read_at_all == 2);
    CHECK(others.answered(mapping.module));
    CHECK(others.find(mapping.module) == nullptr);
    CHECK(machines.find(mapping.module) == first);

    // Who begins to ask later has it read for itself alone.
    OfFiles<int> late(reader);
    late.start(machine);
    CHECK(late.of(self, mapping) != nullptr);
    CHECK(read_at_all == 3);
}

TEST_CASE("files' answers: what is no ELF file isn't read again; what can't be opened is tried with the next process") {
    FakeMaps maps;
    ProcessTable table(maps);
    FileReader reader(table);
    OfFiles<int> machines(reader);
    machines.start(machine);
    const auto self = static_cast<uint32_t>(getpid());
    const Folder folder;
    const std::string path = folder.path + "/text";
    std::ofstream(path) << "no ELF file";
    const ProcessTable::Mapping text = mapped(maps, table, path);
    CHECK(machines.of(self, text) == nullptr);
    CHECK(machines.answered(text.module));

    std::ofstream(folder.path + "/gone") << "likewise";
    const ProcessTable::Mapping gone = mapped(maps, table, folder.path + "/gone");
    unlink((folder.path + "/gone").c_str());
    CHECK(machines.of(self, gone) == nullptr);
    CHECK(!machines.answered(gone.module));
}
