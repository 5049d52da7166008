// The order of things. Programs are loaded, arrays filled and the ring mapped before anything is attached; at the end everything
// is detached first, then the ring is drained and the counters are read: so each jump is in exactly one of them. (Programs that
// joined by pins are detached by whoever attached them; what they do after the end is nobody's.)
//
//      our object                                    an external object
//      custom__generic    <--------- slot 0 -------- prog_array      its fd is held here: the kernel empties an array when its
//      custom_context_map <------- replaces -------- custom_context_map          last user reference goes
//      custom_traces --> us
#include "programs/custom/tracer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <linux/bpf.h>

#include "programs/capture/parse_record.h"
#include "programs/capture/task_state.h"
#include "programs/capture/waiting_threads.h"
#include "programs/custom/program.h"
#include "programs/labels/choice.h"
#include "programs/languages/choice.h"
#include "programs/languages/records.h"
#include "runtime/base/bytes.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/events/ring_reader.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/kernel/stats.h"
#include "runtime/kernel/tail_call.h"
#include "runtime/link/attach.h"
#include "runtime/link/perf_event.h"
#include "runtime/link/tracefs.h"
#include "runtime/link/uprobe_head_start.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/names.h"
#include "runtime/sys/namespaces.h"
#include "runtime/sys/privileges.h"

namespace rawbpf::inline v0::custom {
namespace {

struct KindName {
    ProgramKind kind;
    uint32_t type;
    const char *program;
};
constexpr KindName kKinds[] = {
    {ProgramKind::probe, BPF_PROG_TYPE_KPROBE, "custom__generic"},
    {ProgramKind::perf_event, BPF_PROG_TYPE_PERF_EVENT, "custom__generic_perf_event"},
    {ProgramKind::tracepoint, BPF_PROG_TYPE_TRACEPOINT, "custom__generic_tracepoint"},
};
constexpr const char *kContextMaps[] = {"custom_context_map", "custom_context_by_thread"};
// Of an object that captures by itself (example/custom_trace.h): where its traces go, and what it counts.
constexpr const char *kResultMaps[] = {"custom_traces", "custom_counts"};

const KindName *kind_of_type(uint32_t type) {
    const auto *found = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const KindName &k) { return k.type == type; });
    return found == std::end(kKinds) ? nullptr : found;
}

bool jumps_through(const ProgramSpec &program, size_t map) {
    return std::any_of(program.fixups.begin(), program.fixups.end(),
                       [&](const Fixup &f) { return f.kind == Fixup::Kind::map_fd && f.map == map; });
}

// Where rawbpf puts a generic program: an array that nobody has filled already.
bool is_open_array(const MapSpec &map) { return map.type == BPF_MAP_TYPE_PROG_ARRAY && map.slots.empty(); }

bool is_at_function(Attachment attachment) {
    switch (attachment) {
    case Attachment::uprobe:
    case Attachment::uretprobe:
    case Attachment::uprobe_multi:
    case Attachment::uretprobe_multi:
    case Attachment::kprobe:
    case Attachment::kretprobe:
    case Attachment::kprobe_multi:
    case Attachment::kretprobe_multi: return true;
    default: return false;
    }
}

} // namespace

std::optional<CustomTrace> parse_trace(std::span<const std::byte> record) {
    if (record.size() < sizeof(Record)) return std::nullopt;
    CustomTrace out;
    std::memcpy(&out.head, record.data(), sizeof(Record));
    out.head.comm[sizeof out.head.comm - 1] = '\0';
    const std::optional<RecordStacks> stacks = stacks_of(out.head, record, sizeof(Record));
    if (!stacks) return std::nullopt;
    if (static_cast<uint32_t>(out.head.origin) > static_cast<uint32_t>(Origin::custom)) return std::nullopt;
    out.kernel = stacks->kernel;
    out.user = stacks->user;
    out.language = stacks->language;
    out.labels = stacks->labels;
    out.head.ending &= 0xffff & ~LANGUAGE_UNPROVEN; // without the number of these
    if (out.head.ending & UNWIND_COPIED) out.copy = stacks->rest;
    return out;
}

std::vector<ProgramKind> kinds_of(const ObjectSpec &object) {
    std::vector<ProgramKind> out;
    for (const ProgramSpec &program : object.programs)
        if (const KindName *kind = kind_of_type(program.type);
            kind && program.autoload && std::find(out.begin(), out.end(), kind->kind) == out.end())
            out.push_back(kind->kind);
    return out;
}

struct CustomTracer::State {
    struct External {
        ObjectSpec spec;
        LoadedObject object;
        std::string target;
    };
    // Programs that jump, arrays and generic programs live longer than the links: members are destroyed from the last to the
    // first.
    ObjectSpec spec;
    LoadedObject object;
    std::vector<std::unique_ptr<External>> externals;
    std::unique_ptr<RingReader> ring;
    uint64_t backlog_full = 0; ///< counted in whichever thread moves traces, one at a time
    uint64_t left_out = 0;
    bool thread = false;
    std::optional<RunStats> stats;
    UprobeHeadStart head_start;
    std::vector<Link> links;
    std::vector<PerfEventLink> clocks;
    uint64_t sample_hz = 0;
    bool foreign = false, wants_guard = false, is_guarded = false;
    std::optional<UnwindProgramOptions> unwind;
    std::function<void(Bytes)> take_code, lost_code; ///< the latter in whichever thread moves traces
    std::string no_languages;
    std::vector<std::string> steps, notes, pins, directories;
    uint64_t malformed = 0;
    RunCost cost;

    ~State() {
        for (const std::string &pin : pins) (void)sys::remove_file(pin);
        for (const std::string &directory : directories) (void)sys::remove_directory(directory);
    }
    [[nodiscard]] int map_fd(std::string_view name) {
        const Map *map = object.find_map(name);
        return map ? map->fd() : -1;
    }
    Result<void> load_own(const CustomOptions &options);
    Result<void> fill_arrays(External &external);
    Result<void> attach_external(External &external);
    Result<void> guard();
    Result<void> attach_own(const char *name);
    Result<void> start_clocks();
};

Result<void> CustomTracer::State::load_own(const CustomOptions &options) {
    UnitOptions unit;
    unit.ring_bytes = options.ring_bytes;
    // Programs at uprobes are preempted since 6.0; the exchange came with 5.12, and this one's helper with 5.17.
    unit.exchange = has_feature(Feature::bpf_loop);
    const sys::Namespace ns = sys::own_pid_namespace().value_or(sys::Namespace{});
    unit.pidns_dev = ns.device, unit.pidns_ino = ns.inode;
    {
        sys::Because why("the run time of each program is counted while this is open: its cost goes into the ledger");
        if (auto enabled = RunStats::enable()) stats = std::move(*enabled); // worth no failure
    }
    sample_hz = options.sample_hz;
    unit.off_cpu = options.off_cpu;
    if (unit.off_cpu) {
        unit.off_threads = waiting_threads();
        unit.wide_state = TRY_IN(has_wide_state(), "--off-cpu");
    }
    // In a pid namespace of our own the tracepoint's numbers aren't ours; then whoever reads the traces has to choose.
    if (options.off_cpu && options.follow_only && unit.pidns_ino == 0) unit.forked_child = TRY(forked_child_offset());
    std::string note;
    // Without bpf_loop what a walk keeps lies in one place a CPU, not in a record's. The kernels that have none (before 5.17) run
    // one program of these types at a time on each CPU, and none of the others in it (bpf_prog_active).
    unit.unwind = unwind_options(options.unwind, note);
    if (unit.unwind) unit.unwind->copies = options.copies;
    if (options.languages) unit.languages = walks_languages(unit.unwind, no_languages);
    unit.labels = TRY(choose_labels(options.labels));
    unit.private_stack = unit.labels && has_feature(Feature::private_stack);
    if (unit.off_cpu && (unit.languages || unit.labels))
        unit.off_threads =
            waiting_threads((unit.languages ? kWaitingLanguageBytes : kWaitingBytes) + (unit.labels ? kWaitingLabelBytes : 0));
    LoadOptions which;
    // Programs that capture by themselves need none, but the ring and the counters, which are some program's.
    const std::vector<ProgramKind> kinds = options.kinds.empty() ? std::vector<ProgramKind>{ProgramKind::probe} : options.kinds;
    for (const KindName &kind : kKinds)
        if (std::find(kinds.begin(), kinds.end(), kind.kind) != kinds.end()) which.programs.emplace_back(kind.program);
    if (sample_hz) which.programs.emplace_back("custom_sample");
    which.programs.emplace_back("custom_guard");
    if (unit.off_cpu) which.programs.emplace_back("custom_off_cpu");
    if (unit.forked_child) which.programs.insert(which.programs.end(), {"custom_fork", "custom_exit"});
    for (;;) {
        spec = TRY(object_of(generic_unit(unit)));
        complete_unwind_maps(spec);
        auto loaded = rawbpf::load(spec, which);
        if (loaded) {
            object = std::move(*loaded);
            break;
        }
        if (unit.languages) {
            unit.languages = false;
            no_languages = languages_refused(loaded.error());
            continue;
        }
        if (!unit.unwind) return std::move(loaded).failure();
        if (!goes_without(options.unwind, loaded.error(), note))
            return Unexpected(in_context(std::move(loaded).error(), "unwinding without frame pointers"));
        unit.unwind.reset();
    }
    if (!note.empty()) notes.push_back(std::move(note));
    unwind = unit.unwind;
    const Map *traces = TRY(object.needed_map("custom_traces")), *contexts = TRY(object.needed_map("custom_context_map"));
    {
        sys::Because why("no context waits on any CPU");
        const uint32_t slot = 0;
        std::vector<std::byte> none(contexts->lookup_size());
        for (size_t at = 0; at + 8 <= none.size(); at += 8) std::memcpy(none.data() + at, &kNoContext, 8);
        TRY(contexts->update(&slot, none.data()));
    }
    std::vector<RingBuffer> rings;
    rings.push_back(TRY(RingBuffer::open(traces->fd(), traces->max_entries())));
    const auto refused = [this](Bytes record) {
        if (is_language_code(record) && lost_code) lost_code(record);
        if (language_record(record) == 0) __atomic_fetch_add(&backlog_full, 1, __ATOMIC_RELAXED);
    };
    ring = std::make_unique<RingReader>(std::move(rings), options.backlog, refused, is_language_code);
    thread = options.thread;
    for (const Program &program : object.programs)
        if (program.name.starts_with("custom__generic"))
            steps.push_back(format("loaded {} (program descriptor {})", program.name, program.fd.get()));
    for (const char *name : kContextMaps) steps.push_back(format("made {} (map descriptor {})", name, map_fd(name)));
    return {};
}

Result<void> CustomTracer::State::fill_arrays(External &external) {
    size_t arrays = 0;
    for (size_t i = 0; i < external.spec.maps.size(); ++i) {
        const MapSpec &definition = external.spec.maps[i];
        if (!is_open_array(definition)) continue;
        const Map *array = external.object.find_map(definition.name);
        if (!array) continue;
        const ProgramSpec *jumper = nullptr;
        for (const ProgramSpec &program : external.spec.programs)
            if (jumps_through(program, i) && external.object.find_program(program.name)) jumper = &program;
        if (!jumper) continue;
        const KindName *kind = kind_of_type(jumper->type);
        if (!kind)
            return Unexpected(
                make_error(Errc::invalid_argument,
                           format("program {} ({}) jumps through {}, and there is no generic program of its type, {}",
                                  jumper->name, jumper->section, definition.name, sys::prog_type_name(jumper->type)),
                           "there is one for kprobes and uprobes, one for perf events and one for tracepoints"));
        const Program *generic = object.find_program(kind->program);
        if (!generic) return fail(Errc::internal, "{} wasn't loaded", kind->program);
        TRY_IN(put_program(*array, 0, generic->fd.get(), external.object.find_program(jumper->name), generic), "{}",
               kind->program);
        steps.push_back(format("put {} into {}, slot 0", kind->program, definition.name));
        ++arrays;
    }
    if (arrays == 0)
        return Unexpected(make_error(Errc::invalid_argument,
                                     format("{}: no program of it jumps through a prog array that is empty", external.spec.name),
                                     "define a BPF_MAP_TYPE_PROG_ARRAY and end with bpf_tail_call(ctx, &the_array, 0)"));
    return {};
}

Result<void> CustomTracer::State::attach_external(External &external) {
    size_t before = links.size();
    for (const Program &program : external.object.programs) {
        const SectionKind *kind = find_section_kind(program.section);
        AttachOptions how;
        if (kind && is_at_function(kind->attachment) && program.attach_target.empty()) {
            if (external.target.empty())
                return Unexpected(
                    make_error(Errc::invalid_argument,
                               format("program {} ({}): its section doesn't say where it belongs", program.name, program.section),
                               "name the function: TARGET:FUNCTION, or in the section"));
            how.target = external.target;
        } else if (!attaches_by_itself(program)) {
            notes.push_back(format("program {} ({}) isn't attached: that takes {}", program.name, program.section,
                                   kind ? attachment_needs(kind->attachment) : "another section"));
            continue;
        }
        Link link = TRY_IN(attach_program(external.spec, external.object, program, how), "attaching");
        steps.push_back(format("attached {}", link.what()));
        for (const std::string &note : link.notes()) notes.push_back(note);
        links.push_back(std::move(link));
    }
    if (links.size() == before)
        return fail(Errc::invalid_argument, "{}: none of its programs says where it is to run", external.spec.name);
    return {};
}

Result<void> CustomTracer::State::guard() {
    const Program *program = object.find_program("custom_guard");
    if (!program) return fail(Errc::internal, "no program custom_guard");
    sys::Because why("at each context switch: a context that waits on this CPU is of the thread that leaves");
    Result<Link> link = attach_program(spec, object, *program);
    if (!link) return std::move(link).failure();
    links.push_back(std::move(*link));
    is_guarded = true;
    return {};
}

Result<void> CustomTracer::State::attach_own(const char *name) {
    const Program *program = object.find_program(name);
    if (!program) return {};
    Link link = TRY_IN(attach_program(spec, object, *program), "attaching");
    steps.push_back(format("attached {}", link.what()));
    links.push_back(std::move(link));
    return {};
}

Result<void> CustomTracer::State::start_clocks() {
    const Program *program = object.find_program("custom_sample");
    if (!program) return {};
    sys::Because why("the clock whose ticks are sampled");
    for (int cpu : TRY(online_cpus())) {
        SamplingEvent event;
        event.frequency = sample_hz;
        event.cpu = cpu;
        clocks.push_back(TRY(PerfEventLink::open(event, program->fd.get())));
    }
    for (const PerfEventLink &clock : clocks) TRY(clock.enable());
    steps.push_back(format("sampling {} CPU{} at {} Hz", clocks.size(), clocks.size() == 1 ? "" : "s", sample_hz));
    return {};
}

CustomTracer::CustomTracer(std::unique_ptr<State> state) : state_(std::move(state)) {}
CustomTracer::~CustomTracer() = default;

Result<std::unique_ptr<CustomTracer>> CustomTracer::open(const CustomOptions &options) {
    auto state = std::make_unique<State>();
    state->head_start = UprobeHeadStart::begin();
    TRY(state->load_own(options));
    return std::unique_ptr<CustomTracer>(new CustomTracer(std::move(state)));
}

int CustomTracer::generic_program_fd(ProgramKind kind) const {
    state_->foreign = true; // who asks for it lets others jump
    for (const KindName &one : kKinds)
        if (one.kind == kind)
            if (const Program *program = state_->object.find_program(one.program)) return program->fd.get();
    return -1;
}
LoadedObject &CustomTracer::generic_object() { return state_->object; }
const UnwindProgramOptions *CustomTracer::unwinds() const { return state_->unwind ? &*state_->unwind : nullptr; }
void CustomTracer::tell_codes(std::function<void(std::span<const std::byte>)> take,
                              std::function<void(std::span<const std::byte>)> lost) {
    state_->take_code = std::move(take);
    state_->lost_code = std::move(lost);
}
const std::string &CustomTracer::no_languages() const { return state_->no_languages; }
int CustomTracer::context_map_fd() const {
    state_->wants_guard = true;
    return state_->map_fd("custom_context_map");
}
int CustomTracer::thread_context_map_fd() const { return state_->map_fd("custom_context_by_thread"); }

Result<void> CustomTracer::load_external(ObjectSpec object, const ExternalOptions &options) {
    State &s = *state_;
    LoadOptions load;
    const auto share = [&](const char *name) {
        if (!object.find_map(name)) return false;
        load.replace_maps.emplace_back(name, s.map_fd(name));
        s.steps.push_back(format("{} of {} is ours", name, object.name));
        return true;
    };
    bool shares = false, captures = true;
    for (const char *name : kContextMaps) shares |= share(name);
    for (const char *name : kResultMaps) captures &= share(name);
    shares |= captures;
    if (!shares)
        return Unexpected(
            make_error(Errc::invalid_argument, format("{}: it has neither of the maps for contexts", object.name),
                       "define custom_context_by_thread (hash, u64 -> u64, 10240 entries) or custom_context_map (per-CPU "
                       "array of one u64)"));
    const bool per_cpu = object.find_map(kContextMaps[0]) != nullptr;
    auto external = std::make_unique<State::External>();
    external->target = options.target;
    external->spec = std::move(object);
    external->object = TRY(rawbpf::load(external->spec, load));
    if (!captures) TRY(s.fill_arrays(*external));
    s.wants_guard |= per_cpu;
    s.foreign = true;
    s.externals.push_back(std::move(external));
    return {};
}

Result<void> CustomTracer::add_function(const std::string &target, int argument) {
    State &s = *state_;
    auto external = std::make_unique<State::External>();
    external->target = target;
    external->spec = TRY(object_of(TRY(external_unit(argument))));
    LoadOptions load;
    for (const char *name : {"custom_context_by_thread", "custom_counts"}) load.replace_maps.emplace_back(name, s.map_fd(name));
    external->object = TRY(rawbpf::load(external->spec, load));
    TRY(s.fill_arrays(*external));
    s.externals.push_back(std::move(external));
    return {};
}

Result<void> CustomTracer::pin(const std::string &directory) {
    State &s = *state_;
    const size_t before = s.pins.size();
    const auto all = [&]() -> Result<void> {
        if (Result<void> made = sys::make_directory(directory, 0700); made)
            s.directories.push_back(directory);
        else if (made.error().kind != Errc::busy)
            return made;
        constexpr uint64_t kBpfFileSystem = 0xcafe4a11; // BPF_FS_MAGIC
        if (const Result<uint64_t> magic = sys::file_system_magic(directory); magic && *magic != kBpfFileSystem)
            return Unexpected(make_error(Errc::invalid_argument, format("{} isn't on a bpf file system", directory),
                                         "mount one (mount -t bpf bpf /sys/fs/bpf) and use a path in it"));
        const auto one = [&](int fd, std::string_view name) -> Result<void> {
            const std::string path = format("{}/{}", directory, name);
            TRY_IN(sys::obj_pin(fd, path), "pinning {}", path);
            s.pins.push_back(path);
            s.steps.push_back(format("pinned {}", path));
            return {};
        };
        for (const KindName &kind : kKinds)
            if (const Program *program = s.object.find_program(kind.program)) TRY(one(program->fd.get(), kind.program));
        for (const char *name : kContextMaps) TRY(one(s.map_fd(name), name));
        return {};
    };
    Result<void> done = all();
    if (!done) { // all or nothing
        for (size_t i = before; i < s.pins.size(); ++i) (void)sys::remove_file(s.pins[i]);
        s.pins.resize(before);
        for (const std::string &made : s.directories) (void)sys::remove_directory(made);
        s.directories.clear();
        return done;
    }
    s.wants_guard = s.foreign = true;
    return {};
}

Result<void> CustomTracer::follow(int pid) {
    const Map *wanted = state_->object.find_map("custom_wanted");
    if (!wanted) return {}; // all are let through
    sys::Because why("whose waits are wanted: this process, and what it starts");
    return wanted->put(static_cast<uint32_t>(pid), uint8_t{1});
}

Result<void> CustomTracer::attach() {
    State &s = *state_;
    if (s.thread) s.ring->keep_up();
    TRY(s.attach_own("custom_fork")); // before the first fork
    if (s.wants_guard)
        if (Result<void> guarded = s.guard(); !guarded)
            s.notes.push_back(
                format("contexts in custom_context_map aren't checked to be their thread's: {}", guarded.error().message()));
    for (const std::unique_ptr<State::External> &external : s.externals) TRY(s.attach_external(*external));
    s.head_start = {};
    TRY(s.attach_own("custom_off_cpu"));
    TRY(s.attach_own("custom_exit")); // behind what still asks about a thread that ends
    return s.start_clocks();
}

int CustomTracer::poll_fd() const { return state_->ring->wake_fd(); }
bool CustomTracer::may_sleep() { return state_->ring->may_sleep(); }
uint64_t CustomTracer::waiting() const { return state_->ring->waiting(); }
uint64_t CustomTracer::backlog_full() const { return __atomic_load_n(&state_->backlog_full, __ATOMIC_RELAXED); }
uint64_t CustomTracer::left_out() const { return state_->left_out; }

uint64_t CustomTracer::oldest_ns() const {
    Bytes record;
    return state_->ring->peek(record) && record.size() >= sizeof(Record) ? load<Record>(record.data()).t_ns : 0;
}

size_t CustomTracer::poll(const Reporter &report, size_t limit) {
    return state_->ring->read(
        [&](Bytes record) {
            if (const uint32_t kind = language_record(record); kind != 0) {
                if (kind == LANGUAGE_IS_CODE && state_->take_code) state_->take_code(record);
                return;
            }
            if (const std::optional<CustomTrace> trace = parse_trace(record))
                report(*trace);
            else
                ++state_->malformed;
        },
        limit);
}

Result<void> CustomTracer::finish(const Reporter &report, const std::function<bool()> &go_on) {
    constexpr size_t kBetweenQuestions = 4096;
    State &s = *state_;
    Result<void> stopped;
    {
        sys::Because why("no more traces: when this returns, no CPU runs the programs that were attached here");
        for (const PerfEventLink &clock : s.clocks)
            if (Result<void> done = clock.disable(); !done && stopped) stopped = std::move(done);
        s.clocks.clear(); // closed, the others stop as well
        // From the last to the first: the guard of contexts came before those that leave some, and goes after them.
        while (!s.links.empty()) s.links.pop_back();
    }
    s.ring->stop();
    while (poll(report, kBetweenQuestions) > 0)
        if (go_on && !go_on()) s.left_out += s.ring->read([](Bytes) {});
    for (const std::unique_ptr<State::External> &external : s.externals) s.cost += run_cost(external->object);
    s.stats.reset();
    return stopped;
}

Result<Counts> CustomTracer::counts() const {
    const Map *map = TRY(state_->object.needed_map("custom_counts"));
    sys::Because why("what each CPU counted: with the traces shown it has to add up");
    Counts sum{};
    constexpr size_t kNumbers = sizeof(Counts) / sizeof(uint64_t);
    for (const Counts &cpu : TRY((map->get_per_cpu<uint32_t, Counts>(0)))) {
        uint64_t a[kNumbers], b[kNumbers];
        std::memcpy(a, &sum, sizeof sum);
        std::memcpy(b, &cpu, sizeof cpu);
        for (size_t i = 0; i < kNumbers; ++i) a[i] += b[i];
        std::memcpy(&sum, a, sizeof sum);
    }
    sum.switch_ns = 0;
    return sum;
}

bool CustomTracer::only_own() const { return !state_->foreign; }
bool CustomTracer::guarded() const { return state_->is_guarded; }
uint64_t CustomTracer::malformed() const { return state_->malformed; }
const RunCost &CustomTracer::cost() const { return state_->cost; }
const std::vector<std::string> &CustomTracer::steps() const { return state_->steps; }
const std::vector<std::string> &CustomTracer::notes() const { return state_->notes; }

} // namespace rawbpf::inline v0::custom
