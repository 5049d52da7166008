// The sideband on real processes: a shell that starts another program, watched from before its exec to its end.
#include "runtime/events/perf_ring.h"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <elf.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/elf/elf.h"
#include "runtime/sys/file.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

struct Seen {
    uint64_t t_ns;
    std::string what;
};

/// A child that waits until release() and then becomes /bin/sh -c SCRIPT.
class Child {
  public:
    explicit Child(const char *script) {
        int gate[2];
        if (pipe(gate) != 0) std::abort();
        pid_ = fork();
        if (pid_ == 0) {
            char byte;
            close(gate[1]);
            if (read(gate[0], &byte, 1) != 1) _exit(1);
            execl("/bin/sh", "sh", "-c", script, nullptr);
            _exit(127);
        }
        close(gate[0]);
        gate_ = gate[1];
    }
    ~Child() { close(gate_), finish(); }
    void release() { (void)!write(gate_, "x", 1); }
    int finish() {
        int status = 0;
        if (pid_ > 0) waitpid(std::exchange(pid_, -1), &status, 0);
        return status;
    }
    [[nodiscard]] int pid() const { return pid_; }

  private:
    int pid_ = -1, gate_ = -1;
};

uint64_t now() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

/// What the kernel maps for an executable: its file's own name, behind the symbolic links.
std::string mapped_name(const char *path) {
    const std::string real = std::filesystem::canonical(path);
    return real.substr(real.rfind('/') + 1);
}
/// Whether it comes with libraries; a guest's shell is busybox, which is one file.
bool is_dynamic(const char *path) {
    std::string bytes = sys::read_file(std::filesystem::canonical(path)).value();
    auto elf = elf::Elf::parse(std::as_bytes(std::span(bytes)), path).value();
    for (const elf::Segment &segment : elf.segments())
        if (segment.type == PT_INTERP) return true;
    return false;
}

bool missing(const Error &error) { return error.kind == Errc::permission || error.kind == Errc::unsupported; }

} // namespace

TEST_CASE("sideband ring: a shell and the program that it starts, from exec to exit") {
    Child child("/bin/true; exit 3");
    const int shell = child.pid();
    std::vector<SidebandRing> rings;
    for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); ++cpu) {
        auto ring = SidebandRing::open({.pid = shell, .cpu = cpu, .inherit = true, .enable_on_exec = true, .wakeup_bytes = 1});
        if (!ring && ring.error().os == ENODEV) continue; // offline
        if (!ring && missing(ring.error())) SKIP("needs perf_event_open with CAP_PERFMON");
        REQUIRE_MESSAGE(ring, ring.error().message());
        rings.push_back(std::move(*ring));
    }
    const uint64_t before = now();
    child.release();
    std::vector<pollfd> waiting;
    for (auto &ring : rings) waiting.push_back({ring.poll_fd(), POLLIN, 0});
    CHECK(poll(waiting.data(), waiting.size(), 10000) > 0);
    CHECK(WEXITSTATUS(child.finish()) == 3);
    const uint64_t after = now();

    std::multimap<uint64_t, std::string> seen; // in order of time, over all CPUs
    bool times_right = true, build_id_seen = false, ids_right = true;
    uint32_t born = 0;
    for (auto &ring : rings) {
        ring.consume([&](const SidebandRecord &r) {
            times_right &= r.t_ns >= before && r.t_ns <= after;
            std::string text = "other";
            if (auto *map = std::get_if<MapRecord>(&r.what)) {
                build_id_seen |= map->build_id.size() == 20;
                ids_right &= map->length % sys::page_size() == 0 && (map->protection & PROT_EXEC);
                text = "map " + std::string(map->file.substr(map->file.rfind('/') + 1));
            } else if (auto *comm = std::get_if<CommRecord>(&r.what)) {
                text = (comm->exec ? "exec " : "comm ") + std::string(comm->comm);
            } else if (auto *task = std::get_if<TaskRecord>(&r.what)) {
                text = task->exit ? "exit" : "fork";
                if (!task->exit) born = task->pid, ids_right &= task->parent_pid == static_cast<uint32_t>(shell);
            }
            seen.emplace(r.t_ns, std::to_string(r.pid == static_cast<uint32_t>(shell) ? 1 : 2) + " " + text);
        });
        CHECK(ring.lost() == 0);
        CHECK(ring.malformed() == 0);
        CHECK(ring.available() == 0);
    }
    std::string story;
    for (auto &[t, what] : seen) story += what + "; ";
    INFO(story);
    auto place = [&](const char *text) { return story.find(text); };
    CHECK(times_right);
    CHECK(ids_right);
    CHECK(born != 0);
    CHECK(place("1 exec sh; 1 map ") == 0);
    if (is_dynamic("/bin/sh")) CHECK(place("1 map libc") < place("1 fork"));
    CHECK(place("1 fork") < place("2 exec true"));
    const std::string mapped = "2 map " + mapped_name("/bin/true");
    CHECK(place("2 exec true") < place(mapped.c_str()));
    CHECK(place(mapped.c_str()) < place("2 exit"));
    CHECK(place("2 exit") < place("1 exit"));
    CHECK(place("1 exit") != std::string::npos);
    if (rings.front().build_ids()) CHECK(build_id_seen);
}

TEST_CASE("sideband ring: without build-ids, inodes that stat agrees with") {
    Child child("exit 0");
    auto ring = SidebandRing::open({.pid = child.pid(), .enable_on_exec = true, .build_ids = false});
    if (!ring && missing(ring.error())) SKIP("needs perf_event_open with CAP_PERFMON");
    REQUIRE_MESSAGE(ring, ring.error().message());
    CHECK(!ring->build_ids());
    child.release();
    child.finish();
    int checked = 0;
    ring->consume([&](const SidebandRecord &r) {
        auto *map = std::get_if<MapRecord>(&r.what);
        if (!map || !map->file.starts_with("/")) return;
        auto st = sys::stat_file(std::string(map->file));
        REQUIRE(st);
        CHECK(map->inode == st->st_ino);
        ++checked;
    });
    CHECK(checked >= (is_dynamic("/bin/sh") ? 2 : 1)); // the shell, and libc
}

TEST_CASE("sideband ring: a full ring says how many records it lost") {
    Child child("i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done; kill -STOP $$; /bin/true");
    auto ring = SidebandRing::open({.pid = child.pid(), .cpu = 0, .inherit = true, .bytes = 1});
    if (!ring && missing(ring.error())) SKIP("needs perf_event_open with CAP_PERFMON");
    REQUIRE_MESSAGE(ring, ring.error().message());
    cpu_set_t zero;
    CPU_ZERO(&zero);
    CPU_SET(0, &zero);
    REQUIRE(sched_setaffinity(child.pid(), sizeof zero, &zero) == 0);
    child.release();
    int status = 0;
    REQUIRE(waitpid(child.pid(), &status, WUNTRACED) == child.pid());
    REQUIRE(WIFSTOPPED(status));
    const size_t records = ring->consume([](const SidebandRecord &) {});
    CHECK(records > 10);
    CHECK(ring->lost() == 0);
    kill(child.pid(), SIGCONT); // the kernel reports a loss with the next record that fits
    child.finish();
    CHECK(ring->consume([](const SidebandRecord &) {}) > 1);
    CHECK(ring->lost() > 300);
    CHECK(ring->malformed() == 0);
}

TEST_CASE("sideband ring: a thread that isn't there is not found") {
    Child child("exit 0");
    const int gone = child.pid();
    child.release();
    child.finish();
    auto ring = SidebandRing::open({.pid = gone});
    REQUIRE(!ring);
    if (missing(ring.error())) SKIP("needs perf_event_open");
    CHECK(ring.error().kind == Errc::not_found);
}
