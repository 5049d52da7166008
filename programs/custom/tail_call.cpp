// The kernel's own figure of a test run has whole nanoseconds, and a tail call takes about one (since 5.5 the JIT jumps straight
// to where a constant slot of the array leads). So the clock is ours, around many runs. What else the machine does makes a round
// longer, never shorter: so of each program the shortest of many short rounds counts, taken in turns.
#include "programs/custom/tail_call.h"

#include <algorithm>

#include <linux/bpf.h>

#include "asm/builder.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/tail_call.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::custom {
namespace {

constexpr uint32_t kRuns = 50'000;
constexpr int kRounds = 20;

Result<double> ns_a_run(const Program &program) {
    unsigned char packet[64] = {};
    sys::ProgTestRunAttr attr;
    attr.prog_fd = static_cast<uint32_t>(program.fd.get());
    attr.data_in = sys::reg(packet);
    attr.data_size_in = sizeof packet;
    attr.repeat = kRuns;
    const uint64_t start = sys::monotonic_ns();
    TRY(sys::prog_test_run(attr));
    if (attr.retval != 0) return fail(Errc::internal, "the tail call came back");
    return static_cast<double>(sys::monotonic_ns() - start) / kRuns;
}

} // namespace

Result<double> tail_call_ns() {
    sys::Because why("how long a tail call takes: a program that jumps, and one that doesn't");
    Builder b("tail_call");
    const MapRef array = b.prog_array("array", 1);
    Code &jumper = b.program("socket", "jumper");
    jumper.call(helper::tail_call, r1, array, 0);
    jumper.ret(1); // not reached
    b.program("socket", "empty").ret(0);
    Built built = b.finish();
    if (!built) return fail(Errc::internal, "{}", built.report());
    LoadedObject object = TRY(load(TRY(object_of(*built))));
    const Program &jumps = *object.find_program("jumper"), &empty = *object.find_program("empty");
    TRY(put_program(*object.find_map("array"), 0, empty.fd.get(), &jumps));
    double with = TRY(ns_a_run(jumps)), without = TRY(ns_a_run(empty));
    for (int round = 1; round < kRounds; ++round) {
        with = std::min(with, TRY(ns_a_run(jumps)));
        without = std::min(without, TRY(ns_a_run(empty)));
    }
    return with - without;
}

} // namespace rawbpf::inline v0::custom
