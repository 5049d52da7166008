// One program for all places that are alike; what isn't asked for isn't in it.
//
//      r7 = which place        bpf_get_attach_cookie(), where the kernel has it; else a constant, and a program for each place
//      r8 = its counters       ++fired
//      filters                 ... goto filtered:  ++filtered
//      sampling                ... ++sampled_out
//      r9 = a record           bpf_ringbuf_reserve(); none left: ++lost
//      header, arguments, texts
//      bpf_ringbuf_submit()
//
// With --count the program ends behind the filters. Counters are changed atomically although each CPU has its own: a uprobe's
// program may be preempted by another task's, between load and store.
//
// Texts: whether an address is the kernel's or a user's is seen in its highest bit, on both architectures. A page that isn't
// there can't be read by a program that may not sleep; a sleepable one touches it with bpf_copy_from_user() and reads again.
#include "programs/trace/program.h"

#include <algorithm>
#include <cerrno>
#include <map>

#include <linux/bpf.h>

#include "programs/trace/emit.h"
#include "programs/trace/path.h"

namespace rawbpf::inline v0::trace {

namespace {

// Where a function's arguments, its result are in struct pt_regs.
#if defined(__x86_64__)
constexpr int64_t kArgumentRegisters[kRawArguments] = {112, 104, 96, 88, 72, 64}; // di si dx cx r8 r9
constexpr int64_t kResultRegister = 80;                                           // ax
#elif defined(__aarch64__)
constexpr int64_t kArgumentRegisters[kRawArguments] = {0, 8, 16, 24, 32, 40}; // x0 ... x5
constexpr int64_t kResultRegister = 0;
#else
#error "the calling convention of this machine"
#endif
constexpr int64_t kSyscallResult = 16; // "ret" in the record of sys_exit_*

bool has_registers(ProbeKind kind) { return kind == ProbeKind::kprobe || kind == ProbeKind::kretprobe || is_user_function(kind); }
bool has_record(ProbeKind kind) { return kind == ProbeKind::tracepoint || kind == ProbeKind::syscall; }

// Word `index` of a context that is an array of them: fentry, fexit, raw tracepoints.
void load_word(const Emitting &e, WritableReg dst, size_t index) {
    Code &f = e.f;
    if (!e.by_helper || e.place.kind == ProbeKind::raw_tp) return f.load<uint64_t>(dst, r6 + runtime(8 * index));
    f.address(r3, r6 + runtime(8 * index));
    f.mov(r2, 8);
    f.address(r1, e.scratch);
    f.call(helper::probe_read_kernel);
    f.load<uint64_t>(dst, e.scratch);
}

} // namespace

void load_raw(const Emitting &e, WritableReg dst, uint32_t index) {
    if (has_registers(e.place.kind)) {
        e.f.load<uint64_t>(dst, r6 + runtime(kArgumentRegisters[index]));
        return;
    }
    if (!has_record(e.place.kind)) return load_word(e, dst, index);
    const Mem field = r6 + runtime(e.place.offsets[index]);
    const Type &type = e.place.signature.parameters[index].type;
    if (e.place.kind == ProbeKind::syscall) return e.f.load<uint64_t>(dst, field);
    switch (type.show == Show::data_text ? 4 : type.size) {
    case 1: return e.f.load<uint8_t>(dst, field);
    case 2: return e.f.load<uint16_t>(dst, field);
    case 4: return e.f.load<uint32_t>(dst, field);
    default: return e.f.load<uint64_t>(dst, field);
    }
}

void load_result(const Emitting &e, WritableReg dst) {
    if (has_registers(e.place.kind)) return e.f.load<uint64_t>(dst, r6 + kResultRegister);
    if (e.place.kind == ProbeKind::syscall) return e.f.load<uint64_t>(dst, r6 + kSyscallResult);
    load_word(e, dst, e.place.signature.parameters.size());
}

void read_memory(const Emitting &e, Mem dst, uint32_t size, bool text) {
    Code &f = e.f;
    f.mov(r2, runtime(size));
    f.address(r1, dst);
    const bool user = is_user_function(e.place.kind) || e.place.kind == ProbeKind::syscall;
    if (user) {
        if (e.sleepable) f.store<uint64_t>(e.scratch, r3);
        text ? f.call(helper::probe_read_user_str) : f.call(helper::probe_read_user);
        if (!e.sleepable) return;
        f.if_(r0 == -EFAULT, [&] { // a page that isn't there yet: touched by one byte, then again
            f.load<uint64_t>(r3, e.scratch);
            f.mov(r2, 1);
            f.address(r1, dst);
            f.call(helper::copy_from_user);
            f.load<uint64_t>(r3, e.scratch);
            f.mov(r2, runtime(size));
            f.address(r1, dst);
            text ? f.call(helper::probe_read_user_str) : f.call(helper::probe_read_user);
        });
        return;
    }
    f.if_(as_signed(r3) < 0, [&] {
         text ? f.call(helper::probe_read_kernel_str) : f.call(helper::probe_read_kernel);
     }).else_([&] { text ? f.call(helper::probe_read_user_str) : f.call(helper::probe_read_user); });
}

namespace {

void extend(Code &f, const Type &type) {
    if (type.size >= 8 || type.show == Show::address || type.show == Show::text) return;
    const int bits = 64 - 8 * type.size;
    f.lsh(r0, runtime(bits));
    if (type.is_signed)
        f.arsh(r0, runtime(bits));
    else
        f.rsh(r0, runtime(bits));
}

void load_sized(Code &f, Mem from, const Type &type) {
    switch (type.size) {
    case 1: f.load<uint8_t>(r0, from); break;
    case 2: f.load<uint16_t>(r0, from); break;
    case 4: f.load<uint32_t>(r0, from); break;
    default: f.load<uint64_t>(r0, from); break;
    }
    if (type.is_signed) extend(f, type);
}

} // namespace

void load_value(const Emitting &e, const Value &value) {
    Code &f = e.f;
    switch (value.from) {
    case Value::From::pid:
        f.load<uint64_t>(r0, e.ids);
        f.rsh(r0, 32);
        return;
    case Value::From::tid: f.load<uint32_t>(r0, e.ids); return;
    case Value::From::uid:
        f.call(helper::get_current_uid_gid);
        f.lsh(r0, 32);
        f.rsh(r0, 32);
        return;
    case Value::From::gid:
        f.call(helper::get_current_uid_gid);
        f.rsh(r0, 32);
        return;
    case Value::From::cpu: f.call(helper::get_smp_processor_id); return;
    case Value::From::comm: return; // a text
    case Value::From::result: load_result(e, r0); break;
    case Value::From::argument: load_raw(e, r0, value.argument); break;
    }
    if (value.reads.empty()) return extend(f, value.type);
    for (size_t i = 0; i < value.reads.size(); ++i) {
        const bool last = i + 1 == value.reads.size();
        f.mov(r3, r0);
        if (value.reads[i] <= INT32_MAX) {
            if (value.reads[i] != 0) f.add(r3, runtime(value.reads[i]));
        } else {
            f.load_imm64(r1, value.reads[i]);
            f.add(r3, r1);
        }
        const uint32_t size = last ? value.type.size : 8;
        f.mov(r2, runtime(size));
        f.address(r1, e.scratch);
        f.call(helper::probe_read_kernel); // zeroes where it can't be read
        if (!last)
            f.load<uint64_t>(r0, e.scratch);
        else if (value.bit_size == 0)
            load_sized(f, e.scratch, value.type);
    }
    if (value.bit_size == 0) return;
    Type whole = value.type;
    whole.is_signed = false;
    load_sized(f, e.scratch, whole);
    f.lsh(r0, runtime(64 - value.bit_offset - value.bit_size));
    if (value.type.is_signed)
        f.arsh(r0, runtime(64 - value.bit_size));
    else
        f.rsh(r0, runtime(64 - value.bit_size));
}

namespace {

class Maker {
  public:
    Maker(const std::vector<Place> &places, const ProgramOptions &options, const btf::Btf *kernel)
        : places_(places), o_(options), kernel_(kernel), b_("trace") {}

    Result<TraceUnit> make() {
        MapDef counts;
        counts.name = "trace_counts";
        counts.type = BPF_MAP_TYPE_PERCPU_ARRAY;
        counts.key_size = 4;
        counts.value_size = sizeof(Counts);
        counts.max_entries = static_cast<uint32_t>(std::max<size_t>(1, places_.size()));
        counts_ = b_.map(std::move(counts));
        if (o_.mode == Mode::events) ring_ = b_.ringbuf("trace_events", o_.ring_bytes);
        add_set(pids_, "trace_pids", o_.filters.pids);
        add_set(tids_, "trace_tids", o_.filters.tids);
        add_set(uids_, "trace_uids", o_.filters.uids);
        if (o_.filters.cgroup) cgroup_ = b_.cgroup_array("trace_cgroup", 1);
        if (o_.filters.workload) {
            tracees_ = b_.hash<uint32_t, uint8_t>("trace_tracees", 65536);
            follow_forks();
        }
        if (o_.mode == Mode::events && kernel_)
            if (Result<PathOffsets> offsets = path_offsets(*kernel_)) paths_ = *offsets;
        group_places();
        for (Group &group : out_.groups) TRY(program(group));
        Built built = b_.finish();
        if (!built) return fail(Errc::internal, "the trace program: {}", built.report());
        out_.unit = std::move(*built);
        return std::move(out_);
    }

  private:
    void add_set(std::optional<MapRef> &map, std::string_view name, const std::vector<uint32_t> &values) {
        if (values.size() > 1) map = b_.hash<uint32_t, uint8_t>(std::string(name), static_cast<uint32_t>(values.size()));
    }

    // --- Which places share a program

    void group_places() {
        std::map<std::string, size_t> by_key;
        for (uint32_t i = 0; i < places_.size(); ++i) {
            const Place &place = places_[i];
            const bool only_result =
                place.kind == ProbeKind::kretprobe || place.kind == ProbeKind::uretprobe || place.kind == ProbeKind::fexit;
            const bool two_ends = !only_result && place.kind != ProbeKind::tracepoint && place.kind != ProbeKind::raw_tp;
            if (o_.calls && !only_result) add(by_key, i, false);
            if (only_result || (o_.results && two_ends)) add(by_key, i, true);
        }
        for (size_t i = 0; i < out_.groups.size(); ++i) out_.groups[i].program = format("trace_{}", i);
    }

    void add(std::map<std::string, size_t> &by_key, uint32_t index, bool is_result) {
        const Place &place = places_[index];
        Group group;
        group.kind = place.kind;
        group.is_result = is_result;
        group.section = section(place, is_result);
        group.layout = layout(place, is_result);
        std::string key = shares(place.kind) ? group.section : format("{} {}", group.section, index);
        if (o_.mode == Mode::events || o_.filters.expression) {
            append(key, " {}", group.layout.values);
            for (const Blob &blob : group.layout.blobs) append(key, " {}:{}:{}", blob.argument, int(blob.show), blob.capacity);
        }
        if (o_.filters.expression) // names may stand for different things at different functions
            for (const Parameter &p : place.signature.parameters) append(key, " {} {} {}", p.name, p.type.name, p.type.size);
        if (has_record(place.kind) && (o_.mode == Mode::events || o_.filters.expression))
            for (size_t i = 0; i < place.offsets.size(); ++i)
                append(key, " {}+{}", place.offsets[i], place.signature.parameters[i].type.size);
        const auto [at, is_new] = by_key.emplace(std::move(key), out_.groups.size());
        if (is_new) out_.groups.push_back(std::move(group));
        out_.groups[at->second].places.push_back(index);
    }

    [[nodiscard]] bool shares(ProbeKind kind) const {
        return o_.cookies && kind != ProbeKind::fentry && kind != ProbeKind::fexit && kind != ProbeKind::raw_tp;
    }

    [[nodiscard]] std::string section(const Place &place, bool is_result) const {
        const std::string_view multi = o_.multi && o_.cookies ? ".multi" : "";
        switch (place.kind) {
        case ProbeKind::uprobe:
        case ProbeKind::uretprobe:
            return format("{}{}{}", is_result ? "uretprobe" : "uprobe", multi, o_.sleepable && !is_result ? ".s" : "");
        case ProbeKind::fentry:
        case ProbeKind::fexit: return format("{}/{}", is_result ? "fexit" : "fentry", place.function);
        case ProbeKind::tracepoint:
            return shares(place.kind) ? "tracepoint" : format("tracepoint/{}/{}", place.category, place.function);
        case ProbeKind::raw_tp: return format("raw_tp/{}", place.function);
        case ProbeKind::syscall:
            return shares(place.kind) ? "tracepoint"
                                      : format("tracepoint/syscalls/sys_{}_{}", is_result ? "exit" : "enter", place.function);
        default: return format("{}{}", is_result ? "kretprobe" : "kprobe", multi);
        }
    }

    [[nodiscard]] Layout layout(const Place &place, bool is_result) const {
        Layout out;
        out.is_result = is_result;
        const bool with_arguments = !is_result || place.kind == ProbeKind::fexit;
        if (with_arguments) {
            out.values = place.signature.known ? static_cast<uint32_t>(place.signature.parameters.size()) : kRawArguments;
            if (has_registers(place.kind)) out.values = std::min(out.values, kRawArguments);
        }
        if (is_result) ++out.values; // the last
        out.size += out.values * 8;
        for (uint32_t i = 0; with_arguments && i < place.signature.parameters.size() && i < out.values; ++i) {
            const Type &type = place.signature.parameters[i].type;
            Blob blob;
            blob.argument = i;
            blob.show = type.show;
            switch (type.show) {
            case Show::text:
            case Show::data_text: blob.capacity = o_.text_bytes; break;
            case Show::characters: blob.capacity = static_cast<uint16_t>(std::min<uint32_t>(type.length, o_.text_bytes)); break;
            case Show::sockaddr: blob.capacity = kSockaddrBytes; break;
            case Show::file:
            case Show::path:
            case Show::dentry:
                if (!paths_) continue;
                blob.capacity = kPathCapacity;
                break;
            default: continue;
            }
            blob.offset = static_cast<uint16_t>(out.size);
            out.size += 4u + blob.capacity;
            out.size = (out.size + 7) & ~7u;
            out.blobs.push_back(blob);
        }
        return out;
    }

    // --- The program

    Result<void> program(Group &group) {
        const Place &place = places_[group.places.front()];
        const Filters &filters = o_.filters;
        Code &f = b_.program(group.section, group.program);
        const Slot key = f.stack<uint32_t>("place"), ids = f.stack<uint64_t>("ids"), comm = f.stack(16, 8, "comm"),
                   scratch = f.stack<uint64_t>("scratch");
        const bool sleepable = o_.sleepable && !group.is_result && is_user_function(place.kind);
        const Emitting e{f, place, group.is_result, ids, comm, scratch, sleepable, o_.by_helper};
        const Label out = f.label("out"), filtered = f.label("filtered");

        f.mov(r6, r1);
        if (shares(place.kind)) {
            f.call(helper::get_attach_cookie, r6);
            f.mov(r7, r0);
        } else {
            f.mov(r7, runtime(group.places.front()));
        }
        f.store<uint32_t>(key, r7);
        f.call(helper::map_lookup_elem, *counts_, key);
        f.jump_if(r0 == 0, out);
        f.mov(r8, r0);
        bump(f, offsetof(Counts, fired));

        const bool by_id = filters.own_pid || !filters.pids.empty() || !filters.tids.empty() ||
                           (filters.expression && (mentions(*filters.expression, "pid") || mentions(*filters.expression, "tid")));
        bool rejects = false;
        if (filters.workload) {
            is_tracee(f, key, filtered);
            rejects = true;
        }
        if (by_id || o_.mode == Mode::events) load_ids(f, ids, filtered, rejects);
        if (filters.own_pid && !filters.workload) {
            f.load<uint32_t>(r1, ids + 4);
            f.jump_if(r1 == runtime(filters.own_pid), filtered);
            rejects = true;
        }
        rejects |= one_of(f, filters.pids, pids_, key, filtered, [&] { f.load<uint32_t>(r0, ids + 4); });
        rejects |= one_of(f, filters.tids, tids_, key, filtered, [&] { f.load<uint32_t>(r0, ids); });
        rejects |= one_of(f, filters.uids, uids_, key, filtered, [&] {
            f.call(helper::get_current_uid_gid);
            f.lsh(r0, 32);
            f.rsh(r0, 32);
        });
        if (filters.cgroup) {
            f.call(helper::current_task_under_cgroup, *cgroup_, 0);
            f.jump_if(r0 != 1, filtered);
            rejects = true;
        }
        if (!filters.comm.empty() || (filters.expression && mentions(*filters.expression, "comm")))
            f.call(helper::get_current_comm, comm, 16);
        if (!filters.comm.empty()) {
            TRY(compile_filter(e, comm_is(filters.comm), kernel_, filtered));
            rejects = true;
        }
        if (filters.errors && group.is_result) {
            load_result(e, r0);
            if (place.signature.known && place.signature.returns.size == 4) {
                f.lsh(r0, 32);
                f.arsh(r0, 32);
            }
            f.jump_if(!(as_signed(static_cast<Reg>(r0)) < 0), filtered);
            rejects = true;
        }
        if (filters.expression) {
            TRY(compile_filter(e, *filters.expression, kernel_, filtered));
            rejects = true;
        }
        if (filters.one_in > 1) sample(f, out);
        if (o_.mode == Mode::events) record(e, group);
        f.bind(out);
        f.ret(0);
        if (rejects) {
            f.bind(filtered);
            bump(f, offsetof(Counts, filtered));
            f.ret(0);
        } else {
            unused(f, filtered);
        }
        return {};
    }

    static void bump(Code &f, size_t counter) {
        f.mov(r1, 1);
        f.atomic_add<uint64_t>(r8 + runtime(counter), r1);
    }
    // A label that nothing jumps to still has to stand somewhere.
    static void unused(Code &f, Label label) { f.bind(label); }

    void load_ids(Code &f, Slot ids, Label filtered, bool &rejects) {
        if (o_.filters.pidns_ino == 0) {
            f.call(helper::get_current_pid_tgid);
            f.store<uint64_t>(ids, r0);
            return;
        }
        const Slot numbers = f.stack(8, 8, "numbers"); // struct bpf_pidns_info: pid, tgid
        f.call(helper::get_ns_current_pid_tgid, runtime(o_.filters.pidns_dev), runtime(o_.filters.pidns_ino), numbers, 8);
        f.jump_if(r0 != 0, filtered);
        f.load<uint64_t>(r1, numbers);
        f.store<uint64_t>(ids, r1);
        rejects = true;
    }

    template <class Load>
    bool one_of(Code &f, const std::vector<uint32_t> &values, std::optional<MapRef> map, Slot key, Label filtered, Load load) {
        if (values.empty()) return false;
        load();
        if (values.size() == 1) {
            f.mov(r1, runtime(values[0]));
            f.jump_if(r0 != r1, filtered);
            return true;
        }
        f.store<uint32_t>(key, r0);
        f.call(helper::map_lookup_elem, *map, key);
        f.jump_if(r0 == 0, filtered);
        return true;
    }

    static Expression comm_is(const std::string &name) {
        Expression out;
        out.source = "comm == \"" + name + "\"";
        out.nodes.push_back({.kind = Node::Kind::name, .text = "comm"});
        out.nodes.push_back({.kind = Node::Kind::text, .text = name});
        out.nodes.push_back({.kind = Node::Kind::binary, .op = Operator::equal, .left = 0, .right = 1});
        out.root = 2;
        return out;
    }

    void sample(Code &f, Label out) {
        f.load<uint64_t>(r1, r8 + offsetof(Counts, fired));
        f.load<uint64_t>(r2, r8 + offsetof(Counts, filtered));
        f.sub(r1, r2);
        f.load_imm64(r2, o_.filters.one_in);
        f.mod(r1, r2);
        f.if_(r1 != 0, [&] {
            bump(f, offsetof(Counts, sampled_out));
            f.jump(out);
        });
    }

    void record(const Emitting &e, const Group &group) {
        Code &f = e.f;
        const Layout &layout = group.layout;
        f.reserve(r9, *ring_, layout.size, [&] {
             f.call(helper::ktime_get_ns);
             f.store<uint64_t>(r9 + offsetof(Header, time), r0);
             f.load<uint64_t>(r1, e.ids);
             f.store<uint64_t>(r9 + offsetof(Header, tid), r1);
             f.store<uint32_t>(r9 + offsetof(Header, place), r7);
             f.call(helper::get_smp_processor_id);
             f.store<uint32_t>(r9 + offsetof(Header, cpu), r0);
             f.store<uint64_t>(r9 + offsetof(Header, what), runtime(group.is_result ? What::result : What::call));
             f.call(helper::get_current_comm, r9 + offsetof(Header, comm), 16);
             for (uint32_t i = 0; i < layout.values; ++i) {
                 if (layout.is_result && i + 1 == layout.values)
                     load_result(e, r1);
                 else
                     load_raw(e, r1, i);
                 f.store<uint64_t>(r9 + runtime(sizeof(Header) + 8 * i), r1);
             }
             for (const Blob &blob : layout.blobs) copy(e, blob);
         }).else_([&] { bump(f, offsetof(Counts, lost)); });
    }

    void copy(const Emitting &e, const Blob &blob) {
        Code &f = e.f;
        const Mem length = r9 + runtime(blob.offset), bytes = r9 + runtime(blob.offset + 4);
        switch (blob.show) {
        case Show::characters:
            f.address(r3, r6 + runtime(e.place.offsets[blob.argument]));
            f.mov(r2, runtime(blob.capacity));
            f.address(r1, bytes);
            f.call(helper::probe_read_kernel_str);
            break;
        case Show::data_text:
            f.load<uint32_t>(r3, r6 + runtime(e.place.offsets[blob.argument]));
            f.and_(r3, 0xffff);
            f.add(r3, r6);
            f.mov(r2, runtime(blob.capacity));
            f.address(r1, bytes);
            f.call(helper::probe_read_kernel_str);
            break;
        case Show::file:
        case Show::path:
        case Show::dentry: copy_path(e, blob, bytes); break;
        default: {
            const bool text = blob.show == Show::text;
            load_raw(e, r3, blob.argument);
            read_memory(e, bytes, blob.capacity, text);
        }
        }
        f.store<uint32_t>(length, r0);
    }

    // r0 = what path_walk() says; 0 where there is no dentry yet, as in a file that is being opened.
    void copy_path(const Emitting &e, const Blob &blob, Mem bytes) {
        Code &f = e.f;
        if (!walk_) walk_ = &path_walk(b_, *paths_);
        if (!path_slot_of_ || path_slot_of_ != &f) {
            path_slot_ = f.stack(16, 8, "path");
            path_slot_of_ = &f;
        }
        const Slot path = *path_slot_;
        load_raw(e, r3, blob.argument);
        if (blob.show == Show::dentry) {
            f.mov(r0, r3);
            f.mov(r2, 0);
        } else {
            if (blob.show == Show::file) f.add(r3, runtime(paths_->file_path));
            f.address(r1, path);
            f.mov(r2, 16);
            f.call(helper::probe_read_kernel);
            f.load<uint64_t>(r2, path + runtime(paths_->path_mnt));
            f.load<uint64_t>(r0, path + runtime(paths_->path_dentry));
        }
        f.if_(r0 != 0, [&] { f.call(*walk_, {static_cast<Reg>(r0), static_cast<Reg>(r2), bytes}); });
    }

    // --- The workload's threads

    void is_tracee(Code &f, Slot key, Label filtered) {
        const Label yes = f.label("tracee");
        f.call(helper::get_current_pid_tgid);
        f.store<uint32_t>(key, r0);
        f.rsh(r0, 32);
        f.jump_if(r0 == runtime(o_.filters.workload), yes);
        f.call(helper::map_lookup_elem, *tracees_, key);
        f.jump_if(r0 == 0, filtered);
        f.bind(yes);
    }

    void follow_forks() {
        {
            Code &f = b_.program("tracepoint/sched/sched_process_fork", "trace_fork");
            const Slot key = f.stack<uint32_t>("tid"), child = f.stack<uint32_t>("child");
            const Slot one = f.stack<uint8_t>("one");
            const Label out = f.label("out");
            f.mov(r6, r1);
            is_tracee(f, key, out);
            f.load<uint32_t>(r1, r6 + runtime(o_.filters.child_tid_offset));
            f.store<uint32_t>(child, r1);
            f.store<uint8_t>(one, 1);
            f.call(helper::map_update_elem, *tracees_, child, one, BPF_ANY);
            f.bind(out);
            f.ret(0);
        }
        Code &f = b_.program("tracepoint/sched/sched_process_exit", "trace_exit");
        const Slot key = f.stack<uint32_t>("tid");
        f.call(helper::get_current_pid_tgid);
        f.store<uint32_t>(key, r0);
        f.call(helper::map_delete_elem, *tracees_, key);
        f.ret(0);
    }

    const std::vector<Place> &places_;
    const ProgramOptions &o_;
    const btf::Btf *kernel_;
    Builder b_;
    TraceUnit out_;
    std::optional<MapRef> counts_, ring_, pids_, tids_, uids_, cgroup_, tracees_;
    std::optional<PathOffsets> paths_;
    Code *walk_ = nullptr;
    std::optional<Slot> path_slot_;
    const Code *path_slot_of_ = nullptr; ///< whose stack that is on
};

} // namespace

Result<TraceUnit> trace_unit(const std::vector<Place> &places, const ProgramOptions &options, const btf::Btf *kernel) {
    return Maker(places, options, kernel).make();
}

} // namespace rawbpf::inline v0::trace
