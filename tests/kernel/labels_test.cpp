// What reads threads' contexts passes this kernel's verifier; tests/cli/labels_test.py has what it reads.
#include "programs/labels/read_dsl.h"

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <linux/bpf.h>

#include "programs/capture/counting_dsl.h"
#include "programs/capture/task_state.h"
#include "programs/custom/program.h"
#include "programs/languages/thread_pointer_dsl.h"
#include "programs/profile/off_cpu_dsl.h"
#include "programs/profile/profile_dsl.h"
#include "programs/session/stack_counting.h"
#include "programs/trace/program.h"
#include "programs/unwind/kernel_members.h"
#include "programs/unwind/program.h"
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
            const LabelParts parts{ids, (more & 1) != 0, (more & 2) != 0, false};
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

namespace {

/// The function is verified with each program that calls it, and where the kernel can by itself.
std::vector<LabelParts> all_parts() {
    std::vector<LabelParts> out = {{}, {true, false, false}, {false, false, true}, {true, true, true}};
    for (size_t i = 0; i < 4 && has_feature(Feature::bpf_loop); ++i) {
        out.push_back(out[i]);
        out.back().once = true;
    }
    return out;
}

void check_loads(Result<ObjectSpec> spec, const LoadOptions &which = {}) {
    REQUIRE_MESSAGE(spec, spec.error().message());
    complete_unwind_maps(*spec);
    const Result<LoadedObject> object = load(std::move(*spec), which);
    CHECK_MESSAGE(object, object.error().message() << "\n" << object.error().log);
}

} // namespace

#define NEEDS_LABELS()                                                                                                           \
    if (!has_program_type(BPF_PROG_TYPE_KPROBE)) SKIP("needs CAP_BPF and CAP_PERFMON");                                          \
    if (!has_feature(Feature::ring_buffer)) SKIP("needs ring buffers, 5.8");                                                     \
    if (!knows_thread_pointer(kHostArch)) SKIP("this machine's thread pointer isn't read");                                      \
    if (!kernel_btf()) SKIP("needs the kernel's BTF")

TEST_CASE("labels, load: of events at each kind of place, with stacks and without, sent and counted") {
    NEEDS_LABELS();
    using namespace trace;
    const auto types = kernel_btf();
    std::vector<ProbeSite> places;
    for (const auto &[kind, function] :
         std::initializer_list<std::pair<ProbeKind, const char *>>{{ProbeKind::uprobe, "main"},
                                                                   {ProbeKind::uretprobe, "main"},
                                                                   {ProbeKind::tracepoint, "sched_switch"},
                                                                   {ProbeKind::kprobe, "vfs_read"},
                                                                   {ProbeKind::fentry, "vfs_read"}}) {
        if (kind == ProbeKind::fentry && !has_program_type(BPF_PROG_TYPE_TRACING)) continue;
        ProbeSite place;
        place.kind = kind;
        place.function = function;
        place.file = is_user_function(kind) ? "/proc/self/exe" : "";
        place.category = "sched";
        place.signature.known = true;
        places.push_back(place);
    }
    for (const LabelParts &parts : all_parts())
        for (const ProbeSite &place : places)
            for (const int more : {0, 1, 2}) {
                INFO(parts.ids << parts.attributes << parts.goroutine << parts.once << " " << place.describe() << " " << more);
                trace::ProgramOptions options;
                options.labels = parts;
                options.filters.own_pid = 1;
                options.cookies = has_feature(Feature::cookie);
                options.private_stack = is_user_function(place.kind) && has_feature(Feature::private_stack);
                options.stack = more > 0;
                if (more > 0) options.unwind = probe_unwind();
                if (more == 2 && (!options.unwind->has_bpf_loop || session::why_not_counted())) continue;
                if (more == 2) options.counting.emplace();
                Result<TraceUnit> made = trace_unit({place}, options, types->get());
                REQUIRE_MESSAGE(made, made.error().message());
                Result<ObjectSpec> spec = object_of(made->unit);
                if (spec && options.counting) complete_counting_maps(*spec, options.counting->stacks);
                check_loads(std::move(spec));
            }
}

TEST_CASE("labels, load: of custom traces, their samples and waits") {
    NEEDS_LABELS();
    for (const LabelParts &parts : all_parts()) {
        INFO(parts.ids << parts.attributes << parts.goroutine << parts.once);
        custom::UnitOptions options;
        options.ring_bytes = 1 << 18;
        options.exchange = has_feature(Feature::bpf_loop);
        options.off_cpu = true;
        options.wide_state = has_wide_state().value_or(false);
        options.unwind = probe_unwind();
        options.labels = parts;
        options.private_stack = has_feature(Feature::private_stack);
        check_loads(object_of(custom::generic_unit(options)));
    }
}
