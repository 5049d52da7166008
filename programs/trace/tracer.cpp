// The order of things, which makes the ledger exact: programs are loaded and the ring is mapped before anything is attached; at
// the end everything is detached first, which waits until no CPU runs a program any more, then the ring is drained and the
// counters are read. So each firing is in exactly one of them. What else the kernel has to take down waits until all that is
// told.
#include "programs/trace/tracer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fcntl.h>
#include <linux/bpf.h>

#include "programs/capture/counting_dsl.h"
#include "programs/labels/choice.h"
#include "programs/languages/choice.h"
#include "programs/trace/choose_counting.h"
#include "programs/trace/languages.h"
#include "programs/unwind/kernel_members.h"
#include "runtime/base/fail.h"
#include "runtime/base/long_step.h"
#include "runtime/events/ring_reader.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/kernel/stats.h"
#include "runtime/link/attach.h"
#include "runtime/link/tracefs.h"
#include "runtime/link/uprobe_head_start.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/namespaces.h"
#include "runtime/sys/process.h"
#include "runtime/sys/runnable.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::trace {
namespace {

// The kernel puts an address of its own in the place of that which a function returns to.
bool probes_returns(const std::vector<ProbeSite> &places, const ProgramOptions &program) {
    return std::any_of(places.begin(), places.end(), [&](const ProbeSite &p) {
        return !p.go_call && (p.kind == ProbeKind::uretprobe || (p.kind == ProbeKind::uprobe && program.results));
    });
}

// A function may begin with the nop of a USDT probe. The kernel has one uprobe for all that stands at an address, with one
// semaphore, and refuses (EINVAL) who comes to it with another, or with none.
void share_semaphores(std::vector<ProbeSite> &places) {
    std::map<std::pair<std::string_view, uint64_t>, uint64_t> known;
    for (const ProbeSite &place : places)
        if (place.semaphore != 0) known.emplace(std::pair(std::string_view(place.file), place.address), place.semaphore);
    if (known.empty()) return;
    for (ProbeSite &place : places) {
        if (place.kind != ProbeKind::uprobe && place.kind != ProbeKind::uretprobe) continue;
        if (const auto at = known.find({place.file, place.address}); at != known.end()) place.semaphore = at->second;
    }
}

// A number leads to one place at each end of a call. What `syscall:NAME` doesn't leave to its tracepoints they see by themselves.
void share_numbers(std::vector<ProbeSite> &places) {
    std::set<int32_t> taken;
    for (const ProbeSite &place : places)
        if (place.kind == ProbeKind::syscall) taken.insert(place.number);
    for (ProbeSite &place : places)
        if (place.kind == ProbeKind::tracepoint && taken.contains(place.number)) place.number = -1;
}

// Where the probes of one end of it are.
std::vector<uint64_t> addresses_of(const ProbeSite &place, bool is_result) {
    if (!place.go_call) return {place.address};
    if (is_result) return place.go_call->returns;
    return {place.go_call->entry};
}

} // namespace

struct Tracer::State {
    struct PassedOverPlace {
        uint32_t place;
        Error error;
    };
    TraceOptions options;
    std::vector<ProbeSite> places;
    std::vector<std::string> notes;
    TraceUnit made;
    ObjectSpec spec;
    LoadedObject object;
    std::unique_ptr<RingReader> ring;
    std::shared_ptr<const btf::Btf> kernel; ///< kept: whoever shows events asks for it, too
    std::optional<RunStats> stats;
    uint64_t look_at_stats_ns = 0;
    std::vector<Link> links;
    UprobeHeadStart head_start;                ///< until they are attached
    std::set<std::string> said;                ///< files of which it was said that others are slowed, too
    std::vector<const Group *> calls, results; ///< by place
    std::vector<uint64_t> shown;
    std::vector<uint64_t> backlog_full, left_out; ///< by place; the former in whichever thread moves events, one at a time
    uint64_t malformed = 0;
    bool command_seen = false;
    std::optional<uint32_t> wait_ended_at; ///< the place, once (ends_wait())
    RunCost cost;
    Languages languages;
    std::string no_languages;

    Result<void> read_expressions();
    Result<void> find_places();
    Result<void> load_programs();
    void fill_programs();
    Result<void> attach_group(const Group &group, std::vector<PassedOverPlace> &failed);
    Result<void> attach_one(const Group &group, const Program &program, uint32_t index, uint64_t address,
                            std::vector<PassedOverPlace> &failed);
    void count_lost(Bytes record, std::vector<uint64_t> &at);
    [[nodiscard]] int only_process() const;
    void say_who_else(const std::string &file);
    [[nodiscard]] bool ends_wait(const Event &event);
    void take(Bytes record, const std::function<void(const Event &)> &see);
    void end_measuring();
};

Result<void> Tracer::State::read_expressions() {
    ProgramOptions &program = options.program;
    if (!options.filter.empty()) program.filters.expression = TRY_IN(parse_expression(options.filter), "--filter");
    for (const std::string &shown : options.shows) program.shows.push_back(TRY_IN(parse_path(shown), "--show"));
    // Durations, errors and results in a filter are known at the return, and wanted with the arguments.
    if (needs_pairs(program) && !(program.calls && program.results)) program.pair = true;
    if (program.pair) program.results = true;
    options.match.results |= program.results; // what speaks against probes at returns is asked then
    return {};
}

Result<void> Tracer::State::find_places() {
    LongStep step("finding functions", "probes", options.probes.size());
    std::vector<ProbeSpec> probes;
    for (const std::string &text : options.probes) probes.push_back(TRY(parse_probe(text)));
    const auto of_user = [](const ProbeSpec &probe) { return is_user_function(probe.kind); };
    if (std::any_of(probes.begin(), probes.end(), of_user)) head_start = UprobeHeadStart::begin();
    for (const ProbeSpec &probe : probes) {
        Matched matched = TRY(match_probe(probe, options.match));
        for (ProbeSite &place : matched.places) {
            const auto same = [&](const ProbeSite &other) {
                return other.kind == place.kind && other.function == place.function && other.file == place.file &&
                       other.address == place.address && other.category == place.category;
            };
            // Two globs may describe the same place: once is enough. (Few globs, many places: only neighbours are looked at.)
            if (options.probes.size() > 1 && std::any_of(places.begin(), places.end(), same)) continue;
            places.push_back(std::move(place));
        }
        for (std::string &note : matched.notes) notes.push_back(std::move(note));
        step.advance();
    }
    if (places.empty()) return fail(Errc::not_found, "nothing to trace");
    share_semaphores(places);
    share_numbers(places);
    return {};
}

Result<void> Tracer::State::load_programs() {
    ProgramOptions &program = options.program;
    Filters &filters = program.filters;
    filters.own_pid = static_cast<uint32_t>(sys::own_pid());
    if (const auto ns = sys::own_pid_namespace()) {
        filters.pidns_dev = ns->device;
        filters.pidns_ino = ns->inode;
    }
    if (options.pidns > 0) {
        const auto ns =
            TRY_IN(sys::namespace_of(format("/proc/{}/ns/pid", options.pidns)), "the pid namespace of process {}", options.pidns);
        filters.in_pidns_dev = ns.device;
        filters.in_pidns_ino = ns.inode;
    }
    if (options.mntns > 0)
        filters.mntns = static_cast<uint32_t>(TRY_IN(sys::namespace_of(format("/proc/{}/ns/mnt", options.mntns)),
                                                     "the mount namespace of process {}", options.mntns)
                                                  .inode);
    if (options.workload > 0) filters.workload = static_cast<uint32_t>(options.workload);
    const auto is_system_call = [](const ProbeSite &place) { return place.kind == ProbeKind::syscall; };
    if (filters.workload && filters.most_events && program.results && std::any_of(places.begin(), places.end(), is_system_call))
        ++filters.most_events; // one may be the end of the command's wait: ends_wait()
    if (filters.follows()) filters.child_tid_offset = TRY(forked_child_offset());
    Fd cgroup;
    if (!options.cgroup.empty()) {
        cgroup = TRY_IN(sys::open(options.cgroup, O_RDONLY | O_DIRECTORY), "the cgroup to trace");
        filters.cgroup = true;
    }
    program.cookies = has_feature(Feature::cookie);
    if (program.aggregate) program.aggregate->cpus = static_cast<uint32_t>(TRY(possible_cpu_count()));
    program.bpf_loop = program.mode == Mode::events && has_feature(Feature::bpf_loop);
    program.labels = TRY(choose_labels(options.labels));
    program.private_stack = any_user(places) && has_feature(Feature::private_stack);
    // A program that may wait can't use an array of cgroups (kernel/bpf/verifier.c, check_map_prog_compatibility).
    if (any_user(places) && options.cgroup.empty())
        program.sleepable = probe_attach_type(uapi::BPF_TRACE_UPROBE_MULTI).support == Support::yes;
    {
        sys::Because why("the run time of each program is counted while this is open: its cost an event goes into the ledger");
        if (auto enabled = RunStats::enable()) stats = std::move(*enabled);
    }
    const bool by_number = std::any_of(places.begin(), places.end(), [](const ProbeSite &p) { return p.by_number(); });
    if (filters.expression || filters.mntns || program.mode == Mode::events || program.aggregate || by_number)
        if (Result<std::shared_ptr<const btf::Btf>> found = kernel_btf()) kernel = std::move(*found);
    std::string by_frame_pointers; // why
    if (program.stack) {
        sys::Because why("user stacks are walked by unwind tables, not by frame pointers");
        program.unwind = unwind_options(options.unwind, by_frame_pointers);
        if (program.unwind) {
            program.unwind->return_probes = kernel && has_return_instances(*kernel);
            const bool elsewhere =
                std::any_of(places.begin(), places.end(), [](const ProbeSite &p) { return !is_user_function(p.kind); });
            program.unwind->probed_code = elsewhere && kernel && has_probed_instructions(*kernel);
            // From a copy nobody could tell what stood there.
            program.unwind->copies = options.copies && !probes_returns(places, program);
        }
        if (options.languages) program.languages = walks_languages(program.unwind, no_languages);
    }
    if (options.stack_counts != 0 && program.stack)
        TRY(choose_counting(program, options.stack_counts, options.threads_apart, notes));
    for (;;) {
        made = TRY(trace_unit(places, program, kernel.get()));
        spec = TRY(object_of(made.unit));
        complete_unwind_maps(spec);
        if (program.counting) complete_counting_maps(spec, program.counting->stacks);
        fill_programs();
        Result<LoadedObject> loaded = rawbpf::load(spec);
        if (loaded) {
            object = std::move(*loaded);
            break;
        }
        if (loaded.error().kind == Errc::rejected && !program.by_helper && any_trampoline(places)) {
            program.by_helper = true; // Linux 5.16 and older
            continue;
        }
        if (program.aggregate && program.aggregate->exchanges) { // Linux 5.11 and older, and compilers of other machines
            program.aggregate->exchanges = false;
            continue;
        }
        if (program.languages) {
            program.languages = false;
            no_languages = languages_refused(loaded.error());
            continue;
        }
        if (program.counting && !program.aggregate) {
            program.counting.reset();
            notes.push_back(format("stacks are not counted in the kernel: {}", loaded.error().message()));
            continue;
        }
        if (!program.unwind || !goes_without(options.unwind, loaded.error(), by_frame_pointers))
            return std::move(loaded).failure();
        program.unwind.reset();
    }
    if (!by_frame_pointers.empty()) notes.push_back(std::move(by_frame_pointers));
    for (std::string &note : made.notes) notes.push_back(std::move(note));
    const auto fill = [&](std::string_view name, const std::vector<uint32_t> &values) -> Result<void> {
        Map *map = object.find_map(name);
        for (size_t i = 0; map && i < values.size(); ++i) TRY(map->put(values[i], uint8_t{1}));
        return {};
    };
    TRY(fill("trace_pids", filters.pids));
    TRY(fill("trace_tids", filters.tids));
    TRY(fill("trace_uids", filters.uids));
    if (const Map *map = object.find_map("trace_system_calls"))
        for (const auto &[number, call] : made.system_calls) TRY(map->put(number, call));
    if (cgroup) {
        const uint32_t slot = 0, fd = static_cast<uint32_t>(cgroup.get());
        TRY_IN(object.find_map("trace_cgroup")->update(&slot, &fd), "{} (a cgroup v2 directory is needed)", options.cgroup);
    }
    for (auto *of_places : {&shown, &backlog_full, &left_out}) of_places->resize(places.size());
    if (const Map *events = object.find_map("trace_events")) {
        std::vector<RingBuffer> rings;
        rings.push_back(TRY(RingBuffer::open(events->fd(), events->max_entries())));
        const auto refused = [this](Bytes record) { count_lost(record, backlog_full); };
        ring = std::make_unique<RingReader>(std::move(rings), options.backlog, refused, is_language_code);
    }
    calls.resize(places.size());
    results.resize(places.size());
    for (const Group &group : made.groups)
        for (uint32_t place : group.places)
            if (!group.keeps) (group.is_result ? results : calls)[place] = &group;
    return {};
}

// Where the programs at sys_enter and sys_exit go on.
void Tracer::State::fill_programs() {
    for (MapSpec &map : spec.maps) {
        if (map.name != "trace_programs") continue;
        for (uint32_t i = 0; i < made.groups.size(); ++i)
            if (made.groups[i].jumped_to) map.slots.push_back({i, made.groups[i].program});
    }
}

/// The one process whose calls are wanted, so that only it stops at the probes; -1: there may be several.
int Tracer::State::only_process() const {
    const Filters &filters = options.program.filters;
    if (filters.follows()) return -1;
    if (filters.workload) return static_cast<int>(filters.workload);
    return filters.pids.size() == 1 ? static_cast<int>(filters.pids[0]) : -1;
}

/// The kernel lets a process, or all, stop at a probe. For one that it starts it would have to be told in time.
void Tracer::State::say_who_else(const std::string &file) {
    const Filters &filters = options.program.filters;
    const std::string name = file.substr(file.rfind('/') + 1);
    if (!filters.follows() || name.find(".so") == std::string::npos || !said.insert(file).second) return;
    notes.push_back(
        format("every process that calls these functions of {} is slowed meanwhile, about a microsecond a call: the kernel "
               "limits probes to one process, not to what it starts (--no-children)",
               name));
}

Result<void> Tracer::State::attach_group(const Group &group, std::vector<PassedOverPlace> &failed) {
    const Program *program = object.find_program(group.program);
    if (!program) return fail(Errc::internal, "no program {}", group.program);
    if (group.jumped_to) return {};
    if (places[group.places.front()].by_number()) {
        links.push_back(TRY(attach_program(spec, object, *program)));
        return {};
    }
    const bool multi = group.section.find(".multi") != std::string::npos;
    if (multi) {
        // One link for all places of a file, or of the kernel.
        std::vector<uint32_t> left = group.places;
        while (!left.empty()) {
            const std::string &file = places[left.front()].file;
            AttachOptions how;
            how.target = file;
            how.pass_over = true;
            std::vector<uint32_t> others;
            for (uint32_t index : left) {
                const ProbeSite &place = places[index];
                if (place.file != file) {
                    others.push_back(index);
                    continue;
                }
                for (const uint64_t address : addresses_of(place, group.is_result)) {
                    how.functions.push_back(address ? format("{:#x}", address) : place.function);
                    how.names.push_back(place.function);
                    how.cookies.push_back(index);
                    how.semaphores.push_back(place.semaphore);
                }
            }
            // Without uprobe.multi (the loader has told the kernel no attach type then) they become perf events, see below.
            if (!file.empty() && program->expected_attach_type != 0) how.pid = only_process();
            if (how.pid <= 0) say_who_else(file);
            if (how.functions.empty()) { // functions that don't return
                left = std::move(others);
                continue;
            }
            Result<Link> link = attach_program(spec, object, *program, how);
            if (!link) {
                failed.push_back({left.front(), std::move(link).error()});
            } else {
                for (const std::string &note : link->notes()) notes.push_back(note);
                links.push_back(std::move(*link));
            }
            left = std::move(others);
        }
        return {};
    }
    LongStep step("attaching", "places", group.places.size());
    for (uint32_t index : group.places)
        for (const uint64_t address : addresses_of(places[index], group.is_result)) {
            TRY(attach_one(group, *program, index, address, failed));
            step.advance();
        }
    return {};
}

// A place by itself.
Result<void> Tracer::State::attach_one(const Group &group, const Program &program, uint32_t index, uint64_t address,
                                       std::vector<PassedOverPlace> &failed) {
    const ProbeSite &place = places[index];
    AttachOptions how;
    if (options.program.cookies && place.kind != ProbeKind::fentry && place.kind != ProbeKind::fexit &&
        place.kind != ProbeKind::raw_tp)
        how.cookie = index;
    if (is_user_function(place.kind)) {
        how.target = format("{}:{:#x}", place.file, address), how.semaphore = place.semaphore;
        say_who_else(place.file); // a perf event is limited to an address space, which a command leaves at its exec
    } else if (place.kind == ProbeKind::tracepoint) {
        how.target = format("{}/{}", place.category, place.function);
    } else if (place.kind == ProbeKind::syscall) {
        how.target = format("syscalls/sys_{}_{}", group.is_result ? "exit" : "enter", place.function);
    } else if (place.kind == ProbeKind::kprobe || place.kind == ProbeKind::kretprobe) {
        how.target = place.function;
    }
    Result<Link> link = attach_program(spec, object, program, how);
    if (!link) {
        if (link.error().kind == Errc::permission) return Unexpected(std::move(link).error());
        failed.push_back({index, std::move(link).error()});
        return {};
    }
    for (const std::string &note : link->notes()) notes.push_back(note);
    links.push_back(std::move(*link));
    return {};
}

void Tracer::State::count_lost(Bytes record, std::vector<uint64_t> &at) {
    if (languages.take_lost(record)) return;
    const uint32_t place = record.size() < sizeof(Header) ? UINT32_MAX : load<Header>(record.data()).place;
    if (place < at.size()) // what is malformed is nobody's, and the kernel writes no such thing
        __atomic_fetch_add(&at[place], 1, __ATOMIC_RELAXED);
}

// The return of the system call in which the command waited for its exec, as a copy of rawbpf (sys/process.cpp): its call was
// before the trace, and it isn't the command's. It is the command's first system call, if returns are shown at all.
bool Tracer::State::ends_wait(const Event &event) {
    const Header &header = event.header;
    if (command_seen || options.workload <= 0 || header.tid != static_cast<uint32_t>(options.workload)) return false;
    if (event.place->kind != ProbeKind::syscall) return false;
    command_seen = true;
    return header.what == What::result && header.duration == 0;
}

void Tracer::State::take(Bytes record, const std::function<void(const Event &)> &see) {
    if (languages.take(record)) return;
    Event event;
    if (record.size() < sizeof(Header)) {
        ++malformed;
        return;
    }
    event.header = load<Header>(record.data());
    if (event.header.what == What::exec) {
        if (options.program.execs) see(event);
        return;
    }
    if (event.header.place >= places.size()) {
        ++malformed;
        return;
    }
    const Group *group = (event.header.what == What::result ? results : calls)[event.header.place];
    if (!group || record.size() < group->layout.size) {
        ++malformed;
        return;
    }
    event.place = &places[event.header.place];
    event.layout = &group->layout;
    event.record = record;
    event.language = languages.of(event);
    if (ends_wait(event)) {
        wait_ended_at = event.header.place;
        return;
    }
    ++shown[event.header.place];
    see(event);
}

Tracer::Tracer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tracer::~Tracer() = default;

Result<std::unique_ptr<Tracer>> Tracer::open(const TraceOptions &options) {
    auto state = std::make_unique<State>();
    state->options = options;
    TRY(state->read_expressions());
    TRY(state->find_places());
    TRY(state->load_programs());
    return std::unique_ptr<Tracer>(new Tracer(std::move(state)));
}

const std::vector<ProbeSite> &Tracer::places() const { return state_->places; }
LoadedObject &Tracer::object() const { return state_->object; }
const UnwindProgramOptions *Tracer::unwinds() const {
    const std::optional<UnwindProgramOptions> &unwind = state_->options.program.unwind;
    return unwind ? &*unwind : nullptr;
}
void Tracer::tell_codes(std::function<void(Bytes)> take, std::function<void(Bytes)> lost) {
    state_->languages.tell(std::move(take), std::move(lost));
}
uint64_t Tracer::refused() const { return state_->ring ? state_->ring->refused() : 0; }
const std::string &Tracer::no_languages() const { return state_->no_languages; }
const StackCountingOptions *Tracer::counting() const {
    const std::optional<StackCountingOptions> &counting = state_->options.program.counting;
    return counting ? &*counting : nullptr;
}
void Tracer::counted(uint32_t place, uint64_t more) { state_->shown[place] += more; }
const AggregateOptions *Tracer::aggregate() const {
    const std::optional<AggregateOptions> &aggregate = state_->options.program.aggregate;
    return aggregate ? &*aggregate : nullptr;
}
const GroupLayout *Tracer::group_layout() const { return state_->made.group_layout ? &*state_->made.group_layout : nullptr; }
Result<std::vector<GroupRow>> Tracer::groups() const {
    const Map *map = TRY(state_->object.needed_map("trace_groups"));
    sys::Because why("what the groups of events have come to");
    return read_groups(*map, *aggregate(), *group_layout());
}
const Unit &Tracer::unit() const { return state_->made.unit; }
const std::vector<std::string> &Tracer::notes() const { return state_->notes; }
const RunCost &Tracer::cost() const { return state_->cost; }
uint64_t Tracer::malformed() const { return state_->malformed; }
int Tracer::poll_fd() const { return state_->ring ? state_->ring->wake_fd() : -1; }
uint64_t Tracer::waiting() const { return state_->ring ? state_->ring->waiting() : 0; }

Result<void> Tracer::attach() {
    State &s = *state_;
    const auto follow = [&](const char *name) -> Result<void> {
        if (const Program *program = s.object.find_program(name))
            s.links.push_back(TRY(attach_program(s.spec, s.object, *program)));
        return {};
    };
    if (s.ring && s.options.thread) s.ring->keep_up();
    // What follows forks comes first: the first of them may be the workload's first act. Who was started before is looked up
    // afterwards, so that none is missed that starts in between.
    TRY(follow("trace_fork"));
    if (const Filters &filters = s.options.program.filters; filters.follows() && filters.workload == 0) {
        sys::Because why("what the processes have started before");
        Map *map = s.object.find_map("trace_pids");
        for (int pid : sys::descendants({filters.pids.begin(), filters.pids.end()}))
            TRY(map->put(static_cast<uint32_t>(pid), uint8_t{1}));
    }
    if (const Program *program = s.object.find_program("trace_exec")) // what it tells is a word in the ledger
        if (Result<Link> link = attach_program(s.spec, s.object, *program)) s.links.push_back(std::move(*link));
    LongStep step("attaching", "programs", s.made.groups.size());
    const size_t before = s.links.size();
    std::vector<State::PassedOverPlace> failed;
    for (const Group &group : s.made.groups) {
        TRY(s.attach_group(group, failed));
        step.advance();
    }
    for (const std::string &jumper : s.made.jumpers) TRY(follow(jumper.c_str()));
    s.head_start = {};
    if (s.links.size() == before && !failed.empty()) return Unexpected(std::move(failed.front().error));
    for (const State::PassedOverPlace &one : failed)
        s.notes.push_back(format("skipped {}: {}", s.places[one.place].describe(), one.error.message()));
    // And what forgets a thread last: programs of one tracepoint run in the order of their attachment, and a probe on
    // sched_process_exit is still about a thread that is traced.
    return follow("trace_exit");
}

// Reading the clock twice at each run makes a counted hit half as dear again, on a virtual machine more. So what a run costs is
// measured for the first few thousand.
void Tracer::State::end_measuring() {
    constexpr uint64_t kEnoughRuns = 4096, kEachNs = 20'000'000;
    constexpr size_t kMostPrograms = 64;
    const uint64_t now = sys::monotonic_ns();
    if (now < look_at_stats_ns) return;
    look_at_stats_ns = now + kEachNs;
    uint64_t runs = 0;
    for (size_t i = 0; i < object.programs.size() && i < kMostPrograms; ++i)
        if (const Result<RunCost> spent = run_cost(object.programs[i].fd.get())) runs += spent->runs;
    if (runs >= kEnoughRuns) stats.reset();
}

bool Tracer::may_sleep() { return !state_->ring || state_->ring->may_sleep(); }

uint64_t Tracer::oldest_ns() const {
    Bytes record;
    if (!state_->ring || !state_->ring->peek(record) || record.size() < sizeof(Header)) return 0;
    return load<Header>(record.data()).time;
}

size_t Tracer::poll(const std::function<void(const Event &)> &see, size_t limit) {
    if (state_->stats) state_->end_measuring();
    if (!state_->ring) return 0;
    return state_->ring->read([&](Bytes record) { state_->take(record, see); }, limit);
}

Result<void> Tracer::finish(const std::function<void(const Event &)> &see, const std::function<bool()> &go_on) {
    constexpr size_t kBetweenQuestions = 4096;
    State &s = *state_;
    {
        sys::Because why("no more events: when this returns, no CPU runs the programs any more");
        Link::stop_together(s.links);
    }
    if (s.ring) s.ring->stop();
    while (poll(see, kBetweenQuestions) > 0)
        if (go_on && !go_on()) s.ring->read([&](Bytes record) { s.count_lost(record, s.left_out); });
    s.cost = run_cost(s.object);
    s.stats.reset();
    return {};
}

void Tracer::detach() {
    sys::Because why("tracepoints are taken down one after the other, each after a grace period");
    Link::drop_together(std::exchange(state_->links, {}));
}

Result<std::vector<PlaceCounts>> Tracer::counts() const {
    const State &s = *state_;
    std::vector<PlaceCounts> out(s.places.size());
    const Map *map = TRY(state_->object.needed_map("trace_counts"));
    sys::Because why("what each CPU counted at each place");
    for (uint32_t i = 0; i < out.size(); ++i) {
        for (const Counts &cpu : TRY((map->get_per_cpu<uint32_t, Counts>(i)))) {
            out[i].counts.fired += cpu.fired;
            out[i].counts.filtered += cpu.filtered;
            out[i].counts.sampled_out += cpu.sampled_out;
            out[i].counts.lost += cpu.lost;
        }
        out[i].shown = s.options.program.mode == Mode::count
                           ? out[i].counts.fired - out[i].counts.filtered - out[i].counts.sampled_out - out[i].counts.lost
                           : s.shown[i];
        out[i].backlog_full = __atomic_load_n(&s.backlog_full[i], __ATOMIC_RELAXED);
        out[i].left_out = s.left_out[i];
        if (s.wait_ended_at == i) ++out[i].counts.filtered;
    }
    return out;
}

} // namespace rawbpf::inline v0::trace
