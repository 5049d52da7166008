// Whose events they are: the processes, threads, users, namespaces and names that are asked about, and the workload's family.
#include "programs/trace/emit.h"

#include <algorithm>
#include <cstddef>

#include <linux/bpf.h>

#include "programs/capture/followed_threads_dsl.h"
#include "programs/identity_dsl.h"

namespace rawbpf::inline v0::trace {

void load_ids(Shared &s, Code &f, Slot ids, Label filtered, bool &rejects) {
    const Filters &filters = s.options.filters;
    if (filters.pidns_ino == 0) {
        f.call(helper::get_current_pid_tgid);
        f.store<uint64_t>(ids, r0);
        return;
    }
    const Slot numbers = f.stack(8, 8, "numbers"); // struct bpf_pidns_info: pid, tgid
    load_ids_of_namespace(f, {filters.pidns_dev, filters.pidns_ino}, numbers);
    if (!filters.pids.empty() || !filters.tids.empty()) {
        f.jump_if(r0 != 0, filtered);
        rejects = true;
    } else {
        f.if_(r0 != 0, [&] {
            f.call(helper::get_current_pid_tgid);
            f.lsh(r0, 32);
            f.rsh(r0, 32);
            f.store<uint64_t>(numbers, r0);
        });
    }
    f.load<uint64_t>(r1, numbers);
    f.store<uint64_t>(ids, r1);
}

namespace {

template <class Load>
bool one_of(Code &f, const std::vector<uint32_t> &values, std::optional<MapRef> map, Slot key, Label filtered, Load load) {
    if (values.empty()) return false;
    load();
    if (values.size() == 1) {
        f.load_imm64(r1, values[0]);
        f.jump_if(r0 != r1, filtered);
        return true;
    }
    f.store<uint32_t>(key, r0);
    f.call(helper::map_lookup_elem, *map, key);
    f.jump_if(r0 == 0, filtered);
    return true;
}

Expression comm_is(const std::string &name) {
    Expression out;
    out.source = "comm == \"" + name + "\"";
    out.nodes.push_back({.kind = Node::Kind::name, .text = "comm"});
    out.nodes.push_back({.kind = Node::Kind::text, .text = name});
    out.nodes.push_back({.kind = Node::Kind::binary, .op = Operator::equal, .left = 0, .right = 1});
    out.root = 2;
    return out;
}

// The roots are the command, whose number is known before the program is made, or the processes of -p.
void is_tracee(Shared &s, Code &f, Slot key, Label filtered) {
    const Filters &filters = s.options.filters;
    const auto is_root = [&](Code &code, const Label &otherwise) {
        if (filters.workload) return code.jump_if(r0 != runtime(filters.workload), otherwise);
        const Slot group = code.stack<uint32_t>("group");
        code.store<uint32_t>(group, r0);
        code.call(helper::map_lookup_elem, *s.pids, group);
        code.jump_if(r0 == 0, otherwise);
    };
    std::optional<sys::Namespace> ns;
    if (filters.pidns_ino) ns = {filters.pidns_dev, filters.pidns_ino};
    is_of_family(f, ns, key, is_root, s.tracees, filtered);
}

} // namespace

void check_identity(const Emitting &e, Slot key, Label filtered, bool &rejects) {
    Shared &s = e.shared;
    const ProgramOptions &o = s.options;
    const Filters &filters = o.filters;
    Code &f = e.f;
    const auto asks = [&](std::string_view name) {
        const auto of = [&](const Expression &x) { return mentions(x, name); };
        return (filters.expression && of(*filters.expression)) || std::any_of(o.shows.begin(), o.shows.end(), of) ||
               (o.aggregate && o.aggregate->mentions(name));
    };
    if (filters.workload || filters.follows()) {
        is_tracee(s, f, key, filtered);
        rejects = true;
    }
    if (filters.own_pid || !filters.pids.empty() || !filters.tids.empty() || asks("pid") || asks("tid") ||
        o.mode == Mode::events || o.stack)
        load_ids(s, f, e.ids, filtered, rejects);
    if (filters.own_pid && !filters.workload) {
        f.load<uint32_t>(r1, e.ids + 4);
        f.jump_if(r1 == runtime(filters.own_pid), filtered);
        rejects = true;
    }
    if (!filters.follows()) rejects |= one_of(f, filters.pids, s.pids, key, filtered, [&] { f.load<uint32_t>(r0, e.ids + 4); });
    rejects |= one_of(f, filters.tids, s.tids, key, filtered, [&] { f.load<uint32_t>(r0, e.ids); });
    rejects |= one_of(f, filters.uids, s.uids, key, filtered, [&] {
        f.call(helper::get_current_uid_gid);
        f.lsh(r0, 32);
        f.rsh(r0, 32);
    });
    if (filters.in_pidns_ino) { // the helper knows this thread's ids in the namespace that it is in, and in no other
        const Slot numbers = f.stack(8, 8, "numbers");
        load_ids_of_namespace(f, {filters.in_pidns_dev, filters.in_pidns_ino}, numbers);
        f.jump_if(r0 != 0, filtered);
        rejects = true;
    }
    if (filters.mntns) {
        f.call(helper::get_current_task);
        const NamespaceOffsets &at = *s.namespaces;
        for (uint32_t offset : {at.task_nsproxy, at.mount}) f.read_kernel<uint64_t>(r0, r0 + runtime(offset));
        f.read_kernel<uint32_t>(r0, r0 + runtime(at.number));
        f.load_imm64(r1, filters.mntns);
        f.jump_if(r0 != r1, filtered);
        rejects = true;
    }
    if (filters.cgroup) {
        f.call(helper::current_task_under_cgroup, *s.cgroup, 0);
        f.jump_if(r0 != 1, filtered);
        rejects = true;
    }
    if (!filters.comm.empty() || asks("comm")) f.call(helper::get_current_comm, e.comm, 16);
    if (!filters.comm.empty()) {
        (void)compile_filter(e, comm_is(filters.comm), filtered); // a comparison of a text with a text: it can't fail
        rejects = true;
    }
}

void check_most_events(Emitting &e, Slot key, Label filtered) {
    Code &f = e.f;
    e.written = f.stack<uint64_t>("written");
    f.mov(r1, 0);
    f.store<uint32_t>(key, r1);
    f.call(helper::map_lookup_elem, *e.shared.written, key);
    f.jump_if(r0 == 0, filtered);
    f.store<uint64_t>(*e.written, r0);
    f.load<uint64_t>(r1, r0 + 0);
    f.load_imm64(r2, e.shared.options.filters.most_events);
    f.jump_if(r1 >= r2, filtered);
}

void sample_out(const Emitting &e, Label out) {
    Code &f = e.f;
    f.load<uint64_t>(r1, r8 + offsetof(Counts, fired));
    f.load<uint64_t>(r2, r8 + offsetof(Counts, filtered));
    f.sub(r1, r2);
    f.load_imm64(r2, e.shared.options.filters.one_in);
    f.mod(r1, r2);
    f.if_(r1 != 0, [&] {
        bump(e, offsetof(Counts, sampled_out));
        f.jump(out);
    });
}

void follow_forks(Shared &s) {
    follow_threads(s.b, "trace", *s.tracees, s.options.filters.child_tid_offset,
                   [&](Code &f, const Slot &thread, const Label &out) { is_tracee(s, f, thread, out); });
}

// struct trace_event_raw_sched_process_exec: the text's place, pid, old_pid. A thread that isn't its process's first takes
// that one's number.
void tell_execs(Shared &s) {
    constexpr int64_t kOldPid = 16;
    Code &f = s.b.program("tracepoint/sched/sched_process_exec", "trace_exec");
    const Slot header = f.stack(sizeof(Header), 8, "header"), ids = f.stack<uint64_t>("ids");
    const Label out = f.label("out");
    f.mov(r6, r1);
    bool rejects = false;
    load_ids(s, f, ids, out, rejects);
    for (uint32_t at = 0; at < sizeof(Header); at += 8) f.store<uint64_t>(header + runtime(at), 0);
    f.load<uint64_t>(r1, ids);
    f.store<uint64_t>(header + offsetof(Header, tid), r1);
    f.load<uint32_t>(r1, r6 + runtime(kOldPid));
    f.store<uint32_t>(header + offsetof(Header, place), r1);
    f.store<uint32_t>(header + offsetof(Header, what), runtime(What::exec));
    f.call(helper::ktime_get_ns);
    f.store<uint64_t>(header + offsetof(Header, time), r0);
    f.call(helper::ringbuf_output, *s.ring, header, sizeof(Header), 0);
    f.bind(out);
    f.ret(0);
}

} // namespace rawbpf::inline v0::trace
