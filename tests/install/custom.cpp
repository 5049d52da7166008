// An embedder with a BPF program of its own that jumps into the profiler, with the installed headers and libraries only: five
// calls of a function are five traces, each with its context, the function at its top.
#include <rawbpf/custom.h>
#include <rawbpf/rawbpf.h>

#include <cstdint>
#include <cstdio>

#include <linux/bpf.h>

using namespace rawbpf;

extern "C" [[gnu::noinline, gnu::used]] void custom_consumer(uint64_t id) { __asm__ volatile("" : : "r"(id) : "memory"); }

Result<ObjectSpec> external() {
    Builder b("external");
    MapRef contexts = b.hash<uint64_t, uint64_t>("custom_context_by_thread", custom::kMostThreads);
    MapRef programs = b.prog_array("prog_array", 1);
    Code &f = b.program("uprobe", "external");
    Slot thread = f.stack<uint64_t>("thread"), context = f.stack<uint64_t>("context");
    f.mov(r6, r1);
    f.argument(r1, r6, 1);
    f.store<uint64_t>(context, r1);
    f.call(helper::get_current_pid_tgid);
    f.store<uint64_t>(thread, r0);
    f.call(helper::map_update_elem, contexts, thread, context, BPF_ANY);
    f.if_(r0 == 0, [&] { f.call(helper::tail_call, r6, programs, 0); });
    f.ret(0);
    Built built = b.finish();
    if (!built) return Unexpected(make_error(Errc::internal, built.report()));
    return object_of(*built);
}

Result<int> right() {
    auto tracer = RAWBPF_TRY(custom::CustomTracer::open({}));
    RAWBPF_TRY(tracer->load_external(RAWBPF_TRY(external()), {.target = "/proc/self/exe:custom_consumer"}));
    RAWBPF_TRY(tracer->attach());
    for (uint64_t id = 0x1000; id < 0x1005; ++id) custom_consumer(id);
    uint64_t next = 0x1000;
    int right = 0;
    const auto report = [&](const custom::CustomTrace &trace) {
        right += trace.head.origin == custom::Origin::custom && trace.head.context == next++ && !trace.user.empty() &&
                 trace.user[0] == reinterpret_cast<uintptr_t>(&custom_consumer);
    };
    tracer->poll(report);
    RAWBPF_TRY(tracer->finish(report));
    return right == 5 && RAWBPF_TRY(tracer->counts()).entered == 5 ? 5 : -right;
}

int main() {
    Result<int> traces = right();
    if (!traces) return fprintf(stderr, "custom: %s\n%s\n", traces.error().message().c_str(), traces.error().hint.c_str()), 1;
    return printf("%d custom traces\n", *traces), *traces == 5 ? 0 : 1;
}
