// The program of example_tailcall.bpf.c in the DSL, and a tracer of one's own around it, step by step:
//
//     sudo build/programs/custom/example/custom-example ./test_program:report_trace        in one terminal
//     ./test_program                                                                       in another
//
// It prints each context with its thread and its stack, and ends with its standard input.
// CustomTracer::load_external() would do the steps in the middle by itself; here they are visible.
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "asm/builder.h"
#include "programs/custom/names.h"
#include "programs/custom/tracer.h"
#include "runtime/base/result.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/tail_call.h"
#include "runtime/link/attach.h"
#include "runtime/object/unit_object.h"

using namespace rawbpf;

namespace {

Result<ObjectSpec> external_program() {
    Builder b("example_tailcall");
    const MapRef contexts = b.hash<uint64_t, uint64_t>("custom_context_by_thread", custom::kMostThreads);
    const MapRef programs = b.prog_array("prog_array", 1);
    Code &f = b.program("uprobe", "example");
    const Slot thread = f.stack<uint64_t>("thread"), context = f.stack<uint64_t>("context");
    f.mov(r6, r1);
    f.argument(r1, r6, 1); // wherever this machine passes it
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

Result<void> trace(const char *target) {
    const auto tracer = RAWBPF_TRY(custom::CustomTracer::open({}));
    ObjectSpec spec = RAWBPF_TRY(external_program());
    LoadOptions ours;
    ours.replace_maps = {{"custom_context_by_thread", tracer->thread_context_map_fd()}}; // 1. one map for both
    LoadedObject object = RAWBPF_TRY(load(spec, ours));
    const Program &example = *object.find_program("example");
    RAWBPF_TRY(put_program(*object.find_map("prog_array"), 0, tracer->generic_program_fd(), &example)); // 2. where the jump leads
    AttachOptions where;
    where.target = target;
    Link link = RAWBPF_TRY(attach_program(spec, object, example, where)); // 3. when it happens
    printf("attached %s\n", link.what().c_str());
    fflush(stdout);

    custom::Names names;
    (void)names.following().watch(-1); // without it, what ends early goes without names
    const auto report = [&](const custom::CustomTrace &trace) {
        (void)names.wanted(trace.head); // what processes mapped until then
        printf("context %#llx  thread %u  cpu %u  %s:", static_cast<unsigned long long>(trace.head.context), trace.head.tid,
               trace.head.cpu, trace.head.comm);
        for (const FramePtr &frame : names.name(names.locate(trace)).user)
            printf(" %s", frame->symbol.empty() ? "?" : frame->symbol.c_str());
        putchar('\n');
    };
    for (pollfd input{0, POLLIN, 0};; fflush(stdout)) {
        (void)tracer->poll(report);
        char gone[64];
        if (poll(&input, 1, 50) > 0 && read(0, gone, sizeof gone) <= 0) break;
    }
    RAWBPF_TRY(link.detach());
    return tracer->finish(report);
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "usage: %s FILE:FUNCTION\n", argv[0]), 2;
    const Result<void> done = trace(argv[1]);
    if (done) return 0;
    fprintf(stderr, "%s: %s\n%s\n", argv[0], done.error().message().c_str(), done.error().hint.c_str());
    return 1;
}
