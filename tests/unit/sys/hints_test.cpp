// Hints say what was found out: each is asked for under facts that contradict it.
#include "runtime/sys/hints.h"

#include <cerrno>

#include "runtime/sys/facts.h"
#include "runtime/sys/uapi.h"
#include "tests/support/test.h"

using namespace rawbpf;
using sys::Capability;

namespace {

sys::Facts with(std::initializer_list<Capability> own, bool first = true) {
    sys::Facts facts;
    facts.own = sys::Capabilities{};
    for (Capability one : own) facts.own->effective |= uint64_t{1} << static_cast<unsigned>(one);
    facts.first_user_namespace = first;
    return facts;
}

bool has(const std::string &text, std::string_view words) { return text.find(words) != std::string::npos; }

const sys::Facts kAll =
    with({Capability::bpf, Capability::perfmon, Capability::net_admin, Capability::syslog, Capability::sys_admin});

} // namespace

TEST_CASE("hints: no command tells a process to get the capabilities that it has") {
    for (uint32_t command = 0; command < 64; ++command)
        for (int os : {EPERM, EACCES}) {
            INFO(command, " ", os);
            const std::string all = sys::bpf_hint(command, os, kAll);
            CHECK_FALSE(has(all, "lacks"));
            CHECK_FALSE(has(all, "run as root"));
            CHECK_FALSE(has(all, "setcap"));
            // Without any the same command says which; what it says isn't capabilities' matter stays.
            const std::string none = sys::bpf_hint(command, os, with({}));
            CHECK((none == all || has(none, "lacks CAP_")));
            // Where nothing could be found out, nothing is claimed.
            const std::string unknown = sys::bpf_hint(command, os, {});
            CHECK_FALSE(has(unknown, "lacks"));
            CHECK_FALSE(has(unknown, "this process has "));
        }
    for (int os : {EPERM, EACCES}) {
        CHECK_FALSE(has(sys::perf_hint(os, kAll), "lacks"));
        CHECK(has(sys::perf_hint(os, with({Capability::perfmon})), "this process has CAP_PERFMON"));
        CHECK(has(sys::perf_hint(os, with({Capability::bpf})), "lacks CAP_PERFMON"));
        CHECK_FALSE(has(sys::perf_hint(os, {}), "paranoid"));
    }
}

TEST_CASE("hints: what is named is what is lacking") {
    const std::string one = sys::bpf_hint(BPF_PROG_LOAD, EPERM, with({Capability::bpf}));
    CHECK(has(one, "needs CAP_BPF, CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8), lacks CAP_PERFMON: run as root"));
    CHECK(has(sys::bpf_hint(BPF_PROG_GET_NEXT_ID, EPERM, with({Capability::bpf})), "needs CAP_SYS_ADMIN, lacks CAP_SYS_ADMIN:"));
    CHECK(has(sys::bpf_hint(BPF_PROG_LOAD, EPERM, with({Capability::sys_admin}, false)), "user namespace"));
    sys::Facts strict = with({});
    strict.perf_event_paranoid = 4;
    CHECK(has(sys::perf_hint(EACCES, strict), "or lower perf_event_paranoid, which is 4 now"));
    strict = kAll;
    strict.perf_event_paranoid = 4; // doesn't concern it
    CHECK_FALSE(has(sys::perf_hint(EACCES, strict), "paranoid"));
}

TEST_CASE("hints: hidden addresses, and what isn't below /sys") {
    sys::Facts facts = kAll;
    facts.kptr_restrict = 2;
    CHECK(has(sys::hidden_addresses_hint(facts), "kptr_restrict is 2"));
    CHECK_FALSE(has(sys::hidden_addresses_hint(facts), "CAP_SYSLOG"));
    facts.kptr_restrict = 1;
    CHECK(has(sys::hidden_addresses_hint(facts), "something else"));
    facts = with({});
    facts.kptr_restrict = 1;
    CHECK(has(sys::hidden_addresses_hint(facts), "lacks CAP_SYSLOG"));
}
