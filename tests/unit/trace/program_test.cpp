// Programs with stacks: every way to walk them makes a program that the builder has nothing against.
#include "programs/trace/program.h"

#include <algorithm>

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;

namespace {

ProbeSite place(ProbeKind kind, std::string function) {
    ProbeSite out;
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
    const std::vector<ProbeSite> places = {place(ProbeKind::uprobe, "f"), place(ProbeKind::tracepoint, "sched_switch"),
                                           place(ProbeKind::fentry, "vfs_read"), place(ProbeKind::kprobe, "vfs_write"),
                                           place(ProbeKind::syscall, "openat")};
    for (const Arch arch : {Arch::x86_64, Arch::arm64, Arch::riscv64}) {
        for (const bool bpf_loop : {false, true}) {
            for (const bool return_probes : {false, true}) {
                ProgramOptions options;
                options.stack = true;
                options.filters.own_pid = 1;
                options.unwind.emplace();
                options.unwind->arch = arch;
                options.unwind->has_bpf_loop = bpf_loop;
                options.unwind->has_task_pt_regs = bpf_loop;
                options.unwind->registers_at = return_probes ? 16000 : 0; // 0: not known on this kernel
                options.unwind->return_probes = return_probes;
                options.unwind->probed_code = bpf_loop;
                options.unwind->depth = 255;
                options.languages = bpf_loop;
                const Result<TraceUnit> made = trace_unit(places, options, nullptr);
                REQUIRE_MESSAGE(made, made.error().message());
                const auto &maps = made->unit.maps;
                CHECK(std::count_if(maps.begin(), maps.end(), [](const MapDef &m) { return m.name == "unwind_pools"; }) == 1);
                CHECK(std::count_if(maps.begin(), maps.end(), [](const MapDef &m) { return m.name.starts_with("language_"); }) ==
                      (bpf_loop ? 3 : 0));
                CHECK(mentions_field(made->unit, "return_instance.orig_ret_vaddr") == return_probes);
                CHECK(mentions_field(made->unit, "task_struct.utask.xol_vaddr") == bpf_loop);
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

TEST_CASE("trace program: a kprobe inside a function is one by itself, as the kernel's way to many takes beginnings only") {
    ProbeSite inside = place(ProbeKind::kprobe, "vfs_read+0x8");
    inside.offset = 8;
    ProgramOptions options;
    options.filters.own_pid = 1;
    const Result<TraceUnit> made = trace_unit({place(ProbeKind::kprobe, "vfs_read"), inside}, options, nullptr);
    REQUIRE_MESSAGE(made, made.error().message());
    REQUIRE(made->groups.size() == 2);
    CHECK(made->groups[0].section == "kprobe.multi");
    CHECK(made->groups[1].section == "kprobe");
    ProbeSite user = place(ProbeKind::uprobe, "f+0x8");
    user.offset = 8;
    user.signature.parameters.resize(8, {"n", {"long", Show::integer, 8, true}});
    const Result<TraceUnit> of_user = trace_unit({user}, options, nullptr);
    REQUIRE_MESSAGE(of_user, of_user.error().message());
    CHECK(of_user->groups.at(0).layout.columns.size() == kRawArguments); // none from the stack
}

TEST_CASE("trace program: execs are told where a function of a program may not return for them") {
    const auto tells = [](ProbeKind kind, bool returns, bool asked) {
        ProgramOptions options;
        options.filters.own_pid = 1;
        options.results = returns;
        options.execs = asked;
        const TraceUnit made = trace_unit({place(kind, "f")}, options, nullptr).value();
        return std::any_of(made.unit.functions.begin(), made.unit.functions.end(),
                           [](const Function &f) { return f.name == "trace_exec"; });
    };
    CHECK(tells(ProbeKind::uprobe, true, true));
    CHECK_FALSE(tells(ProbeKind::uprobe, true, false));
    CHECK_FALSE(tells(ProbeKind::uprobe, false, true));
    CHECK_FALSE(tells(ProbeKind::fentry, true, true));
}

TEST_CASE("trace program: a system call has a number, where calls have no tracepoint each") {
    CHECK(system_call_number("openat", Arch::x86_64) == 257);
    CHECK(system_call_number("openat", Arch::riscv64) == 56);
    CHECK(system_call_number("newfstat", Arch::x86_64) == 5);
    CHECK(system_call_number("fork", Arch::arm64) == -1);
    CHECK(system_call_number("openat", Arch::arm) == -1); // it has a tracepoint of its own
    CHECK(system_call_number("no_such_call") == -1);
    CHECK(system_call_numbers() > 450);
}

TEST_CASE("trace program: system calls by number share what is attached") {
    const auto call = [](std::string name, std::vector<Show> shows) {
        ProbeSite out = place(ProbeKind::syscall, name);
        out.number = system_call_number(name);
        for (Show show : shows) out.signature.parameters.push_back({"x", {"long", show, 8, true}});
        return out;
    };
    if (system_call_number("close") < 0) SKIP("this machine's system calls have a tracepoint each");
    // Records that look alike: a program at each end.
    const std::vector<ProbeSite> alike = {call("close", {Show::integer}), call("umask", {Show::integer})};
    ProgramOptions options;
    options.results = true;
    options.filters.own_pid = 1;
    Result<TraceUnit> made = trace_unit(alike, options, nullptr);
    REQUIRE_MESSAGE(made, made.error().message());
    CHECK(made->groups.size() == 2);
    CHECK(made->jumpers.empty());
    CHECK(made->system_calls.size() == 2);
    // Others: one at each end finds the program, where there are several.
    const std::vector<ProbeSite> unlike = {call("close", {Show::integer}), call("openat", {Show::integer, Show::text}),
                                           call("umask", {Show::integer})};
    made = trace_unit(unlike, options, nullptr);
    REQUIRE_MESSAGE(made, made.error().message());
    CHECK(made->jumpers == std::vector<std::string>{"trace_calls"});
    for (const Group &group : made->groups) {
        CHECK(group.jumped_to == !group.is_result);
        CHECK(group.section == (group.is_result ? "raw_tp/sys_exit" : "raw_tp/sys_enter"));
    }
    for (const auto &[number, entry] : made->system_calls) {
        for (const SystemCall::End &end : {entry.enter, entry.exit}) {
            CHECK(unlike[end.place_and_one - 1].number == number);
            const Group &group = made->groups[end.program];
            CHECK(std::count(group.places.begin(), group.places.end(), end.place_and_one - 1) == 1);
        }
    }
    // A tracepoint is one end of a call.
    const auto tracepoint = [&](const std::string &end, const std::string &name) {
        ProbeSite out = place(ProbeKind::tracepoint, end + name);
        out.category = "syscalls";
        out.number = system_call_number(name);
        out.signature.parameters.push_back({"x", {"long", Show::integer, 8, true}});
        out.offsets = {16};
        return out;
    };
    const std::vector<ProbeSite> ends = {tracepoint("sys_enter_", "close"), tracepoint("sys_exit_", "close"),
                                         tracepoint("sys_exit_", "umask"), call("getpid", {Show::integer})};
    ProgramOptions once = options;
    once.results = false;
    made = trace_unit(ends, once, nullptr);
    REQUIRE_MESSAGE(made, made.error().message());
    REQUIRE(made->groups.size() == 3); // getpid isn't like a tracepoint, which has one end
    CHECK(made->jumpers == std::vector<std::string>{"trace_calls"});
    for (const Group &group : made->groups) {
        const bool exit = ends[group.places.front()].function.starts_with("sys_exit_");
        CHECK(group.section == (exit ? "raw_tp/sys_exit" : "raw_tp/sys_enter"));
        CHECK(group.places.size() == (exit ? 2 : 1));
        CHECK_FALSE(group.is_result);
    }
    for (const auto &[number, entry] : made->system_calls) {
        CHECK((entry.enter.place_and_one != 0) == (int32_t(number) != system_call_number("umask")));
        CHECK((entry.exit.place_and_one != 0) == (int32_t(number) != system_call_number("getpid")));
    }
    // Where they are only counted by their stacks no values are asked for, so all look alike.
    options.stack = true;
    options.counting.emplace();
    made = trace_unit(unlike, options, nullptr);
    REQUIRE_MESSAGE(made, made.error().message());
    CHECK(made->groups.size() == 2);
    CHECK(made->jumpers.empty());
    for (const Group &group : made->groups) {
        CHECK(group.layout.values() == 0);
        CHECK(group.layout.key == sizeof(Header));
    }
}

TEST_CASE("trace: labels are read where they are asked for, and nothing else changes") {
    for (const bool stack : {false, true})
        for (const bool counted : {false, true}) {
            if (counted && !stack) continue;
            ProgramOptions options;
            options.filters.own_pid = 1;
            options.stack = stack;
            if (counted) options.counting.emplace();
            const std::vector<ProbeSite> places = {place(ProbeKind::uprobe, "f")};
            const TraceUnit without = trace_unit(places, options, nullptr).value();
            options.labels.emplace();
            const TraceUnit with = trace_unit(places, options, nullptr).value();
            const auto has_map = [](const TraceUnit &made) {
                return std::any_of(made.unit.maps.begin(), made.unit.maps.end(),
                                   [](const MapDef &map) { return map.name == "label_processes"; });
            };
            CHECK_FALSE(has_map(without));
            CHECK(has_map(with));
            const auto readers = [](const TraceUnit &made) {
                return std::count_if(made.unit.functions.begin(), made.unit.functions.end(),
                                     [](const Function &f) { return f.name == "read_labels"; });
            };
            CHECK(readers(without) == 0);
            CHECK(readers(with) == 1);
            const size_t hashes = counted ? 1 : 0; // what is counted by labels is hashed by them, in a loop's function
            CHECK(with.unit.functions.size() == without.unit.functions.size() + 1 + hashes);
            const Layout &before = without.groups[0].layout, &after = with.groups[0].layout;
            CHECK(before.labels == 0);
            REQUIRE(after.labels != 0);
            CHECK(after.labels % 8 == 0);
            CHECK(after.size == before.size + 8 + LABEL_ROOM_WORDS * 8);
            CHECK((stack ? after.stack == after.labels + 8 + LABEL_ROOM_WORDS * 8 : after.stack == 0));
            options.labels->attributes = false; // of ids alone there are no attributes to make room for
            CHECK(trace_unit(places, options, nullptr).value().groups[0].layout.size == before.size + 8 + 32);
        }
    ProgramOptions counts;
    counts.filters.own_pid = 1;
    counts.mode = Mode::count;
    counts.labels.emplace();
    CHECK(trace_unit({place(ProbeKind::uprobe, "f")}, counts, nullptr).value().unit.functions.size() == 1);
}
