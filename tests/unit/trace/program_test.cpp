// Programs with stacks: every way to walk them makes a program that the builder has nothing against.
#include "programs/trace/program.h"

#include <algorithm>

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;

namespace {

Place place(ProbeKind kind, std::string function) {
    Place out;
    out.kind = kind;
    out.function = std::move(function);
    out.file = is_user_function(kind) ? "/bin/prog" : "";
    out.category = "sched";
    out.signature.known = true; // without parameters
    return out;
}

bool mentions_field(const Unit &unit, std::string_view symbol) {
    return std::any_of(unit.functions.begin(), unit.functions.end(), [&](const Function &f) {
        return std::any_of(f.refs.begin(), f.refs.end(), [&](const Ref &ref) { return ref.symbol == symbol; });
    });
}

} // namespace

TEST_CASE("trace program: stacks by tables, in every kind of program, for every kernel") {
    const std::vector<Place> places = {place(ProbeKind::uprobe, "f"), place(ProbeKind::tracepoint, "sched_switch"),
                                       place(ProbeKind::fentry, "vfs_read"), place(ProbeKind::kprobe, "vfs_write"),
                                       place(ProbeKind::syscall, "openat")};
    for (const bool arm64 : {false, true}) {
        for (const bool bpf_loop : {false, true}) {
            for (const bool return_probes : {false, true}) {
                ProgramOptions options;
                options.stack = true;
                options.filters.own_pid = 1;
                options.unwind.emplace();
                options.unwind->arm64 = arm64;
                options.unwind->has_bpf_loop = bpf_loop;
                options.unwind->has_task_pt_regs = bpf_loop;
                options.unwind->registers_at = return_probes ? 16000 : 0; // 0: not known on this kernel
                options.unwind->return_probes = return_probes;
                options.unwind->depth = 255;
                const Result<TraceUnit> made = trace_unit(places, options, nullptr);
                REQUIRE_MESSAGE(made, made.error().message());
                const auto &maps = made->unit.maps;
                CHECK(std::count_if(maps.begin(), maps.end(), [](const MapDef &m) { return m.name == "unwind_pools"; }) == 1);
                CHECK(mentions_field(made->unit, "return_instance.orig_ret_vaddr") == return_probes);
                for (const Group &group : made->groups) {
                    CHECK(group.layout.user_frames == 255);
                    CHECK(group.layout.size == group.layout.stack + sizeof(StackHead) + 8 * (kMostFrames + 255));
                }
            }
        }
    }
}

TEST_CASE("trace program: stacks by frame pointers have no tables") {
    ProgramOptions options;
    options.stack = true;
    options.filters.own_pid = 1;
    const Result<TraceUnit> made = trace_unit({place(ProbeKind::uprobe, "f")}, options, nullptr);
    REQUIRE_MESSAGE(made, made.error().message());
    CHECK(std::none_of(made->unit.maps.begin(), made->unit.maps.end(),
                       [](const MapDef &m) { return m.name.starts_with("unwind"); }));
    CHECK(made->groups.at(0).layout.user_frames == kMostFrames);
}
