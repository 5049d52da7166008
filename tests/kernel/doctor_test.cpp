// The doctor's answers against bpftool's, where there is one: two independent ways to ask the same kernel.
//
// They may differ in these, and only these:
//   - program types that want a target: older bpftools (libbpf) count EPERM or a missing target as "not available";
//   - struct_ops and maps of maps: likewise in libbpf before 1.0;
//   - helpers: bpftool asks no tracing, LSM and iterator programs with a real target, so it misses what only those may call
//     (bpf_d_path, bpf_seq_printf ...), and some versions take every refusal for a "yes" in program types that they can't load.
// So: what bpftool has, we must have; and what we have beyond it must come from a program with a target.
#include <cctype>
#include <cstdlib>
#include <set>

#include "asm/helpers.h"
#include "asm/kinds.h"
#include "programs/doctor/doctor.h"
#include "runtime/base/format.h"
#include "runtime/kernel/probes.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {
// What bpftool prints; empty when there is none.
std::string bpftool_features() {
    char path[] = "/tmp/rawbpf-bpftool-XXXXXX";
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    Fd owner(file);
    std::string out;
    auto child = sys::Child::spawn({"sh", "-c", format("bpftool feature probe kernel > {} 2>/dev/null", path)});
    if (child && child->start() && child->wait().value().code == 0) out = sys::read_file(path).value();
    (void)sys::remove_file(path);
    return out;
}
std::string lower(std::string_view name) {
    std::string out(name);
    for (char &c : out) c = static_cast<char>(std::tolower(c));
    return out;
}
} // namespace

TEST_CASE("doctor: agrees with bpftool") {
    if (!has_program_type(static_cast<uint32_t>(ProgramType::KPROBE))) SKIP("needs CAP_BPF and CAP_PERFMON");
    std::string said = bpftool_features();
    if (said.empty()) SKIP("needs bpftool");
    for (uint32_t type = 1; type < kProgramTypeCount; ++type) {
        std::string name = lower(program_type_name(type));
        CAPTURE(name);
        bool ours = probe_program_type(type).support == Support::yes;
        if (said.find(format("program_type {} is available", name)) != std::string::npos) CHECK(ours);
        bool wants_target = name == "tracing" || name == "lsm" || name == "ext" || name == "struct_ops";
        if (!wants_target && said.find(format("program_type {} is NOT available", name)) != std::string::npos) CHECK_FALSE(ours);
    }
    for (uint32_t type = 1; type < kMapTypeCount; ++type) {
        std::string name = lower(map_type_name(type));
        CAPTURE(name);
        bool ours = probe_map_type(type).support == Support::yes;
        if (said.find(format("map_type {} is available", name)) != std::string::npos) CHECK(ours);
        if (name != "struct_ops" && said.find(format("map_type {} is NOT available", name)) != std::string::npos)
            CHECK_FALSE(ours);
    }
    // bpftool lists helpers by program type; those of types that it could ask are sure.
    size_t common = 0;
    for (const HelperInfo &helper : all_helpers()) {
        bool theirs = false;
        for (std::string_view type : {"kprobe", "sched_cls", "xdp", "perf_event", "sk_msg", "sock_ops", "cgroup_sock_addr"}) {
            size_t start = said.find(format("program type {}:", type));
            if (start == std::string::npos) continue;
            size_t end = std::min(said.find("eBPF helpers supported", start), said.size());
            theirs |= said.substr(start, end - start).find(format("- bpf_{}\n", helper.name)) != std::string::npos;
        }
        CAPTURE(helper.name);
        Probed ours = probe_helper(helper.id);
        // libbpf counts a "not allowed" log that it doesn't know as support: then both of ours that could be asked must say no.
        if (theirs && ours.support != Support::unasked) CHECK(ours.support == Support::yes);
        common += theirs && ours.support == Support::yes;
    }
    CHECK(common > 100);
}

TEST_CASE("doctor: looks, and leaves nothing behind") {
    auto before = test::open_descriptors();
    std::vector<doctor::Check> checks = doctor::examine();
    CHECK(test::open_descriptors() == before);
    CHECK(checks.size() > 300);
    for (const doctor::Check &check : checks)
        if (check.ok == false) {
            CAPTURE(check.name);
            CHECK_FALSE(check.fix.empty());
        }
}
