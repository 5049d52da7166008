// What the program at the kernel's exec does, in the emulator, and that there is one for pid namespaces.
#include <cstring>

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
    const UnwindProcess entry{1, 2, 3};
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
    CHECK(spec->programs.size() == 1);
}
