// Counting the runs of programs: which of the kernel's two switches, and that it is put back.
#include "runtime/kernel/stats.h"

#include <cerrno>
#include <cstring>

#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"

using namespace rawbpf;
using test::FakeKernel;

TEST_CASE("stats: descriptor where there is one, the sysctl is only for kernels without") {
    FakeKernel kernel;
    {
        RunStats stats = RunStats::enable().value();
        CHECK(kernel.leaks() != "");
    }
    CHECK(kernel.leaks() == "");
    kernel.refuse(BPF_ENABLE_STATS, EPERM);
    CHECK(RunStats::enable().error().kind == Errc::permission);
    CHECK(kernel.leaks() == "");
}

TEST_CASE("stats: before 5.8 the sysctl is switched on, and off again if it was off") {
    for (bool was_on : {false, true}) {
        CAPTURE(was_on);
        FakeKernel kernel;
        kernel.refuse(BPF_ENABLE_STATS, EINVAL);
        std::string setting = was_on ? "1\n" : "0\n";
        std::vector<std::string> written;
        size_t at = 0;
        kernel.script = [&](const sys::Call &c) -> std::optional<long> {
            switch (c.number) {
            case __NR_openat:
                CHECK(std::string(reinterpret_cast<const char *>(c.args[1])) == "/proc/sys/kernel/bpf_stats_enabled");
                at = 0;
                return 1'000'700; // a descriptor of its own, not counted
            case __NR_read: {
                std::memcpy(reinterpret_cast<void *>(c.args[1]), setting.data() + at, setting.size() - at);
                return static_cast<long>(setting.size() - std::exchange(at, setting.size()));
            }
            case __NR_write:
                written.emplace_back(reinterpret_cast<const char *>(c.args[1]), c.args[2]);
                setting = written.back();
                return static_cast<long>(c.args[2]);
            default: return {};
            }
        };
        {
            RunStats stats = RunStats::enable().value();
            RunStats moved = std::move(stats);
            CHECK(setting == "1\n");
        }
        CHECK(written == (was_on ? std::vector<std::string>{} : std::vector<std::string>{"1\n", "0\n"}));
    }
}
