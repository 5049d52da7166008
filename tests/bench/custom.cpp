// What `rawbpf custom` is made of, each by itself: a tail call; the trap of a uprobe, with a program that does nothing; that
// trap with a context stored by thread, the jump, the stacks and the ring. What custom.bench measures as a whole is made of
// these.
#include <linux/bpf.h>

#include "asm/builder.h"
#include "programs/custom/tail_call.h"
#include "programs/custom/tracer.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/loader.h"
#include "runtime/link/attach.h"
#include "runtime/object/unit_object.h"
#include "tests/bench/bench.h"

using namespace rawbpf;

// One each: the traps of all that is attached to a function are made together.
extern "C" [[gnu::noinline, gnu::used]] void rawbpf_bench_bare(uint64_t id) { __asm__ volatile("" : : "r"(id) : "memory"); }
extern "C" [[gnu::noinline, gnu::used]] void rawbpf_bench_empty(uint64_t id) {
    __asm__ volatile("" : : "r"(id), "r"(1) : "memory");
}
extern "C" [[gnu::noinline, gnu::used]] void rawbpf_bench_traced(uint64_t id) {
    __asm__ volatile("" : : "r"(id), "r"(2) : "memory");
}

namespace {

double ns_a_call(void (*function)(uint64_t)) {
    constexpr int kCalls = 20'000;
    const double start = bench::now_ns();
    for (int i = 0; i < kCalls; ++i) function(static_cast<uint64_t>(i));
    return (bench::now_ns() - start) / kCalls;
}

Result<void> measure() {
    Builder b("empty");
    b.program("uprobe", "empty").ret(0);
    const ObjectSpec spec = TRY(object_of(*b.finish()));
    LoadedObject object = TRY(load(spec));
    AttachOptions where;
    where.target = "/proc/self/exe:rawbpf_bench_empty";
    const Link link = TRY(attach_program(spec, object, object.programs[0], where));
    const auto tracer = TRY(custom::CustomTracer::open({}));
    TRY(tracer->add_function("/proc/self/exe:rawbpf_bench_traced"));
    TRY(tracer->attach());
    uint64_t shown = 0;
    const auto traced = [&] {
        const double out = ns_a_call(rawbpf_bench_traced);
        tracer->poll([&](const custom::CustomTrace &) { ++shown; });
        return out;
    };
    (void)traced();
    (void)ns_a_call(rawbpf_bench_empty);
    const auto [all, trap] = bench::in_turns(9, traced, [] { return ns_a_call(rawbpf_bench_empty); });
    bench::row("custom: a call that isn't traced", "ns", bench::repeat(9, [] { return ns_a_call(rawbpf_bench_bare); }));
    bench::row("custom: a uprobe's trap, with an empty program", "ns", trap);
    bench::row("custom: a trap with context, tail call, stacks and ring", "ns", all);
    bench::print_row("custom: so many traces a second at most, one thread", format("{:.0f}", 1e9 / all.median),
                     format("{:.0f}: empty programs", 1e9 / trap.median), "-", "-", "-");
    return {};
}

} // namespace

int main() {
    const Result<double> cost = custom::tail_call_ns();
    if (!cost) {
        bench::skipped("tail call", cost.error().message());
        return 0;
    }
    bench::row("tail call", "ns", {*cost, *cost, *cost}, bench::Mark::at_most, 30);
    if (const Result<void> done = measure(); !done) bench::skipped("custom: a uprobe's trap", done.error().message());
}
