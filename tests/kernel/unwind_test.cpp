// Stacks of code without frame pointers, walked in the kernel.
#include "programs/profile/profile_dsl.h"

#include <linux/bpf.h>

#include "programs/profile/program.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "tests/kernel/profile_workload.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("unwind: load: with bpf_loop, and with a loop that the verifier walks through") {
    if (!has_program_type(BPF_PROG_TYPE_PERF_EVENT)) SKIP("needs perf_event programs");
    if (!has_feature(Feature::ring_buffer)) SKIP("needs ring buffers, 5.8");
    UnwindProgramOptions unwind = probe_unwind();
    for (const bool loop : {true, false}) {
        if (loop && !unwind.has_bpf_loop) continue;
        unwind.has_bpf_loop = loop;
        INFO(loop);
        profile::ProgramOptions options;
        options.config = {1, 1, 0, 0, 0, 0, 0, 0};
        options.unwind = unwind;
        auto spec = profile::program_spec(BpfSource::automatic, options);
        REQUIRE(spec);
        Result<LoadedObject> object = load(std::move(*spec));
        REQUIRE_MESSAGE(object, object.error().message() << object.error().log);
    }
}
