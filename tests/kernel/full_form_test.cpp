// Our own programs in their full form: with all that a run asks for, and all that this kernel has for it. Where one is refused
// the tools go on with less (frame pointers, samples that are sent one by one) and say so, which is right for whoever runs them,
// and hides from every other test that a program has become one that no kernel takes. Here nothing less will do.
//
// First the programs themselves, also as they are for older kernels, then what the tools load by themselves.
#include <algorithm>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include <linux/bpf.h>

#include "programs/capture/counting_dsl.h"
#include "programs/capture/task_state.h"
#include "programs/custom/program.h"
#include "programs/custom/tracer.h"
#include "programs/profile/off_cpu.h"
#include "programs/profile/profiler.h"
#include "programs/profile/program.h"
#include "programs/session/stack_counting.h"
#include "programs/trace/program.h"
#include "programs/trace/tracer.h"
#include "programs/unwind/exec_watch.h"
#include "programs/unwind/kernel_members.h"
#include "programs/unwind/program.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/namespaces.h"
#include "runtime/sys/uapi.h"
#include "tests/kernel/traced.h"
#include "tests/support/profile_in_c.h"
#include "tests/support/test.h"

using namespace rawbpf;

TRACED long rawbpf_full_form(long number) {
    __asm__ volatile("" : : : "memory");
    return number + 1;
}

namespace {

#define NEEDS_PROGRAMS()                                                                                                         \
    if (!has_program_type(BPF_PROG_TYPE_KPROBE)) SKIP("needs CAP_BPF and CAP_PERFMON");                                          \
    if (!has_feature(Feature::ring_buffer)) SKIP("needs ring buffers, 5.8")

struct WalkVariant {
    std::string name;
    UnwindProgramOptions options;
    size_t number = 0;
    bool whole = false; ///< all that this kernel has for it: what the tools load
};

/// What walks there are on this kernel: as it has it, and as older ones do, as far as this one can do that, too.
std::vector<WalkVariant> walks() {
    const UnwindProgramOptions own = probe_unwind();
    const auto types = kernel_btf();
    std::vector<WalkVariant> out;
    const auto add = [&](std::string name, bool each, const std::function<void(UnwindProgramOptions &)> &change) {
        for (const bool through_probes : {false, true}) {
            WalkVariant walk{name, own};
            change(walk.options);
            if (through_probes) {
                if (!types) continue;
                walk.options.return_probes = has_return_instances(**types);
                walk.options.probed_code = has_probed_instructions(**types);
                if (!walk.options.return_probes && !walk.options.probed_code) continue;
                walk.name += ", through probes";
            }
            for (const bool copies : {false, true}) {
                if (!each && copies != through_probes) continue; // else all or nothing
                walk.options.copies = copies;
                out.push_back(walk);
                if (copies) out.back().name += ", with copies";
                out.back().number = out.size();
            }
        }
    };
    add("as the kernel has it", true, [](UnwindProgramOptions &) {});
    out.back().whole = true;
    if (own.has_bpf_loop) add("without bpf_loop", false, [](UnwindProgramOptions &o) { o.has_bpf_loop = false; });
    if (own.has_task_pt_regs && types)
        add("as 5.10 has it", false, [](UnwindProgramOptions &o) {
            o.has_bpf_loop = o.has_task_pt_regs = false;
            o.registers_at = (1 << 14) - 168;
        });
    add("the deepest", false, [](UnwindProgramOptions &o) { o.depth = UNWIND_MAX_FRAMES; });
    return out;
}

/// Beside the whole walk, each with each would take an emulated machine a minute: each walk is seen with a third of all else, and
/// all else with a third of the walks.
bool passed_over(const WalkVariant &walk, size_t other) { return !walk.whole && (walk.number + other) % 3 != 0; }

void check_loads(Result<ObjectSpec> spec, const LoadOptions &options = {}) {
    REQUIRE_MESSAGE(spec, spec.error().message());
    complete_unwind_maps(*spec);
    // As on machines whose kernel reads no unaligned words (riscv64): what is accepted so is accepted everywhere.
    for (ProgramSpec &program : spec->programs) program.flags |= BPF_F_STRICT_ALIGNMENT;
    const Result<LoadedObject> object = load(std::move(*spec), options);
    CHECK_MESSAGE(object, object.error().message() << "\n" << object.error().log);
}

size_t instructions(const Result<ObjectSpec> &spec) {
    size_t count = 0;
    if (spec)
        for (const ProgramSpec &program : spec->programs) count += program.insns.size();
    return count;
}

/// Whose samples, and of which event. Beside the walk it is what the programs differ in.
std::vector<std::pair<std::string, ProfileConfig>> choices() {
    ProfileConfig plain{};
    plain.want_kernel = plain.want_user = plain.skip_idle = 1;
    std::vector<std::pair<std::string, ProfileConfig>> out{{"the whole machine", plain}};
    const auto add = [&](std::string name, const std::function<void(ProfileConfig &)> &change) {
        change(out.emplace_back(std::move(name), plain).second);
    };
    add("processes", [](ProfileConfig &c) { c.filter_pid = PROFILE_PIDS_WANTED; });
    add("all that a process starts, of a name, in a cgroup and a namespace", [](ProfileConfig &c) {
        c.filter_pid = PROFILE_PIDS_LEFT_OUT;
        c.comm[0] = 'x';
        c.filter_cgroup = 1;
        c.pidns_dev = 4;
        c.pidns_ino = 4026531836;
    });
    return out;
}

profile::ProgramOptions for_profile(const ProfileConfig &config, const WalkVariant &walk) {
    profile::ProgramOptions out;
    out.config = config;
    out.threads = 64;
    out.cpus = 2;
    out.ring_bytes = 1 << 20;
    out.unwind = walk.options;
    return out;
}

/// A place of each kind that this kernel has.
std::vector<trace::ProbeSite> places_of_each_kind() {
    using namespace trace;
    const auto place = [](ProbeKind kind, std::string function, std::string category = {}) {
        trace::ProbeSite out;
        out.kind = kind;
        out.function = std::move(function);
        out.file = is_user_function(kind) ? "/proc/self/exe" : "";
        out.category = std::move(category);
        out.signature.known = true; // without parameters
        return out;
    };
    trace::ProbeSite by_number = place(ProbeKind::syscall, "getpgid");
    by_number.number = system_call_number("getpgid");
    REQUIRE(by_number.number > 0);
    std::vector<trace::ProbeSite> places = {
        place(ProbeKind::uprobe, "rawbpf_full_form"), place(ProbeKind::uretprobe, "rawbpf_full_form"),
        place(ProbeKind::tracepoint, "sched_switch", "sched"), place(ProbeKind::raw_tp, "sched_switch"), by_number};
    if (has_program_type(BPF_PROG_TYPE_TRACING)) { // fentry, fexit: else this kernel has no trampolines
        places.push_back(place(ProbeKind::fentry, "vfs_read"));
        places.push_back(place(ProbeKind::fexit, "vfs_read"));
    }
    places.push_back(place(ProbeKind::kprobe, "vfs_read"));
    places.push_back(place(ProbeKind::kretprobe, "vfs_read"));
    return places;
}

trace::ProgramOptions for_trace(const trace::ProbeSite &where, const WalkVariant &walk, bool counted) {
    trace::ProgramOptions out;
    out.stack = true;
    out.filters.own_pid = 1;
    out.cookies = has_feature(Feature::cookie);
    out.sleepable = !counted && probe_attach_type(uapi::BPF_TRACE_UPROBE_MULTI).support == Support::yes;
    out.bpf_loop = walk.options.has_bpf_loop;
    out.private_stack = is_user_function(where.kind) && has_feature(Feature::private_stack);
    out.unwind = walk.options;
    if (counted) out.counting.emplace();
    return out;
}

void check_trace_loads(const trace::ProbeSite &where, const trace::ProgramOptions &options, const btf::Btf &types) {
    Result<trace::TraceUnit> made = trace::trace_unit({where}, options, &types);
    REQUIRE_MESSAGE(made, made.error().message());
    Result<ObjectSpec> spec = object_of(made->unit);
    if (spec && options.counting) complete_counting_maps(*spec, options.counting->stacks);
    check_loads(std::move(spec));
}

} // namespace

TEST_CASE("full form: profile's program, by each walk, sent and counted") {
    NEEDS_PROGRAMS();
    const bool counts = !session::why_not_counted();
    for (const WalkVariant &walk : walks()) {
        INFO(walk.name);
        size_t choice = 0;
        for (const auto &[name, config] : choices()) {
            if (passed_over(walk, choice++)) continue;
            INFO(name);
            for (const bool counted : {false, true}) {
                if (counted && (!counts || !walk.options.has_bpf_loop)) continue;
                INFO(counted);
                profile::ProgramOptions options = for_profile(config, walk);
                if (counted) options.counting.emplace();
                check_loads(profile::program_spec(options));
            }
            profile::ProgramOptions options = for_profile(config, walk); // of events: each fourth hit of a tracepoint
            options.config.skip_idle = 0;
            options.config.every = 4;
            options.config.tracepoint = 1;
            check_loads(profile::program_spec(options));
        }
    }
}

TEST_CASE("full form: the program of profile --off-cpu, by each walk") {
    NEEDS_PROGRAMS();
    if (!kernel_btf()) SKIP("needs the kernel's BTF");
    for (const WalkVariant &walk : walks()) {
        INFO(walk.name);
        size_t choice = 0;
        for (const auto &[name, config] : choices()) {
            if (passed_over(walk, choice++)) continue;
            INFO(name);
            const uint64_t min_wait_ns = config.filter_pid == PROFILE_PIDS_WANTED ? 1'000'000 : 0;
            check_loads(profile::make_off_cpu(min_wait_ns)->spec(for_profile(config, walk)));
        }
    }
}

TEST_CASE("full form: profile's program in C, and what tells of execs") {
    NEEDS_PROGRAMS();
    for (const auto &[name, config] : choices()) {
        INFO(name);
        profile::ProgramOptions options;
        options.config = config;
        check_loads(profile::program_spec(options));
        if (const std::optional<ObjectSpec> in_c = test::profile_in_c()) check_loads(profile::program_spec(*in_c, options));
    }
    check_loads(object_of(unwind::exec_watch_unit(64, std::nullopt)));
    check_loads(object_of(unwind::exec_watch_unit(64, sys::Namespace{4, 4026531836})));
}

TEST_CASE("full form: what the walks differ in is in the programs") {
    NEEDS_PROGRAMS();
    const auto types = kernel_btf();
    if (!types) SKIP("needs the kernel's BTF");
    for (const bool off_cpu : {false, true}) {
        INFO(off_cpu);
        const auto size = [&](const std::function<void(profile::ProgramOptions &)> &change) {
            profile::ProgramOptions options = for_profile(choices()[0].second, {"", probe_unwind()});
            change(options);
            return instructions(off_cpu ? profile::make_off_cpu(0)->spec(options) : profile::program_spec(options));
        };
        const size_t plain = size([](auto &) {});
        CHECK(size([](auto &o) { o.unwind.reset(); }) < plain);
        CHECK(size([](auto &o) { o.unwind->copies = true; }) > plain);
        CHECK(size([](auto &o) { o.unwind->return_probes = true; }) > plain);
        CHECK(size([](auto &o) { o.unwind->probed_code = true; }) > plain);
        if (!off_cpu) CHECK(size([](auto &o) { o.counting.emplace(); }) > plain);
    }
}

TEST_CASE("full form: traces with stacks, at every kind of place, by each walk, sent and counted") {
    NEEDS_PROGRAMS();
    const auto types = kernel_btf();
    if (!types) SKIP("needs the kernel's BTF");
    const std::vector<trace::ProbeSite> places = places_of_each_kind();
    const bool counts = !session::why_not_counted();
    for (const WalkVariant &walk : walks()) {
        INFO(walk.name);
        size_t at = 0;
        for (const trace::ProbeSite &where : places) {
            if (passed_over(walk, at++)) continue;
            INFO(where.describe());
            for (const bool counted : {false, true}) {
                if (counted && (!counts || !walk.options.has_bpf_loop)) continue;
                INFO(counted);
                check_trace_loads(where, for_trace(where, walk, counted), **types);
            }
        }
    }
}

TEST_CASE("full form: groups by stacks, at every kind of place, by the whole walk") {
    NEEDS_PROGRAMS();
    const auto types = kernel_btf();
    if (!types) SKIP("needs the kernel's BTF");
    if (const auto why = session::why_not_counted()) SKIP(*why);
    using namespace trace;
    for (const WalkVariant &walk : walks()) {
        if (!walk.whole) continue;
        INFO(walk.name);
        for (const trace::ProbeSite &where : places_of_each_kind()) {
            INFO(where.describe());
            ProgramOptions options = for_trace(where, walk, true);
            options.mode = Mode::count;
            options.aggregate.emplace();
            options.aggregate->keys = 256; // emulated machines clear memory slowly
            options.aggregate->by = parse_group_keys("comm,stack,pid").value();
            options.aggregate->measures = {parse_measure(Measure::Kind::most, "tid").value(),
                                           parse_measure(Measure::Kind::log2, "pid").value()};
            check_trace_loads(where, options, **types);
        }
    }
}

TEST_CASE("full form: custom traces' programs, by each walk") {
    NEEDS_PROGRAMS();
    for (const WalkVariant &walk : walks()) {
        INFO(walk.name);
        for (const bool follows : {false, true}) {
            if (follows != walk.options.copies && !walk.whole) continue;
            INFO(follows);
            custom::UnitOptions options;
            options.ring_bytes = 1 << 18;
            options.exchange = has_feature(Feature::bpf_loop); // as the tracer has it
            options.off_cpu = true;
            options.wide_state = has_wide_state().value_or(false);
            options.unwind = walk.options;
            if (follows) options.forked_child = 44; // anywhere in the record
            check_loads(object_of(custom::generic_unit(options)));
        }
    }
}

namespace {

/// With these no tool goes on without tables.
constexpr UnwindChoice kByTables{UnwindBy::tables, 64 << 20, 127};

bool speaks_of(const std::vector<std::string> &notes, std::string_view words) {
    return std::any_of(notes.begin(), notes.end(),
                       [&](const std::string &note) { return note.find(words) != std::string::npos; });
}

struct Nobody : Sink {};

} // namespace

TEST_CASE("full form: what profile loads") {
    NEEDS_PROGRAMS();
    struct Event {
        const char *name;
        uint64_t period;
    };
    const bool counts = !session::why_not_counted();
    for (const Delivery delivery : {Delivery::each, Delivery::counted})
        for (const Event &event : {Event{"cpu-clock", 0}, Event{"page-faults", 1}})
            for (const bool whole_machine : {false, true}) {
                CAPTURE(delivery == Delivery::counted);
                CAPTURE(event.name);
                CAPTURE(whole_machine);
                ProfileOptions options;
                options.delivery = delivery;
                options.event = event.name;
                options.period = event.period;
                options.unwind = kByTables.by;
                if (whole_machine)
                    options.duration_s = 3600; // so long that counting is worth it
                else
                    options.workload = {"/bin/true"};
                volatile std::sig_atomic_t stop = whole_machine; // at once
                options.stop = &stop;
                Nobody sink;
                const Result<Outcome> outcome = run_profile(options, sink);
                REQUIRE_MESSAGE(outcome, outcome.error().message() << "\n" << outcome.error().log);
                CHECK_FALSE(speaks_of(outcome->warnings, "by frame pointers"));
                CHECK_FALSE(speaks_of(outcome->warnings, "[uprobes]"));
                if (delivery == Delivery::counted && event.period == 0 && counts)
                    CHECK_MESSAGE(outcome->cost.counting.find("were counted") != std::string::npos, outcome->cost.counting);
            }
}

TEST_CASE("full form: what profile --off-cpu loads") {
    NEEDS_PROGRAMS();
    if (!kernel_btf()) SKIP("needs the kernel's BTF");
    for (const bool whole_machine : {false, true}) {
        CAPTURE(whole_machine);
        ProfileOptions options;
        options.unwind = kByTables.by;
        if (whole_machine)
            options.duration_s = 3600;
        else
            options.workload = {"/bin/true"};
        volatile std::sig_atomic_t stop = whole_machine;
        options.stop = &stop;
        const auto waits = profile::make_off_cpu(0);
        options.off_cpu = waits.get();
        Nobody sink;
        const Result<Outcome> outcome = run_profile(options, sink);
        REQUIRE_MESSAGE(outcome, outcome.error().message() << "\n" << outcome.error().log);
        CHECK_FALSE(speaks_of(outcome->warnings, "by frame pointers"));
        CHECK_FALSE(speaks_of(outcome->warnings, "[uprobes]"));
    }
}

TEST_CASE("full form: what trace --stack loads") {
    NEEDS_PROGRAMS();
    REQUIRE(rawbpf_full_form(1) == 2); // so that the linker keeps it
    for (const char *probe :
         {"uprobe:/proc/self/exe:rawbpf_full_form", "uretprobe:/proc/self/exe:rawbpf_full_form", "syscall:getpgid", "vfs_read"})
        for (const uint32_t stacks : {0u, 8192u}) {
            CAPTURE(probe);
            CAPTURE(stacks);
            trace::TraceOptions options;
            options.probes = {probe};
            options.program.stack = true;
            options.unwind = kByTables;
            options.copies = stacks == 0;
            options.stack_counts = stacks;
            options.match.allow_unwind_risk = true; // nothing throws
            const auto tracer = trace::Tracer::open(options);
            if (!tracer && tracer.error().kind == Errc::unsupported) continue; // no such probes here
            REQUIRE_MESSAGE(tracer, tracer.error().message() << "\n" << tracer.error().log);
            CHECK((*tracer)->unwinds());
            if (!session::why_not_counted()) CHECK_FALSE(speaks_of((*tracer)->notes(), "not counted in the kernel"));
        }
}

TEST_CASE("full form: what trace --by stack loads") {
    NEEDS_PROGRAMS();
    if (const auto why = session::why_not_counted()) SKIP(*why);
    for (const auto &[probe, measured] :
         {std::pair("uprobe:/proc/self/exe:rawbpf_full_form", "tid"), std::pair("syscall:getpgid", "duration")}) {
        CAPTURE(probe);
        CAPTURE(measured);
        trace::TraceOptions options;
        options.probes = {probe};
        options.program.mode = trace::Mode::count;
        options.program.stack = true;
        options.program.aggregate.emplace();
        options.program.aggregate->keys = 256;
        options.program.aggregate->by = trace::parse_group_keys("comm,stack,pid").value();
        options.program.aggregate->measures = {trace::parse_measure(trace::Measure::Kind::log2, measured).value(),
                                               trace::parse_measure(trace::Measure::Kind::least, measured).value()};
        options.unwind = kByTables;
        options.copies = true;
        options.stack_counts = 8192;
        options.match.allow_unwind_risk = true; // nothing throws
        const auto tracer = trace::Tracer::open(options);
        if (!tracer && tracer.error().kind == Errc::unsupported) continue; // no such probes here
        REQUIRE_MESSAGE(tracer, tracer.error().message() << "\n" << tracer.error().log);
        CHECK((*tracer)->unwinds());
        CHECK((*tracer)->counting());
    }
}

TEST_CASE("full form: what custom loads") {
    NEEDS_PROGRAMS();
    custom::CustomOptions options;
    options.unwind = kByTables;
    options.copies = true;
    options.off_cpu = true;
    options.sample_hz = 99;
    const auto tracer = custom::CustomTracer::open(options);
    REQUIRE_MESSAGE(tracer, tracer.error().message() << "\n" << tracer.error().log);
    CHECK((*tracer)->unwinds());
}
