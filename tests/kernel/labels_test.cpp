// What reads threads' contexts passes this kernel's verifier; tests/cli/labels_test.py has what it reads.
#include "programs/labels/read_dsl.h"

#include <linux/bpf.h>

#include "programs/capture/task_state.h"
#include "programs/languages/thread_pointer_dsl.h"
#include "programs/profile/off_cpu_dsl.h"
#include "programs/profile/profile_dsl.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/object/unit_object.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("profile twin, load: with labels, too, of samples and of waits") {
    if (!has_program_type(BPF_PROG_TYPE_PERF_EVENT)) SKIP("needs CAP_BPF");
    if (!has_feature(Feature::ring_buffer)) SKIP("needs ring buffers, 5.8");
    if (!knows_thread_pointer(kHostArch)) SKIP("this machine's thread pointer isn't read");
    if (!kernel_btf()) SKIP("needs the kernel's BTF");
    ProfileConfig config{};
    config.want_kernel = config.want_user = 1;
    config.wakeup_bytes = 1 << 16;
    for (const bool ids : {false, true})
        for (const int more : {0, 1, 2, 3}) {
            INFO(ids << more);
            const LabelParts parts{ids, (more & 1) != 0, (more & 2) != 0};
            auto samples = load(object_of(profile_unit(config, nullptr, nullptr, false, &parts)).value());
            REQUIRE_MESSAGE(samples, samples.error().message() << samples.error().log);
        }
    OffCpuProgram waits;
    waits.config = config;
    waits.wide_state = has_wide_state().value();
    const LabelParts parts{.goroutine = true};
    auto object = load(object_of(off_cpu_unit(waits, nullptr, false, &parts)).value());
    REQUIRE_MESSAGE(object, object.error().message() << object.error().log);
}
