// A tail call by itself: a program that jumps into an empty one, less the empty one, each run a million times by
// BPF_PROG_TEST_RUN.
#include <linux/bpf.h>

#include "asm/builder.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/tail_call.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/choke.h"
#include "tests/bench/bench.h"

using namespace rawbpf;

namespace {

Unit programs() {
    Builder b("tail_call");
    const MapRef array = b.prog_array("array", 1);
    Code &jumper = b.program("socket", "jumper");
    jumper.call(helper::tail_call, r1, array, 0);
    jumper.ret(1); // not reached
    b.program("socket", "empty").ret(0);
    return std::move(*b.finish());
}

double ns_a_run(const Program &program) {
    unsigned char packet[64] = {};
    sys::ProgTestRunAttr attr;
    attr.prog_fd = static_cast<uint32_t>(program.fd.get());
    attr.data_in = sys::reg(packet);
    attr.data_size_in = sizeof packet;
    attr.repeat = 1'000'000;
    const double start = bench::now_ns();
    if (!sys::prog_test_run(attr) || attr.retval != 0) return 1e9; // it fell through
    return (bench::now_ns() - start) / attr.repeat;                // the kernel's own figure has whole nanoseconds
}

} // namespace

int main() {
    Result<LoadedObject> object = load(object_of(programs()).value());
    if (!object) {
        std::printf("tail call\t-\t-\t-\tneeds CAP_BPF\tskipped\n");
        return 0;
    }
    const Program &jumper = *object->find_program("jumper"), &empty = *object->find_program("empty");
    if (const Result<void> put = put_program(*object->find_map("array"), 0, empty.fd.get(), &jumper); !put) return 1;
    (void)ns_a_run(jumper);
    auto [with, without] = bench::in_turns(
        7, [&] { return ns_a_run(jumper); }, [&] { return ns_a_run(empty); });
    const double cost = with.median - without.median;
    bench::row("tail call", "ns", {cost, cost, cost}, bench::Mark::at_most, 30);
}
