// CPUs where nobody has mounted /sys.
#include "runtime/sys/cpus.h"

#include <cstring>

#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("cpus: without /sys those of sched_getaffinity, and its errors are told") {
    test::FakeKernel kernel;
    long answer = 16;
    kernel.script = [&](const sys::Call &call) -> std::optional<long> {
        if (call.number == __NR_openat) return -ENOENT;
        if (call.number != __NR_sched_getaffinity) return std::nullopt;
        if (answer > 0) {
            const uint64_t words[2] = {0b1011, 1};
            REQUIRE(call.args[1] >= sizeof words);
            std::memcpy(reinterpret_cast<void *>(call.args[2]), words, sizeof words);
        }
        return answer;
    };
    CHECK(online_cpus().value() == std::vector<int>{0, 1, 3, 64});
    answer = -EINVAL;
    CHECK(online_cpus().error().os == EINVAL);
    kernel.script = [&](const sys::Call &call) -> std::optional<long> {
        if (call.number == __NR_openat) return -EACCES;
        return std::nullopt;
    };
    CHECK(online_cpus().error().os == EACCES); // it is there, so nothing is made up
}
