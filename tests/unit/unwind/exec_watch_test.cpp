// What the program at the kernel's exec does, in the emulator, and that there is one for pid namespaces.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include <linux/bpf.h>
#include <unistd.h>

#include "programs/unwind/exec_watch.h"
#include "runtime/emulator/machine.h"
#include "runtime/object/unit_object.h"
#include "runtime/unwind/layout.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

template <class T> const uint8_t *bytes(const T &value) { return reinterpret_cast<const uint8_t *>(&value); }

} // namespace

TEST_CASE("unwind exec: an exec takes the process's entry away, and is noted") {
    auto spec = object_of(unwind::exec_watch_unit(64, std::nullopt));
    REQUIRE_MESSAGE(spec, spec.error().message());
    auto machine = emulator::Machine::create(*spec);
    REQUIRE_MESSAGE(machine, machine.error().message());
    emulator::EmulatedMap *processes = nullptr, *when = nullptr;
    for (const auto &map : (*machine)->maps()) {
        if (map->name() == "unwind_processes") processes = map.get();
        if (map->name() == "unwind_execs") when = map.get();
    }
    REQUIRE(processes);
    REQUIRE(when);
    const uint32_t own = static_cast<uint32_t>(getpid()), other = own + 1;
    const UnwindProcess entry{1, 2, 3, 4, 0};
    for (const uint32_t pid : {own, other}) REQUIRE(processes->update(bytes(pid), bytes(entry), BPF_ANY) == 0);
    REQUIRE((*machine)->enter(0));
    const auto ended = (*machine)->run();
    REQUIRE_MESSAGE(ended, ended.error().message());
    CHECK(processes->lookup(bytes(own)) == 0);
    CHECK(processes->lookup(bytes(other)) != 0);
    size_t noted = 0;
    for (uint32_t place = 0; place < 4096; ++place) {
        uint64_t t_ns = 0;
        std::memcpy(&t_ns, reinterpret_cast<const void *>(when->value_at(place)), sizeof t_ns);
        if (t_ns == 0) continue;
        ++noted;
        CHECK(place == own % 4096);
    }
    CHECK(noted == 1);
}

TEST_CASE("unwind exec: in a pid namespace the keys are its numbers") {
    const auto spec = object_of(unwind::exec_watch_unit(64, sys::Namespace{4, 5}));
    REQUIRE_MESSAGE(spec, spec.error().message());
    const std::vector<Insn> &insns = spec->programs.at(0).insns;
    const auto is_call = [](const Insn &insn) { return insn.code == 0x85; };
    const auto call = std::find_if(insns.begin(), insns.end(), is_call);
    REQUIRE(call != insns.end());
    CHECK(call->imm == BPF_FUNC_get_ns_current_pid_tgid);
    const auto set = [&](uint8_t reg) { // to a constant, before that
        const auto found = std::find_if(
            insns.begin(), call, [&](const Insn &insn) { return (insn.code == 0xb7 || insn.code == 0xb4) && insn.dst == reg; });
        return found == call ? -1 : found->imm;
    };
    CHECK(set(1) == 4);
    CHECK(set(2) == 5);
    CHECK(set(4) == sizeof(bpf_pidns_info));
    // Whatever fails ends there, before anything is looked up; and what is loaded is the process's number, not the thread's.
    const auto next = std::find_if(call + 1, insns.end(), is_call);
    CHECK(std::any_of(call + 1, next, [](const Insn &insn) { return insn.code == 0x95; }));
    const auto load = std::find_if(call + 1, next, [](const Insn &insn) { return insn.code == 0x61; });
    REQUIRE(load != next);
    const auto at = [&](size_t member) { // of struct bpf_pidns_info, which r3 pointed to
        const auto added = std::find_if(insns.begin(), call, [](const Insn &insn) { return insn.code == 0x07 && insn.dst == 3; });
        REQUIRE(added != call);
        return added->imm + static_cast<int>(member);
    };
    CHECK(load->off == at(offsetof(bpf_pidns_info, tgid)));
}
