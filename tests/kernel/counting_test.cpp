// Stacks counted in the kernel: that each sample is in exactly one count, and that a count means what its first sample meant.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/profile/profiler.h"
#include "programs/profile/program.h"
#include "programs/session/stack_counting.h"
#include "programs/unwind/program.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "tests/kernel/plain_only.h"
#include "tests/kernel/profile_run.h"
#include "tests/kernel/profile_workload.h"
#include "tests/support/folder.h"
#include "tests/support/profile_configs.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

struct Keep : Sink {
    std::vector<CountedSample> all;
    useconds_t nap = 0; // a slow reader
    Result<void> stacks(std::span<const CountedSample> some) override {
        all.insert(all.end(), some.begin(), some.end());
        return {};
    }
    void progress(const Progress &) override {
        if (nap) usleep(nap);
    }
    [[nodiscard]] uint64_t total() const {
        uint64_t sum = 0;
        for (const CountedSample &sample : all) sum += sample.count;
        return sum;
    }
    /// Samples with such a function, or such a module, anywhere in the user stack.
    [[nodiscard]] uint64_t in(std::string_view function, std::string_view module = {}) const {
        uint64_t sum = 0;
        for (const CountedSample &sample : all) {
            for (const FramePtr &frame : sample.sample.user) {
                if (frame->symbol.find(function) == std::string::npos || !std::string_view(frame->module).ends_with(module))
                    continue;
                sum += sample.count;
                break;
            }
        }
        return sum;
    }
};

ProfileOptions counting(std::vector<std::string> workload) {
    ProfileOptions options;
    options.frequency = 999;
    options.delivery = Delivery::counted;
    options.workload = std::move(workload);
    return options;
}

#define NEEDS_COUNTING()                                                                                                         \
    if (geteuid() != 0) SKIP("needs root");                                                                                      \
    if (const auto why = session::why_not_counted()) SKIP(*why)

// Where only privileges are missing, it's no failure.
#define COUNT_PROFILE(outcome, options, sink)                                                                                    \
    PROFILE_UNLESS(outcome, options, sink, [](const Error &error) { return error.kind == Errc::permission; })

#define CHECK_LEDGER(outcome, sink)                                                                                              \
    CHECK((outcome).ledger.adds_up());                                                                                           \
    CHECK((outcome).ledger.shown == (sink).total())

/// The smallest program: counts down from `rounds`, executes the file `next`, and ends. It has no symbols, no sections, and lies
/// at the same address whoever it is.
std::string spinner(uint32_t rounds, const std::string &next) {
#if defined(__x86_64__)
    std::string code("\xb9\0\0\0\0"           // mov ecx, rounds
                     "\x48\xff\xc9"           // dec rcx
                     "\x75\xfb"               // jnz
                     "\x48\x8d\x3d\x14\0\0\0" // lea rdi, next
                     "\x31\xf6\x31\xd2"       // rsi = rdx = 0
                     "\xb8\x3b\0\0\0\x0f\x05" // execve
                     "\x31\xff"
                     "\xb8\x3c\0\0\0\x0f\x05", // exit
                     37);
    std::memcpy(code.data() + 1, &rounds, 4);
    constexpr uint16_t kMachine = 62;
#else
    uint32_t words[] = {
        0xd2a00009u | (rounds >> 16) << 5,    // movz x9, rounds >> 16, lsl 16
        0xf2800009u | (rounds & 0xffff) << 5, // movk x9, rounds
        0xf1000529u,                          // subs x9, x9, 1
        0x54ffffe1u,                          // b.ne
        0x10000100u,                          // adr x0, next
        0xd2800001u,                          // x1 = x2 = 0
        0xd2800002u,
        0xd2801ba8u, // execve
        0xd4000001u,
        0xd2800000u,
        0xd2800ba8u, // exit
        0xd4000001u,
    };
    std::string code(reinterpret_cast<const char *>(words), sizeof words);
    constexpr uint16_t kMachine = 183;
#endif
    code += next;
    code += '\0';
    constexpr uint64_t kBase = 0x10000000;
    struct Header {
        unsigned char ident[16] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
        uint16_t type = 2, machine = kMachine;
        uint32_t version = 1;
        uint64_t entry = kBase + 120, phoff = 64, shoff = 0;
        uint32_t flags = 0;
        uint16_t ehsize = 64, phentsize = 56, phnum = 1, shentsize = 0, shnum = 0, shstrndx = 0;
        uint32_t load = 1, rx = 5;
        uint64_t offset = 0, vaddr = kBase, paddr = kBase, filesz = 0, memsz = 0, align = 0x10000;
    } header;
    static_assert(sizeof header == 120);
    header.filesz = header.memsz = sizeof header + code.size();
    return std::string(reinterpret_cast<const char *>(&header), sizeof header) + code;
}

bool install(const std::string &path, const std::string &bytes) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    if (fd < 0) return false;
    const bool written = ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    close(fd);
    return written;
}

} // namespace

TEST_CASE("counting: the program passes the verifier in every way that it is configured") {
    NEEDS_COUNTING();
    const UnwindProgramOptions unwind = probe_unwind();
    test::each_profile_config([&](const ProfileConfig &config, unsigned number) {
        if (number % 11 != 0 && number != 95) return; // the stage is the same; what stands before it differs
        INFO(number);
        profile::ProgramOptions options;
        options.config = config;
        options.counting.emplace();
        options.counting->by_thread = number % 2 != 0;
        if (number % 3 == 0) options.unwind = unwind;
        auto spec = profile::program_spec(options);
        REQUIRE(spec);
        Result<LoadedObject> object = load(std::move(*spec));
        REQUIRE_MESSAGE(object, object.error().message() << object.error().log);
    });
}

TEST_CASE("counting: 75 % and 25 %, counted in the kernel and sent one by one") {
    PLAIN_ONLY();
    NEEDS_COUNTING();
    for (UnwindBy unwind : {UnwindBy::automatic, UnwindBy::fp}) {
        for (uint32_t room : {8192u, 0u}) {
            ProfileOptions options = counting(test::workload("split", 1500));
            options.unwind = unwind;
            options.stack_counts = room;
            double a = 0, b = 0;
            uint64_t counted = 0;
            for (int tries = 0; a + b <= 300 && tries < 8; ++tries) {
                Keep sink;
                COUNT_PROFILE(outcome, options, sink);
                a += static_cast<double>(sink.in("hot_a"));
                b += static_cast<double>(sink.in("hot_b"));
                counted += outcome.cost.counted;
                CHECK_LEDGER(outcome, sink);
                CHECK(test::lost(outcome) == 0);
                CHECK_MESSAGE((outcome.cost.counting.find("were counted") != std::string::npos) == (room != 0),
                              outcome.cost.counting);
            }
            REQUIRE(a + b > 300);
            // Of a loop of some ten instructions most samples are repeats; but not all machines show each of them.
            CHECK((counted > 0) == (room != 0));
            const double share = 100 * a / (a + b), deviation = 100 * std::sqrt(0.75 * 0.25 / (a + b));
            CHECK(std::abs(share - 75) < 4 * deviation + 1);
        }
    }
}

// A machine's speed changes by more than a factor of two while its neighbours work: a program that runs once may get 374 samples,
// and the same work right after it 163. So they take turns: first, second, first, and so on. Each turn is a file in a folder of
// its own: a key has the process's name in it, which must be the same.
TEST_CASE("counting: programs at the same addresses in the same process are told apart") {
    PLAIN_ONLY();
    NEEDS_COUNTING();
    constexpr uint32_t kRounds = 1 << 25; // 10 ms
    constexpr size_t kTurns = 32;
    const test::Folder folder;
    chmod(folder.path.c_str(), 0755);
    const auto path = [&](size_t turn) { return folder.path + "/" + std::to_string(turn) + "/spin"; };
    for (size_t turn = 0; turn < kTurns; ++turn) {
        REQUIRE(mkdir(path(turn).substr(0, path(turn).rfind('/')).c_str(), 0755) == 0);
        REQUIRE(install(path(turn), spinner(kRounds, turn + 1 < kTurns ? path(turn + 1) : "/nowhere")));
    }
    double a = 0, b = 0;
    for (int tries = 0; a + b <= 200 && tries < 8; ++tries) {
        ProfileOptions options = counting({path(0)});
        Keep sink;
        COUNT_PROFILE(outcome, options, sink);
        CHECK_LEDGER(outcome, sink);
        CHECK(test::lost(outcome) == 0);
        CHECK(outcome.cost.counted > 0);
        for (size_t turn = 0; turn < kTurns; ++turn) (turn % 2 == 0 ? a : b) += static_cast<double>(sink.in("", path(turn)));
    }
    REQUIRE(a + b > 200);
    CHECK(a / (a + b) > 0.3); // both spend the same
    CHECK(b / (a + b) > 0.3);
}

TEST_CASE("counting: many processes, a map that is full, a ring that is full: every sample is somewhere") {
    PLAIN_ONLY();
    NEEDS_COUNTING();
    struct Case {
        const char *what;
        int milliseconds;
        uint32_t room;
        size_t ring_bytes;
        useconds_t nap;
    };
    for (const Case &c : {Case{"crumbs", 600, 8192, 0, 0}, Case{"forks", 500, 8192, 0, 0}, Case{"crumbs", 400, 4, 0, 0},
                          Case{"system", 500, 2, 0, 0}, Case{"crumbs", 600, 8192, sys::page_size(), 100'000},
                          Case{"threads", 500, 64, sys::page_size(), 100'000}}) {
        INFO(c.what << ' ' << c.room << ' ' << c.ring_bytes);
        ProfileOptions options = counting(test::workload(c.what, c.milliseconds));
        options.stack_counts = c.room;
        options.ring_bytes = c.ring_bytes;
        Keep sink;
        sink.nap = c.nap;
        COUNT_PROFILE(outcome, options, sink);
        CHECK_LEDGER(outcome, sink);
        CHECK(outcome.ledger.shown > 0);
        CHECK(outcome.cost.bpf_runs == outcome.ledger.fired);
        for (const auto &[reason, count] : outcome.ledger.lost)
            CHECK_MESSAGE((count == 0 || (reason == "ring_full" && c.nap != 0)), reason << ' ' << count);
    }
}

TEST_CASE("counting: of a count only what is new is taken, also before its record and across maps") {
    NEEDS_COUNTING();
    profile::ProgramOptions program;
    program.counting.emplace();
    program.counting->stacks = 64;
    auto spec = profile::program_spec(program);
    REQUIRE(spec);
    Result<LoadedObject> object = load(std::move(*spec));
    REQUIRE_MESSAGE(object, object.error().message() << object.error().log);
    Map *outer = object->find_map("counted_stacks");
    REQUIRE(outer);
    // What the program would do: add to a count in the map that is there now. False: none is.
    const auto count = [&](uint64_t key, uint64_t value) {
        auto id = outer->get<uint32_t, uint32_t>(0);
        if (!id) return false;
        auto fd = sys::fd_by_id(sys::ObjectKind::map, *id);
        REQUIRE(fd);
        auto map = Map::from_fd(std::move(*fd));
        REQUIRE(map);
        REQUIRE(map->put(key, StackCount{value, 1}));
        return true;
    };
    std::map<uint32_t, uint64_t> shown; // by pid; 0: nobody's
    session::StackCounts counts(
        [&](const processes::InternedSample *sample, uint64_t more) { shown[sample ? sample->pid : 0] += more; });
    const auto sample = [](uint32_t pid) {
        processes::InternedSample out;
        out.pid = pid;
        return out;
    };
    const processes::InternedSample one = sample(1), two = sample(2), three = sample(3);
    constexpr uint64_t kSecond = 1'000'000'000;
    CHECK_FALSE(counts.on());
    REQUIRE(counts.start(*object, 64));
    REQUIRE(counts.on());
    REQUIRE(counts.tick(kSecond, 0));
    counts.met(11, &one);
    counts.met(13, nullptr);
    REQUIRE(count(11, 5));
    REQUIRE(count(13, 4));
    REQUIRE(count(12, 3)); // its record isn't here yet
    REQUIRE(counts.tick(kSecond + 1, 0));
    CHECK(shown.empty()); // too soon
    REQUIRE(counts.tick(2 * kSecond, 0));
    CHECK(shown == std::map<uint32_t, uint64_t>{{0, 4}, {1, 5}});
    REQUIRE(count(11, 7));
    counts.met(12, &two);
    REQUIRE(counts.tick(3 * kSecond, 0));
    CHECK(shown == std::map<uint32_t, uint64_t>{{0, 4}, {1, 7}, {2, 3}});
    counts.met(11, &three); // another CPU sent it, too: the count is the same one
    REQUIRE(counts.tick(4 * kSecond, 0));
    CHECK(shown[3] == 0);

    REQUIRE(count(11, 9));
    REQUIRE(count(14, 6)); // its record comes after the change
    REQUIRE(counts.start_anew());
    CHECK(shown[3] == 2);
    REQUIRE(count(11, 1)); // a new map: counts begin again
    counts.met(14, &one);
    counts.met(11, &two);
    CHECK(shown[1] == 13);
    REQUIRE(counts.tick(6 * kSecond, 0));
    CHECK(shown[2] == 4);

    // Nothing but new stacks: it stops, and tries again some seconds later.
    for (uint64_t key = 1000; key < 3000; ++key) counts.met(key, &one);
    REQUIRE(counts.tick(8 * kSecond, 0));
    CHECK(counts.pauses() == 1);
    CHECK_FALSE(count(11, 1));
    REQUIRE(counts.tick(10 * kSecond, 0));
    CHECK_FALSE(count(11, 1));
    REQUIRE(counts.tick(14 * kSecond, 0));
    CHECK(count(11, 8));
    counts.met(11, &two);
    REQUIRE(count(15, 1));
    REQUIRE(counts.finish());
    CHECK(shown[2] == 12);
    CHECK(counts.unknown() == 1); // 15 was never sent
    CHECK(counts.counted() == shown[0] + shown[1] + shown[2] + shown[3]);
}
