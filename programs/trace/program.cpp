// One program for all places that are alike; what isn't asked for isn't in it.
//
//      r7 = which place        bpf_get_attach_cookie(), where there are several and the kernel has it; else a constant
//      r8 = its counters       ++fired
//      filters                 ... goto filtered:  ++filtered
//      sampling                ... ++sampled_out
//      r9 = a record           bpf_ringbuf_reserve(); none left: ++lost
//      header, arguments, texts
//      bpf_ringbuf_submit()
//
// With --count the program ends behind the filters. Each CPU has counters of its own. Those of uprobes are changed atomically
// nevertheless: their program may be preempted by another task's, between load and store, and so may one day those of system
// calls, whose tracepoints may wait (6.13); other kinds run to their end, and the kernel starts none of them a second time
// meanwhile.
//
// What is asked of both ends of a call at once (a duration, a result with the arguments) makes two programs of it: one at the
// call, which keeps it (emit_pair.cpp) and counts nothing, and one at the return, which is the one described above.
#include "programs/trace/program.h"

#include <algorithm>
#include <map>

#include <linux/bpf.h>

#include "programs/trace/emit.h"
#include "programs/trace/go_values.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::trace {

void bump(const Emitting &e, size_t counter) {
    Code &f = e.f;
    const Mem at = r8 + runtime(counter);
    if (is_user_function(e.place.kind) || e.place.by_number()) {
        f.mov(r1, 1);
        f.atomic_add<uint64_t>(at, r1);
    } else {
        f.load<uint64_t>(r1, at);
        f.add(r1, 1);
        f.store<uint64_t>(at, r1);
    }
}

namespace {

constexpr uint32_t kOpenCalls = 16384; // of all threads
constexpr uint32_t kSlots = 1024;      // threads that are in the middle of a program at once, with ProgramOptions::counting
constexpr uint32_t kMostFamily = 8192; // processes given, and those that they have started before

bool only_result(ProbeKind kind) {
    return kind == ProbeKind::kretprobe || kind == ProbeKind::uretprobe || kind == ProbeKind::fexit;
}
class Maker {
  public:
    Maker(const std::vector<ProbeSite> &places, const ProgramOptions &options, const btf::Btf *kernel)
        : places_(places), o_(options), s_(options, kernel), keep_(keeps(options)) {}

    Result<TraceUnit> make() {
        if (o_.filters.min_duration && !o_.pair)
            return fail(Errc::invalid_argument,
                        "how long a call took is known at its return: not where calls are shown as they begin");
        MapDef counts;
        counts.name = "trace_counts";
        counts.type = BPF_MAP_TYPE_PERCPU_ARRAY;
        counts.key_size = 4;
        counts.value_size = sizeof(Counts);
        counts.max_entries = static_cast<uint32_t>(std::max<size_t>(1, places_.size()));
        s_.counts = s_.b.map(std::move(counts));
        if (o_.mode == Mode::events || o_.counting) s_.ring = s_.b.ringbuf("trace_events", o_.ring_bytes);
        if (o_.stack && o_.unwind) s_.unwinder.emplace(s_.b, *o_.unwind);
        if (s_.unwinder && s_.ring && o_.languages) {
            s_.rings.emplace(*s_.ring);
            s_.languages.emplace(s_.b, LanguageWalk::Programs{.preempted = true, .wakes = true});
        }
        if (s_.ring && o_.labels) s_.labels.emplace(s_.b, *o_.labels);
        if (o_.counting) {
            s_.counting.emplace(s_.b, *o_.counting);
            s_.slots = s_.b.map(slots(BPF_MAP_TYPE_HASH, "trace_slots", kSlots));
            s_.blank = s_.b.map(slots(BPF_MAP_TYPE_ARRAY, "trace_blank", 1));
        }
        if (o_.filters.follows() && o_.filters.workload == 0)
            s_.pids = s_.b.hash<uint32_t, uint8_t>("trace_pids", kMostFamily);
        else
            add_set(s_.pids, "trace_pids", o_.filters.pids);
        add_set(s_.tids, "trace_tids", o_.filters.tids);
        add_set(s_.uids, "trace_uids", o_.filters.uids);
        if (o_.filters.cgroup) s_.cgroup = s_.b.cgroup_array("trace_cgroup", 1);
        if (o_.filters.most_events) s_.written = s_.b.array<uint64_t>("trace_written", 1);
        if (keep_) {
            s_.depths = s_.b.lru_hash<CallKey, uint32_t>("trace_depth", kOpenCalls);
            s_.open_calls = s_.b.lru_hash<OpenKey, OpenCall>("trace_open", kOpenCalls);
        }
        if (o_.filters.follows()) {
            s_.tracees = s_.b.hash<uint32_t, uint8_t>("trace_tracees", 65536);
            follow_forks(s_);
        }
        if (o_.mode == Mode::events && s_.kernel && may_show_paths()) {
            if (Result<PathOffsets> offsets = path_offsets(*s_.kernel)) s_.paths = *offsets;
            if (Result<FileOffsets> offsets = file_offsets(*s_.kernel)) s_.files = *offsets;
        }
        if (o_.filters.mntns) {
            if (!s_.kernel) return fail(Errc::unsupported, "mount namespaces are found through the kernel's BTF");
            s_.namespaces = TRY(namespace_offsets(*s_.kernel));
        }
        TRY(group_places());
        prepare_system_calls();
        if (o_.aggregate) TRY(prepare_groups());
        for (Group &group : out_.groups) TRY(program(group));
        if (tells_execs()) tell_execs(s_);
        Built built = s_.b.finish();
        if (!built) return fail(Errc::internal, "the trace program: {}", built.report());
        out_.unit = std::move(*built);
        return std::move(out_);
    }

  private:
    // A call has to be kept also where its return may only be seen if it was let through itself.
    static bool keeps(const ProgramOptions &o) {
        return o.pair || (o.calls && o.results && (o.filters.expression || o.filters.one_in > 1));
    }

    // Where the kernel keeps its paths is looked up among all its types, 5 ms of a start that takes 10.
    [[nodiscard]] bool may_show_paths() const {
        const auto is_path = [](const Parameter &p) {
            return p.type.show == Show::file || p.type.show == Show::path || p.type.show == Show::dentry ||
                   p.type.show == Show::descriptor;
        };
        return !o_.shows.empty() || std::any_of(places_.begin(), places_.end(), [&](const ProbeSite &place) {
            const std::vector<Parameter> &parameters = place.signature.parameters;
            return std::any_of(parameters.begin(), parameters.end(), is_path);
        });
    }

    void add_set(std::optional<MapRef> &map, std::string_view name, const std::vector<uint32_t> &values) {
        if (values.size() > 1) map = s_.b.hash<uint32_t, uint8_t>(std::string(name), static_cast<uint32_t>(values.size()));
    }

    // --- Which places share a program

    Result<void> group_places() {
        std::map<std::string, size_t> by_key;
        bool one_end = false;
        for (uint32_t i = 0; i < places_.size(); ++i) {
            const ProbeSite &place = places_[i];
            const bool result = only_result(place.kind) || (has_two_ends(place.kind) && o_.results);
            const bool call = !only_result(place.kind) && o_.calls && (!o_.pair || !has_two_ends(place.kind));
            one_end |= !has_two_ends(place.kind);
            if (o_.pair && result)
                TRY(add(by_key, i, false, true));
            else if (call)
                TRY(add(by_key, i, false, false));
            if (result) TRY(add(by_key, i, true, false));
        }
        if (out_.groups.empty() || (one_end && (o_.filters.min_duration || o_.filters.errors)))
            return Unexpected(make_error(Errc::invalid_argument,
                                         "tracepoints and USDT probes have no returns: neither results nor durations",
                                         "syscall:NAME has both ends of a system call"));
        for (size_t i = 0; i < out_.groups.size(); ++i) out_.groups[i].program = format("trace_{}", i);
        for (size_t i = 0; i < o_.shows.size(); ++i) {
            if (shown_.size() <= i || !shown_[i].any) return Unexpected(shown_[i].error);
            if (shown_[i].missing)
                out_.notes.push_back(format("{} isn't shown at {} of {} places: {}", o_.shows[i].source, shown_[i].missing,
                                            places_.size(), first_line(shown_[i].error.message())));
        }
        return {};
    }
    static std::string first_line(const std::string &text) { return text.substr(0, text.find('\n')); }

    Result<void> add(std::map<std::string, size_t> &by_key, uint32_t index, bool is_result, bool keeps_call) {
        const ProbeSite &place = places_[index];
        Group group;
        group.kind = place.kind;
        group.is_result = is_result;
        group.keeps = keeps_call;
        group.section = section(place, is_result);
        group.layout = layout(place, is_result);
        std::string key = shares(place) ? group.section : format("{} {}", group.section, index);
        key += is_result ? " return" : " call";
        if (place.by_number()) append(key, " {}", probe_kind_name(place.kind));
        if (o_.goroutines && place.go) key += " go";
        const bool by_columns = (o_.mode == Mode::events && !o_.counting) || keep_;
        if (by_columns || by_expressions()) {
            append(key, " {}", group.layout.columns.size());
            for (const Blob &blob : group.layout.blobs) append(key, " {}:{}:{}", blob.column, int(blob.show), blob.capacity);
        }
        if (by_expressions() || !o_.shows.empty()) // names may stand for different things at different functions
            for (const Parameter &p : place.signature.parameters) append(key, " {} {} {}", p.name, p.type.name, p.type.size);
        if (by_columns || by_expressions())
            for (const usdt::Argument &argument : place.arguments) // each site has its own instructions
                append(key, " {}+{}", argument.spec, argument.location.displacement);
        if (place.go_call)
            for (const std::vector<GoWord> *words : {&place.go_call->arguments, &place.go_call->results})
                for (const GoWord &word : *words) append(key, " {}:{}:{}", int(word.in), word.at, word.size);
        if (is_result) append(key, " returns {}", place.signature.known ? int(place.signature.returns.size) : 0);
        if (has_record(place.kind) && !place.by_number() && (by_columns || by_expressions()))
            for (size_t i = 0; i < place.offsets.size(); ++i)
                append(key, " {}+{}", place.offsets[i], place.signature.parameters[i].type.size);
        const auto [at, is_new] = by_key.emplace(std::move(key), out_.groups.size());
        if (is_new) out_.groups.push_back(std::move(group));
        out_.groups[at->second].places.push_back(index);
        return {};
    }

    /// What the program does depends on what names stand for at a place.
    [[nodiscard]] bool by_expressions() const { return o_.filters.expression || o_.aggregate; }

    Result<void> prepare_groups() {
        std::vector<const ProbeSite *> places;
        for (const Group &group : out_.groups)
            if (!group.keeps) places.push_back(&places_[group.places.front()]);
        out_.group_layout = TRY(group_layout(places, *o_.aggregate, s_.kernel));
        s_.group_layout = &*out_.group_layout;
        make_group_maps(s_);
        return {};
    }

    [[nodiscard]] bool shares(const ProbeSite &place) const {
        const ProbeKind kind = place.kind;
        if (place.by_number()) return true;
        return o_.cookies && kind != ProbeKind::fentry && kind != ProbeKind::fexit && kind != ProbeKind::raw_tp;
    }
    [[nodiscard]] bool sleeps(const ProbeSite &place, bool is_result) const { // where something is read
        return o_.sleepable && is_user_function(place.kind) && (is_result == o_.pair || (is_result && place.go_call));
    }

    [[nodiscard]] std::string section(const ProbeSite &place, bool is_result) const {
        if (place.by_number()) return raw_section(place.at_sys_exit(is_result));
        const std::string_view multi = o_.multi && o_.cookies ? ".multi" : "";
        switch (place.kind) {
        case ProbeKind::uprobe:
        case ProbeKind::uretprobe:
        case ProbeKind::usdt:
            return format("{}{}{}", is_result && !place.go_call ? "uretprobe" : "uprobe", multi,
                          sleeps(place, is_result) ? ".s" : "");
        case ProbeKind::fentry:
        case ProbeKind::fexit: return format("{}/{}", is_result ? "fexit" : "fentry", place.function);
        case ProbeKind::tracepoint:
            return shares(place) ? "tracepoint" : format("tracepoint/{}/{}", place.category, place.function);
        case ProbeKind::raw_tp: return format("raw_tp/{}", place.function);
        case ProbeKind::syscall:
            return shares(place) ? "tracepoint"
                                 : format("tracepoint/syscalls/sys_{}_{}", is_result ? "exit" : "enter", place.function);
        default: return format("{}{}", is_result ? "kretprobe" : "kprobe", place.offset ? "" : multi);
        }
    }

    // --- System calls by number

    static const char *raw_section(bool at_exit) { return at_exit ? "raw_tp/sys_exit" : "raw_tp/sys_enter"; }
    [[nodiscard]] bool at_sys_exit(const Group &group) const {
        return places_[group.places.front()].at_sys_exit(group.is_result);
    }

    void prepare_system_calls() {
        std::vector<uint32_t> ends[2]; // groups: at sys_enter, at sys_exit
        for (uint32_t i = 0; i < out_.groups.size(); ++i)
            if (const Group &group = out_.groups[i]; places_[group.places.front()].by_number())
                ends[at_sys_exit(group)].push_back(i);
        if (ends[0].empty() && ends[1].empty()) return;
        s_.system_calls = s_.b.array<SystemCall>("trace_system_calls", system_call_numbers());
        if (s_.kernel && kHostArch == Arch::x86_64) {
            const Result<uint32_t> info = member_offset(*s_.kernel, "task_struct", "thread_info"),
                                   status = member_offset(*s_.kernel, "thread_info", "status");
            if (info && status) s_.task_status = *info + *status;
        }
        std::map<int32_t, SystemCall> calls;
        for (const bool at_exit : {false, true})
            for (const uint32_t group : ends[at_exit])
                for (const uint32_t place : out_.groups[group].places) {
                    SystemCall &call = calls[places_[place].number];
                    (at_exit ? call.exit : call.enter) = {place + 1, group};
                }
        out_.system_calls.assign(calls.begin(), calls.end());
        if (ends[0].size() <= 1 && ends[1].size() <= 1) return;
        s_.programs = s_.b.prog_array("trace_programs", static_cast<uint32_t>(out_.groups.size()));
        for (const bool at_exit : {false, true})
            if (ends[at_exit].size() > 1) jump_by_number(at_exit, ends[at_exit]);
    }

    void jump_by_number(bool at_exit, const std::vector<uint32_t> &groups) {
        for (const uint32_t group : groups) out_.groups[group].jumped_to = true;
        const char *name = at_exit ? "trace_returns" : "trace_calls";
        Code &f = s_.b.program(raw_section(at_exit), name);
        const Slot key = f.stack<uint32_t>("number"), slot = f.stack<uint64_t>("slot");
        const Label out = f.label("out");
        f.mov(r6, r1);
        find_system_call(s_, f, at_exit, key, out);
        f.load<uint32_t>(r1, r0 + offsetof(SystemCall::End, program));
        f.store<uint64_t>(slot, r1);
        pass_compat_over(s_, f, out);
        f.load<uint64_t>(r3, slot);
        f.call(helper::tail_call, r6, *s_.programs, r3);
        f.bind(out);
        f.ret(0);
        out_.jumpers.emplace_back(name);
    }

    // --- What a record has

    [[nodiscard]] uint32_t arguments(const ProbeSite &place) const {
        if (place.go_call) return go_arguments(place);
        auto count = place.signature.known ? static_cast<uint32_t>(place.signature.parameters.size()) : kRawArguments;
        // Of a call that is kept there is room for some, and inside of a function nobody knows where they lie.
        const bool on_stack = place.kind == ProbeKind::uprobe && !o_.pair && place.offset == 0;
        if (has_registers(place.kind) || o_.pair) count = std::min(count, on_stack ? kMostArguments : kRawArguments);
        return count;
    }

    // Which word of the results is an error's, if one of them is.
    [[nodiscard]] static std::optional<uint32_t> go_error(const ProbeSite &place) {
        if (!place.go_call) return std::nullopt;
        const std::vector<Parameter> &returned = place.go_call->returned;
        for (uint32_t i = 0; i < returned.size(); ++i)
            if (returned[i].type.show == Show::go_interface && returned[i].type.name == "error") return i;
        return std::nullopt;
    }

    void go_results(Layout &out, const ProbeSite &place) {
        const GoCall &call = *place.go_call;
        for (uint32_t i = 0; i < call.returned.size(); ++i) {
            if (call.returned[i].is_length) continue;
            Column column;
            column.name = call.returned[i].name.empty() ? "ret" : call.returned[i].name;
            column.value.from = Value::From::result;
            column.value.argument = i;
            column.value.type = call.returned[i].type;
            out.columns.push_back(std::move(column));
            ++out.results;
        }
    }

    // All words of those that are shown.
    [[nodiscard]] uint32_t go_arguments(const ProbeSite &place) const {
        const std::vector<Parameter> &parameters = place.signature.parameters;
        auto count = static_cast<uint32_t>(place.go_call->arguments.size());
        if (!keep_ || count <= kRawArguments) return count;
        count = kRawArguments;
        while (count > 0 && count < parameters.size() && parameters[count].is_length) --count;
        return count;
    }

    [[nodiscard]] Layout layout(const ProbeSite &place, bool is_result) {
        Layout out;
        out.is_result = is_result;
        const bool with_arguments = !is_result || o_.pair || place.kind == ProbeKind::fexit || place.kind == ProbeKind::fentry;
        for (uint32_t i = 0; with_arguments && i < arguments(place); ++i) {
            if (i < place.signature.parameters.size() && place.signature.parameters[i].is_length) continue;
            Column column;
            column.value.argument = i;
            if (i < place.signature.parameters.size()) column.value.type = place.signature.parameters[i].type;
            out.columns.push_back(std::move(column));
        }
        if (o_.goroutines && place.go) {
            Column column;
            column.name = "goroutine";
            column.value.from = Value::From::goroutine;
            column.value.type = {"u64", Show::integer, 8, false};
            out.columns.push_back(std::move(column));
        }
        for (size_t i = 0; i < o_.shows.size(); ++i) show(out, place, is_result, with_arguments, i);
        if (o_.counting) return counted_layout();
        if (place.go_call && is_result) go_results(out, place);
        out.goroutine = place.go_call && place.go_call->goroutine;
        out.size += out.values() * 8;
        for (uint32_t i = 0; i < out.columns.size(); ++i) {
            Column &column = out.columns[i];
            const Type &type = column.value.type;
            const uint16_t capacity = blob_capacity(place, column.value);
            if (capacity == 0) continue;
            column.blob = static_cast<int32_t>(out.blobs.size());
            out.blobs.push_back({i, type.show, static_cast<uint16_t>(out.size), capacity});
            out.size += 4u + capacity;
            out.size = (out.size + 7) & ~7u;
        }
        add_labels(out);
        if (o_.stack) add_stacks(out);
        return out;
    }

    void add_labels(Layout &out) const {
        if (!s_.labels) return;
        out.labels = out.size;
        out.size += static_cast<uint32_t>(sizeof(uint64_t)) + o_.labels->room();
    }

    void add_stacks(Layout &out) const {
        out.stack = out.size;
        if (o_.unwind) out.user_frames = std::max<uint32_t>(o_.unwind->depth, 127); // what Unwinder::WalkPlace::room asks for
        out.size += static_cast<uint32_t>(sizeof(StackHead)) + (kMostFrames + out.user_frames) * 8;
    }

    // Of an event that is only counted.
    [[nodiscard]] Layout counted_layout() const {
        Layout out;
        out.key = out.size;
        out.size += sizeof(uint64_t);
        add_labels(out);
        add_stacks(out);
        return out;
    }
    [[nodiscard]] MapDef slots(uint32_t type, const char *name, uint32_t entries) const {
        MapDef out;
        out.name = name;
        out.type = type;
        out.key_size = sizeof(uint32_t);
        out.value_size = counted_layout().size;
        out.max_entries = entries;
        return out;
    }

    // One column of --show, where this end of this place has it.
    void show(Layout &out, const ProbeSite &place, bool is_result, bool with_arguments, size_t index) {
        if (shown_.size() <= index) shown_.resize(index + 1);
        Shown &state = shown_[index];
        const Expression &expression = o_.shows[index];
        const Node &name = expression.nodes[expression.root];
        Result<Value> value = resolve_value(expression, name, place, s_.kernel);
        if (!value) {
            state.error = std::move(value).error();
            state.missing += is_result == (o_.pair || only_result(place.kind)); // once a place
            return;
        }
        state.any = true;
        if (value->from == Value::From::argument && !with_arguments) return;
        if (value->from == Value::From::result && !is_result) return;
        if (value->from == Value::From::duration && !(is_result && keep_)) return;
        Column column;
        column.name = expression.source;
        column.value = std::move(*value);
        out.columns.push_back(std::move(column));
    }

    [[nodiscard]] uint16_t blob_capacity(const ProbeSite &place, const Value &value) const {
        if (value.from != Value::From::argument && value.from != Value::From::result && value.from != Value::From::comm) return 0;
        switch (value.type.show) {
        case Show::text:
        case Show::counted:
        case Show::data_text: return o_.text_bytes;
        case Show::go_slice:
            if (value.type.element == Show::counted) return go_strings_capacity(o_.text_bytes);
            return go_capacity(8);
        case Show::go_interface:
        case Show::go_any: return go_capacity(kGoInterfaceText);
        case Show::characters: return static_cast<uint16_t>(std::min<uint32_t>(value.type.length, o_.text_bytes));
        case Show::sockaddr: return kSockaddrBytes;
        case Show::descriptor:
            return s_.paths && s_.files && place.kind != ProbeKind::tracepoint && value.reads.empty() ? kPathCapacity : 0;
        case Show::file:
        case Show::path:
        case Show::dentry: return s_.paths ? kPathCapacity : 0;
        default: return 0;
        }
    }

    [[nodiscard]] uint16_t go_capacity(uint32_t head) const {
        return static_cast<uint16_t>(std::min<uint32_t>(UINT16_MAX - 7, head + std::max<uint32_t>(o_.text_bytes, 8)));
    }

    // --- The program

    Result<void> program(Group &group) {
        const ProbeSite &place = places_[group.places.front()];
        const Filters &filters = o_.filters;
        Code &f = s_.b.program(group.section, group.program);
        const Slot key = f.stack<uint32_t>("place"), ids = f.stack<uint64_t>("ids"), comm = f.stack(16, 8, "comm"),
                   scratch = f.stack<uint64_t>("scratch"), path = f.stack(16, 8, "path");
        Emitting e{f, s_, place, group.is_result, ids, comm, scratch, path};
        e.sleepable = sleeps(place, group.is_result);
        if (place.go_call || place.signature.parameters.size() > kRawArguments) e.word = f.stack<uint64_t>("word");
        const Label out = f.label("out"), filtered = f.label("filtered");

        f.mov(r6, r1);
        if (o_.private_stack && is_user_function(place.kind)) stay_on_own_stack(f);
        if (place.by_number() && !(group.jumped_to && group.places.size() == 1)) {
            find_system_call(s_, f, at_sys_exit(group), key, out);
            f.mov(r7, r1);
            f.sub(r7, 1);
            if (!group.jumped_to) pass_compat_over(s_, f, out);
        } else if (shares(place) && group.places.size() > 1) {
            f.call(helper::get_attach_cookie, r6);
            f.mov(r7, r0);
        } else {
            f.mov(r7, runtime(group.places.front()));
        }
        f.store<uint32_t>(key, r7);
        f.call(helper::map_lookup_elem, *s_.counts, key);
        f.jump_if(r0 == 0, out);
        f.mov(r8, r0);
        if (!group.keeps) bump(e, offsetof(Counts, fired));

        bool rejects = false;
        check_identity(e, key, filtered, rejects);
        if (group.keeps) { // all else is asked when it returns
            keep_call(e, arguments(place));
            f.bind(filtered);
            f.bind(out);
            f.ret(0);
            return {};
        }
        const bool of_kept = group.is_result && keep_;
        if (of_kept) {
            e.call = f.stack<OpenCall>("call");
            e.duration = f.stack<uint64_t>("duration");
            find_call(e, filtered);
            rejects = true;
        }
        if (filters.min_duration) {
            f.load<uint64_t>(r1, *e.duration);
            f.load_imm64(r2, filters.min_duration);
            f.jump_if(r1 < r2, filtered);
        }
        if (filters.errors && group.is_result) {
            if (const std::optional<uint32_t> error = go_error(place)) {
                load_go_word(e, r0, place.go_call->results[*error]);
                f.jump_if(r0 == 0, filtered);
                f.mov(r0, -1);
            } else {
                load_result(e, r0);
            }
            if (place.signature.known && place.signature.returns.size == 4) {
                f.lsh(r0, 32);
                f.arsh(r0, 32);
            }
            f.jump_if(!(as_signed(static_cast<Reg>(r0)) < 0), filtered);
            rejects = true;
        }
        // Where both ends are shown, the call has been asked, and was only kept if it was let through.
        const bool asked = of_kept && !o_.pair;
        if (filters.expression && !asked) {
            TRY(compile_filter(e, *filters.expression, filtered));
            rejects = true;
        }
        if (filters.one_in > 1 && !asked) sample_out(e, out);
        if (filters.most_events) {
            check_most_events(e, key, filtered);
            rejects = true;
        }
        if (keep_ && !group.is_result && has_two_ends(place.kind)) keep_call(e, 0);
        if (o_.mode == Mode::events) emit_record(e, group.layout);
        if (o_.aggregate && o_.aggregate->by_stack()) hash_stack(e, group.layout);
        if (o_.aggregate) TRY(emit_group(e, out));
        f.bind(out);
        f.ret(0);
        if (rejects) {
            f.bind(filtered);
            bump(e, offsetof(Counts, filtered));
            f.ret(0);
        } else {
            f.bind(filtered); // nothing jumps there
        }
        return {};
    }

    // --- Calls that no return will come of, as their program is gone

    [[nodiscard]] bool tells_execs() const {
        return o_.execs && s_.ring && o_.calls && o_.results && !o_.pair && !o_.counting &&
               std::any_of(places_.begin(), places_.end(),
                           [](const ProbeSite &p) { return is_user_function(p.kind) && has_two_ends(p.kind); });
    }

    struct Shown {
        bool any = false; ///< some place has it
        uint32_t missing = 0;
        Error error = {}; ///< why one hasn't
    };
    const std::vector<ProbeSite> &places_;
    const ProgramOptions &o_;
    Shared s_;
    bool keep_;
    TraceUnit out_;
    std::vector<Shown> shown_;
};

} // namespace

bool needs_pairs(const ProgramOptions &o) {
    const bool both =
        o.filters.expression && (mentions(*o.filters.expression, "ret") || mentions(*o.filters.expression, "retval") ||
                                 mentions(*o.filters.expression, "duration"));
    const bool of_groups =
        o.aggregate && (o.aggregate->mentions("ret") || o.aggregate->mentions("retval") || o.aggregate->mentions("duration"));
    if (of_groups) return true;
    return o.filters.min_duration != 0 || o.filters.errors || both;
}

Result<TraceUnit> trace_unit(const std::vector<ProbeSite> &places, const ProgramOptions &options, const btf::Btf *kernel) {
    return Maker(places, options, kernel).make();
}

} // namespace rawbpf::inline v0::trace
