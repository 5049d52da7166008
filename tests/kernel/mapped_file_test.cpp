// The file behind a mapping: the very one that a process has mapped, or none; never another that has its path now.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/fail.h"
#include "runtime/symbols/mapped_file.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

namespace rawbpf {
namespace {

namespace fs = std::filesystem;
using symbols::MappedFile;
using symbols::Region;

void put(const fs::path &path, const std::string &text) { std::ofstream(path, std::ios::binary) << text; }

/// Maps a file for execution and says what the kernel shows of it.
Result<Region> map_it(const fs::path &path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    void *at = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) return fail(Errc::internal, "mmap {}: {}", path.string(), std::strerror(errno));
    return symbols::own_region(at);
}

std::string content(const MappedFile &mapped) {
    char text[64];
    const ssize_t n = pread(mapped.file.get(), text, sizeof text, 0);
    return {text, n > 0 ? static_cast<size_t>(n) : 0};
}

void unmap(const Region &region) { munmap(reinterpret_cast<void *>(region.start), region.end - region.start); }

TEST_CASE("mapped file: by its process, and by its path alone after its end") {
    const test::Folder folder;
    put(folder.path + "/it", "it");
    auto region = map_it(folder.path + "/it");
    REQUIRE(region);
    for (const std::vector<uint32_t> &pids : {std::vector<uint32_t>{static_cast<uint32_t>(getpid())}, {}, {0}}) {
        auto mapped = symbols::open_mapped(*region, pids);
        REQUIRE(mapped);
        CHECK(content(*mapped) == "it");
        CHECK(mapped->root.empty()); // ours
        CHECK(fs::exists(mapped->path));
    }
    unmap(*region);
}

// An upgrade, or, seen from outside, a process in a chroot: the kernel's event tells a path that is another file's.
TEST_CASE("mapped file: not another file that has the path now") {
    const test::Folder folder;
    put(folder.path + "/it", "it");
    auto region = map_it(folder.path + "/it");
    REQUIRE(region);
    put(folder.path + "/new", "another");
    fs::rename(folder.path + "/new", folder.path + "/it");
    CHECK(!symbols::open_mapped(*region, {}));
    const uint32_t self[] = {static_cast<uint32_t>(getpid())};
    auto mapped = symbols::open_mapped(*region, self);
    if (mapped)
        CHECK(content(*mapped) == "it");
    else
        CHECK(geteuid() != 0); // /proc/PID/map_files needs a capability
    unmap(*region);
}

TEST_CASE("mapped file: of a process in a chroot, whose paths are other files here") {
    const test::Folder folder;
    fs::create_directories(folder.path + "/root" + folder.path);
    put(folder.path + "/it", "ours");
    put(folder.path + "/root" + folder.path + "/it", "its");
    int ready[2], go[2];
    REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
    REQUIRE(pipe2(go, O_CLOEXEC) == 0);
    const pid_t child = fork();
    if (child == 0) {
        Region region;
        if (chroot((folder.path + "/root").c_str()) == 0 && chdir("/") == 0) {
            const int fd = ::open((folder.path + "/it").c_str(), O_RDONLY);
            struct stat st {};
            region.start = reinterpret_cast<uintptr_t>(mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0));
            region.end = region.start + 4096;
            if (fstat(fd, &st) == 0) region.inode = st.st_ino, region.device = st.st_dev;
        }
        const uint64_t numbers[] = {region.start, region.end, region.inode, region.device};
        (void)!write(ready[1], numbers, sizeof numbers);
        char end;
        (void)!read(go[0], &end, 1);
        _exit(0);
    }
    uint64_t numbers[4] = {};
    REQUIRE(read(ready[0], numbers, sizeof numbers) == sizeof numbers);
    Region region;
    region.start = numbers[0], region.end = numbers[1], region.inode = numbers[2], region.device = numbers[3];
    region.path = folder.path + "/it"; // as PERF_RECORD_MMAP2 tells it
    const uint32_t pids[] = {static_cast<uint32_t>(child)};
    auto alive = symbols::open_mapped(region, pids);
    (void)!write(go[1], "x", 1);
    waitpid(child, nullptr, 0);
    auto ended = symbols::open_mapped(region, pids);
    for (int fd : {ready[0], ready[1], go[0], go[1]}) close(fd);
    if (region.inode == 0) SKIP("needs CAP_SYS_CHROOT");
    REQUIRE(alive);
    CHECK(content(*alive) == "its");
    CHECK(alive->root == "/proc/" + std::to_string(child) + "/root");
    CHECK(!ended);
}

// Overlayfs over two file systems shows one inode in maps and another by stat(2).
TEST_CASE("mapped file: on a file system that shows other numbers in maps") {
    const test::Folder folder;
    const pid_t child = fork();
    if (child == 0) {
        const auto in = [&](const char *name) { return folder.path + "/" + name; };
        for (const char *name : {"lower", "upper", "all"}) fs::create_directory(in(name));
        const std::string data =
            "lowerdir=" + in("lower") + ",upperdir=" + in("upper/up") + ",workdir=" + in("upper/work") + ",xino=off";
        if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(77);
        if (mount("tmpfs", in("lower").c_str(), "tmpfs", 0, nullptr) != 0) _exit(77);
        if (mount("tmpfs", in("upper").c_str(), "tmpfs", 0, nullptr) != 0) _exit(77);
        fs::create_directory(in("upper/up"));
        fs::create_directory(in("upper/work"));
        put(in("lower/it"), "it");
        put(in("lower/other"), "other");
        if (mount("overlay", in("all").c_str(), "overlay", 0, data.c_str()) != 0) _exit(77);
        auto region = map_it(in("all/it"));
        if (!region) _exit(2);
        const uint32_t self[] = {static_cast<uint32_t>(getpid())};
        auto by_process = symbols::open_mapped(*region, self), by_path = symbols::open_mapped(*region, {});
        if (!by_process || content(*by_process) != "it") _exit(3);
        if (!by_path || content(*by_path) != "it") _exit(4);
        region->path = in("all/other"); // is on that file system too, and is another
        _exit(symbols::open_mapped(*region, {}) ? 5 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) SKIP("needs CAP_SYS_ADMIN and overlayfs");
    CHECK(WEXITSTATUS(status) == 0);
}

} // namespace
} // namespace rawbpf
