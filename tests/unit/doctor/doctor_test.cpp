// The doctor against kernels that refuse everything, and its two ways to print.
#include "programs/doctor/doctor.h"

#include "runtime/kernel/probes.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {
const std::vector<doctor::Check> kChecks = {
    {"features", "ring buffers", true, "", "5.8", ""},   {"features", "kprobe.multi", false, "EOPNOTSUPP", "5.18", "Linux 5.18"},
    {"features", "iter\"ators\x1b[31m", {}, "", "", ""}, {"helpers", "bpf_a", true, "for xdp", "4.1", "", true},
    {"helpers", "bpf_b", false, "", "4.2", "", true},
};
RunInfo run() { return {{"rawbpf", "doctor"}, "0", "6.12", "arm64", 4, 0}; }
} // namespace

TEST_CASE("doctor: text is grouped, lists are counted unless asked for") {
    CHECK(doctor::as_text(kChecks, run(), false) == "rawbpf 0, Linux 6.12, arm64, 4 CPUs\n"
                                                    "\n"
                                                    "features\n"
                                                    "  yes  ring buffers     5.8\n"
                                                    "  no   kprobe.multi     5.18   EOPNOTSUPP; fix: Linux 5.18\n"
                                                    "  ?    iter\"ators\xef\xbf\xbd[31m\n"
                                                    "\n"
                                                    "lists (-v shows them)\n"
                                                    "  some helpers                 1 of 2; not bpf_b\n");
    RunInfo small = run();
    small.cpus = 1;
    CHECK(doctor::as_text(kChecks, small, false).find("arm64, 1 CPU\n") != std::string::npos);
    std::string all = doctor::as_text(kChecks, run(), true);
    CHECK(all.find("  yes  bpf_a ") != std::string::npos);
    CHECK(all.find("lists") == std::string::npos);
}

TEST_CASE("doctor: JSON lines") {
    CHECK(doctor::as_json(kChecks, run()) == "{\"type\":\"header\",\"schema\":1,\"command\":[\"rawbpf\",\"doctor\"],\"version\":"
                                             "\"0\",\"kernel\":\"6.12\",\"arch\":\"arm64\","
                                             "\"cpus\":4,\"start\":\"1970-01-01T00:00:00.000000000Z\"}\n"
                                             "{\"type\":\"check\",\"group\":\"features\",\"name\":\"ring "
                                             "buffers\",\"ok\":true,\"detail\":null,\"since\":\"5.8\",\"fix\":null}\n"
                                             "{\"type\":\"check\",\"group\":\"features\",\"name\":\"kprobe.multi\",\"ok\":false,"
                                             "\"detail\":\"EOPNOTSUPP\",\"since\":\"5.18\","
                                             "\"fix\":\"Linux 5.18\"}\n"
                                             "{\"type\":\"check\",\"group\":\"features\",\"name\":\"iter\\\"ators\\u001b["
                                             "31m\",\"ok\":null,\"detail\":null,\"since\":null,"
                                             "\"fix\":null}\n"
                                             "{\"type\":\"check\",\"group\":\"helpers\",\"name\":\"bpf_a\",\"ok\":true,"
                                             "\"detail\":\"for xdp\",\"since\":\"4.1\",\"fix\":null}\n"
                                             "{\"type\":\"check\",\"group\":\"helpers\",\"name\":\"bpf_b\",\"ok\":false,"
                                             "\"detail\":null,\"since\":\"4.2\",\"fix\":null}\n"
                                             "{\"type\":\"summary\",\"yes\":2,\"no\":2,\"unknown\":1}\n");
}

TEST_CASE("doctor: a kernel that refuses every call is a list, not a failure") {
    for (int os : {EPERM, ENOSYS}) {
        CAPTURE(os);
        forget_features();
        test::FakeKernel kernel;
        // No file, no system call: a guest without /proc and /sys, and a sandbox.
        kernel.script = [=](const sys::Call &) -> std::optional<long> { return -os; };
        std::vector<doctor::Check> checks = doctor::examine();
        CHECK(checks.size() > 300);
        for (const doctor::Check &check : checks) {
            CAPTURE(check.name);
            // What the kernel was asked for. (Shares of memory are computed.)
            bool kernel_side =
                check.group != "privileges" && check.group != "policies" && check.group != "files" && check.group != "memory";
            if (kernel_side) CHECK(check.ok != true);
            if (check.ok == false) CHECK_FALSE(check.fix.empty());
            if (os == ENOSYS && check.ok == false && check.group == "features")
                CHECK(check.fix.find("CONFIG_BPF_SYSCALL") != std::string::npos); // no newer kernel is advised
            if (os == ENOSYS && (check.name == "kprobes" || check.name == "uprobes" || check.name == "tracepoints"))
                CHECK(check.fix.find("CONFIG_PERF_EVENTS") != std::string::npos);
        }
        CHECK(kernel.leaks() == "");
    }
    forget_features();
}
