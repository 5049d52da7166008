// Names from this machine: its kernel's symbols, its vdso, and files that only another process can reach.
#include "runtime/symbols/symbols.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/fail.h"
#include "runtime/sys/file.h"
#include "tests/support/test.h"
#include "tests/unit/symbols/small_elf.h"

using namespace rawbpf;
using namespace rawbpf::symbols;
namespace fs = std::filesystem;

namespace {

std::vector<std::byte> small_library() {
    test::SmallElf small(EM_X86_64, 0x1000);
    small.symbols({{"in_the_library", test::SmallElf::kText + 0x10, 0x20}});
    return small.finish();
}

void write_file(const std::string &path, Bytes bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// Maps the whole file for execution, as a loader would its text; false when it can't.
bool map_for_execution(const std::string &path, size_t size) {
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    void *at = mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    close(fd);
    return at != MAP_FAILED;
}

const Region *region_with(const ProcessMaps &maps, std::string_view part) {
    for (const Region &region : maps.regions)
        if (region.path.find(part) != std::string::npos) return &region;
    return nullptr;
}

} // namespace

TEST_CASE("vdso: this kernel's has the clock in it") {
    Result<ElfSymbols> vdso = load_vdso();
    if (!vdso && vdso.error().kind == Errc::not_found) SKIP(vdso.error().message());
    REQUIRE(vdso);
    CHECK(vdso->size() >= 3);
    bool clock = false;
    for (uint64_t offset = 0; offset < 0x8000 && !clock; offset += 4)
        if (auto name = vdso->find(offset)) clock = name->symbol.find("clock_gettime") != std::string::npos;
    CHECK(clock);
}

TEST_CASE("elf symbols: a file that was deleted is reached through map_files") {
    auto image = small_library();
    std::string path = format("/tmp/rawbpf-deleted-{}.so", getpid());
    write_file(path, image);
    REQUIRE(map_for_execution(path, image.size()));
    unlink(path.c_str());
    write_file(path, bytes_of("another file, with the same name"));
    Result<ProcessMaps> maps = read_maps(getpid());
    REQUIRE(maps);
    const Region *region = region_with(*maps, path);
    REQUIRE(region);
    CHECK(region->kind() == RegionKind::deleted);
    CHECK(region->file() == path);
    Result<ElfSymbols> symbols = ElfSymbols::load(getpid(), *region);
    unlink(path.c_str());
    munmap(reinterpret_cast<void *>(region->start), region->end - region->start);
    if (!symbols && geteuid() != 0) SKIP("needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE (5.9)");
    REQUIRE(symbols);
    CHECK(symbols->find(test::offset_in(image, test::SmallElf::kText + 0x11))->symbol == "in_the_library");
}

TEST_CASE("elf symbols: a file in a container's mount namespace is read as the container sees it") {
    std::string directory = format("/tmp/rawbpf-container-{}", getpid());
    fs::create_directory(directory);
    auto image = small_library();
    int ready[2], go[2];
    REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
    REQUIRE(pipe2(go, O_CLOEXEC) == 0);
    pid_t child = fork();
    if (child == 0) {
        char state = 'n';
        if (unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
            mount("tmpfs", directory.c_str(), "tmpfs", 0, nullptr) == 0) {
            write_file(directory + "/inside.so", image);
            state = map_for_execution(directory + "/inside.so", image.size()) ? 'y' : 'm';
        }
        (void)!write(ready[1], &state, 1);
        (void)!read(go[0], &state, 1);
        _exit(0);
    }
    char state = 0;
    REQUIRE(read(ready[0], &state, 1) == 1);
    Result<ProcessMaps> maps = read_maps(child);
    Result<ElfSymbols> symbols = fail(Errc::not_found, "no region");
    if (maps)
        if (const Region *region = region_with(*maps, "inside.so")) symbols = ElfSymbols::load(child, *region);
    bool outside = fs::exists(directory + "/inside.so");
    (void)!write(go[1], "x", 1);
    waitpid(child, nullptr, 0);
    for (int fd : {ready[0], ready[1], go[0], go[1]}) close(fd);
    fs::remove_all(directory);
    if (state == 'n') SKIP("needs CAP_SYS_ADMIN for a mount namespace");
    REQUIRE(state == 'y');
    CHECK(!outside);
    REQUIRE(symbols);
    CHECK(symbols->find(test::offset_in(image, test::SmallElf::kText + 0x10))->symbol == "in_the_library");
}

TEST_CASE("perf map: a live process's own, and none that somebody else could have put there") {
    std::string path = format("/tmp/perf-{}.map", getpid());
    write_file(path, bytes_of("1000 100 jitted function\n"));
    Result<PerfMap> map = PerfMap::load(getpid());
    REQUIRE(map);
    CHECK(map->find(0x1010)->symbol == "jitted function");
    if (geteuid() == 0) {
        REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
        Result<PerfMap> foreign = PerfMap::load(getpid());
        REQUIRE(!foreign);
        CHECK(foreign.error().kind == Errc::permission);
        CHECK(PerfMap::load(getpid(), {}, 12345)); // the process's owner, if the caller knows better
    }
    unlink(path.c_str());
    REQUIRE(symlink("/etc/hostname", path.c_str()) == 0);
    CHECK(!PerfMap::load(getpid()));
    unlink(path.c_str());
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    CHECK(!PerfMap::load(getpid()));
    unlink(path.c_str());
}

TEST_CASE("perf map: of a process that has ended, waited for or not") {
    const pid_t child = fork();
    if (child == 0) {
        write_file(format("/tmp/perf-{}.map", getpid()), bytes_of("1000 100 jitted function\n"));
        _exit(0);
    }
    siginfo_t ended{};
    REQUIRE(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
    CHECK(PerfMap::load(child)); // a zombie, which has no root directory any more
    REQUIRE(waitpid(child, nullptr, 0) == child);
    CHECK(PerfMap::load(child, {}, geteuid()));
    unlink(format("/tmp/perf-{}.map", child).c_str());
    CHECK_FALSE(PerfMap::load(child, {}, geteuid()));
}

TEST_CASE("kallsyms: names addresses of this kernel as its own text has them") {
    Result<std::string> text = sys::read_file("/proc/kallsyms");
    if (!text) SKIP(text.error().message());
    // Some functions from all over the table, with their addresses and the names that stand there.
    std::vector<std::pair<uint64_t, std::string>> known;
    size_t line = 0;
    for (size_t at = 0; at < text->size(); ++line) {
        size_t end = std::min(text->find('\n', at), text->size());
        std::string_view row = std::string_view(*text).substr(at, end - at);
        if (line % 997 == 0 && row.size() > 20 && row[17] == 't') {
            uint64_t address = std::stoull(std::string(row.substr(0, 16)), nullptr, 16);
            std::string name(row.substr(19));
            known.emplace_back(address, name.substr(0, name.find('\t')));
        }
        at = end + 1;
    }
    std::vector<uint64_t> asked;
    for (auto &[address, name] : known) asked.push_back(address);
    Result<std::vector<KernelName>> names = name_kernel_addresses(asked);
    if (!names && names.error().kind == Errc::permission) SKIP(names.error().message());
    REQUIRE(names);
    REQUIRE(!known.empty());
    size_t same = 0;
    for (auto &[address, name] : known) {
        auto found = std::find_if(names->begin(), names->end(), [&, a = address](const KernelName &n) { return n.address == a; });
        REQUIRE(found != names->end());
        CHECK(found->offset == 0);
        CHECK(!found->module.empty());
        same += found->symbol == name;
    }
    CHECK(same * 10 >= known.size() * 9); // the rest have a global alias at their address, which is preferred
}

// As a stranger's program would: addresses of a process that runs, as names.
TEST_CASE("process symbols: a child's code, its libraries, the vdso, and what it maps later") {
    int ready[2], go[2];
    REQUIRE((pipe(ready) == 0 && pipe(go) == 0));
    const std::string library = format("/tmp/rawbpf-process-symbols-{}", getpid());
    const std::vector<std::byte> image = small_library();
    write_file(library, image);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        char byte = 0;
        if (read(go[0], &byte, 1) == 1) {
            int fd = open(library.c_str(), O_RDONLY | O_CLOEXEC);
            uint64_t at = reinterpret_cast<uintptr_t>(mmap(nullptr, image.size(), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0));
            (void)!write(ready[1], &at, sizeof at);
        }
        for (;;) pause();
    }
    {
        Result<ProcessSymbols> symbols = ProcessSymbols::of(child);
        REQUIRE_MESSAGE(symbols, symbols.error().message());
        const NamedAddress getpid_at = symbols->name(reinterpret_cast<uintptr_t>(&::getpid) + 1);
        CHECK(getpid_at.function.find("getpid") != std::string::npos);
        CHECK(getpid_at.offset == 1);
        CHECK(getpid_at.module.find('/') == 0);
        const NamedAddress ours = symbols->name(reinterpret_cast<uintptr_t>(&map_for_execution) + 2);
        CHECK(ours.function.find("map_for_execution") != std::string::npos);
        CHECK(ours.offset == 2);
        const NamedAddress nowhere = symbols->name(16);
        CHECK(nowhere.function.empty());
        CHECK(nowhere.why == "no code is mapped there");

        uint64_t at = 0;
        REQUIRE(write(go[1], "g", 1) == 1);
        REQUIRE(read(ready[0], &at, sizeof at) == sizeof at);
        const uint64_t offset = test::offset_in(image, test::SmallElf::kText + 0x14); // the whole file is mapped
        const NamedAddress late = symbols->name(at + offset);
        CHECK_MESSAGE(late.function == "in_the_library", late.why);
        CHECK(late.offset == 4);
        CHECK(late.module == library);
        CHECK(late.file_offset == offset);

        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        CHECK(symbols->name(reinterpret_cast<uintptr_t>(&map_for_execution)).function ==
              ours.function); // what was met stays known
    }
    unlink(library.c_str());
    for (int fd : {ready[0], ready[1], go[0], go[1]}) close(fd);
    CHECK(ProcessSymbols::of(child).error().kind == Errc::not_found);
}

TEST_CASE("process symbols: kernel addresses among others, in the order asked") {
    Result<ProcessSymbols> symbols = ProcessSymbols::of(0);
    REQUIRE(symbols);
    const uint64_t here = reinterpret_cast<uintptr_t>(&map_for_execution);
    const std::vector<NamedAddress> named = symbols->name(std::vector<uint64_t>{here, ~uint64_t{0} - 5, here});
    REQUIRE(named.size() == 3);
    CHECK(named[0].function == named[2].function);
    CHECK(named[1].function.empty());
    CHECK_FALSE(named[1].why.empty());
}
