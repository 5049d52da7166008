// Finds the function whose arguments are a program's context, in the kernel's BTF.
//
//      fentry/vfs_read             FUNC vfs_read                          its parameters; fexit: its result behind them
//      tp_btf/sched_switch         TYPEDEF btf_trace_sched_switch         a pointer to a prototype, whose first parameter isn't passed
//      lsm/file_open               FUNC bpf_lsm_file_open
//      iter/task                   FUNC bpf_iter_task                     the members of struct bpf_iter__task
//      struct_ops/init             the member `init` of the struct that the object's map is of
//
// The types don't say which pointers may be NULL. For iterators, the kernel has this in the registration of each iterator
// (bpf_iter_reg.ctx_arg_info, kernel/bpf/ *_iter.c, net/), for tracepoints in a separate list (raw_tp_null_args of
// kernel/bpf/btf.c; since 6.13, and stable kernels).
#include "runtime/verifier/attached.h"

#include "asm/attach_types.h"
#include "asm/kinds.h"

namespace rawbpf::inline v0::verifier {

namespace {

using btf::Kind;

struct NoteRow {
    std::string_view name;
    uint32_t number;
    ParameterNote note;
};
constexpr NoteRow kIterators[] = {
    {"bpf_link", 1, ParameterNote::or_null},
    {"bpf_map", 1, ParameterNote::or_null_trusted},
    {"bpf_map_elem", 2, ParameterNote::read_buffer},
    {"bpf_map_elem", 3, ParameterNote::write_buffer},
    {"bpf_prog", 1, ParameterNote::or_null},
    {"bpf_sk_storage_map", 2, ParameterNote::or_null},
    {"bpf_sk_storage_map", 3, ParameterNote::write_buffer},
    {"cgroup", 1, ParameterNote::or_null_trusted},
    {"dmabuf", 1, ParameterNote::or_null_trusted},
    {"ipv6_route", 1, ParameterNote::or_null},
    {"kmem_cache", 1, ParameterNote::or_null_trusted},
    {"ksym", 1, ParameterNote::or_null},
    {"netlink", 1, ParameterNote::or_null},
    {"sockmap", 2, ParameterNote::read_buffer},
    {"sockmap", 3, ParameterNote::or_null},
    {"task", 1, ParameterNote::or_null_trusted},
    {"task_file", 1, ParameterNote::or_null},
    {"task_file", 3, ParameterNote::or_null},
    {"task_vma", 1, ParameterNote::or_null},
    {"task_vma", 2, ParameterNote::or_null},
    {"tcp", 1, ParameterNote::or_null_trusted},
    {"udp", 1, ParameterNote::or_null_trusted},
    {"unix", 1, ParameterNote::or_null},
};
constexpr NoteRow kTracepoints[] = {
    {"afs_flock_ev", 1, ParameterNote::or_null},
    {"afs_make_fs_call", 1, ParameterNote::or_null},
    {"afs_make_fs_call1", 1, ParameterNote::or_null},
    {"afs_make_fs_call2", 1, ParameterNote::or_null},
    {"afs_make_fs_calli", 1, ParameterNote::or_null},
    {"afs_protocol_error", 0, ParameterNote::or_null},
    {"break_lease_block", 1, ParameterNote::or_null},
    {"break_lease_noblock", 1, ParameterNote::or_null},
    {"break_lease_unblock", 1, ParameterNote::or_null},
    {"cachefiles_io_error", 0, ParameterNote::or_null},
    {"cachefiles_lookup", 0, ParameterNote::or_null},
    {"cachefiles_lookup", 2, ParameterNote::error},
    {"cachefiles_mark_active", 0, ParameterNote::or_null},
    {"cachefiles_mark_failed", 0, ParameterNote::or_null},
    {"cachefiles_mark_inactive", 0, ParameterNote::or_null},
    {"cachefiles_ondemand_close", 0, ParameterNote::or_null},
    {"cachefiles_ondemand_copen", 0, ParameterNote::or_null},
    {"cachefiles_ondemand_cread", 0, ParameterNote::or_null},
    {"cachefiles_ondemand_fd_release", 0, ParameterNote::or_null},
    {"cachefiles_ondemand_fd_write", 0, ParameterNote::or_null},
    {"cachefiles_ondemand_open", 0, ParameterNote::or_null},
    {"cachefiles_ondemand_read", 0, ParameterNote::or_null},
    {"cachefiles_prep_read", 0, ParameterNote::or_null},
    {"cachefiles_rename", 0, ParameterNote::or_null},
    {"cachefiles_unlink", 0, ParameterNote::or_null},
    {"cachefiles_vfs_error", 0, ParameterNote::or_null},
    {"device_pm_callback_start", 1, ParameterNote::or_null},
    {"ext4_mballoc_discard", 1, ParameterNote::or_null},
    {"ext4_mballoc_free", 1, ParameterNote::or_null},
    {"fcntl_setlk", 1, ParameterNote::or_null},
    {"fib_table_lookup", 2, ParameterNote::or_null},
    {"flock_lock_inode", 1, ParameterNote::or_null},
    {"folio_wait_writeback", 1, ParameterNote::or_null},
    {"generic_delete_lease", 1, ParameterNote::or_null},
    {"host1x_cdma_push_gather", 4, ParameterNote::or_null},
    {"kfree_skb", 3, ParameterNote::or_null},
    {"locks_remove_posix", 1, ParameterNote::or_null},
    {"mm_collapse_huge_page_isolate", 0, ParameterNote::or_null},
    {"mm_khugepaged_collapse_file", 1, ParameterNote::or_null},
    {"mm_khugepaged_scan_file", 1, ParameterNote::or_null},
    {"mm_khugepaged_scan_pmd", 1, ParameterNote::or_null},
    {"mm_page_alloc", 0, ParameterNote::or_null},
    {"mm_page_alloc_zone_locked", 0, ParameterNote::or_null},
    {"mm_page_pcpu_drain", 0, ParameterNote::or_null},
    {"mr_integ_alloc", 3, ParameterNote::error},
    {"netfs_failure", 1, ParameterNote::or_null},
    {"posix_lock_inode", 1, ParameterNote::or_null},
    {"qdisc_dequeue", 3, ParameterNote::or_null},
    {"rxrpc_recvdata", 0, ParameterNote::or_null},
    {"rxrpc_resend", 1, ParameterNote::or_null},
    {"sched_pi_setprio", 1, ParameterNote::or_null},
    {"sched_process_wait", 0, ParameterNote::or_null},
    {"sched_stick_numa", 2, ParameterNote::or_null},
    {"sched_swap_numa", 2, ParameterNote::or_null},
    {"signal_deliver", 1, ParameterNote::error},
    {"signal_generate", 1, ParameterNote::error},
    {"tcp_send_reset", 0, ParameterNote::or_null},
    {"tcp_send_reset", 1, ParameterNote::or_null},
    {"tegra_dma_tx_status", 2, ParameterNote::or_null},
    {"time_out_leases", 1, ParameterNote::or_null},
    {"tmigr_update_events", 0, ParameterNote::or_null},
    {"writeback_dirty_folio", 1, ParameterNote::or_null},
    {"xprt_get_cong", 1, ParameterNote::or_null},
    {"xprt_put_cong", 1, ParameterNote::or_null},
    {"xprt_release_cong", 1, ParameterNote::or_null},
    {"xprt_reserve_cong", 1, ParameterNote::or_null},
    {"xs_stream_read_data", 0, ParameterNote::or_null},
};

bool is(const ProgramSpec &program, AttachType type) { return program.expected_attach_type == static_cast<uint32_t>(type); }

// The prototype of a FUNC, or of what a TYPEDEF of a pointer points to.
std::optional<btf::Type> prototype_of(const btf::Btf &types, btf::TypeId id) {
    for (int depth = 0; depth < 8; ++depth) {
        const Result<btf::Type> type = types.type(id);
        if (!type) return {};
        if (type->kind == Kind::func_proto) return *type;
        if (type->kind != Kind::func && type->kind != Kind::typedef_ && type->kind != Kind::ptr && type->kind != Kind::const_)
            return {};
        id = type->size_or_type;
    }
    return {};
}

// The struct of functions that has the program as a member: its name and the member's.
std::pair<std::string, std::string> member_of(const ObjectSpec &spec, const ProgramSpec &program) {
    const Result<btf::Btf> types = btf::Btf::parse(spec.btf, spec.name);
    if (!types) return {};
    for (const MapSpec &map : spec.maps) {
        if (map.type != uint32_t(MapType::STRUCT_OPS)) continue;
        for (const MapSpec::Slot &slot : map.slots) {
            if (slot.target != program.name) continue;
            const Result<btf::Type> type = types->resolve(map.value_type);
            const Result<btf::Member> member = type ? types->member(*type, slot.index) : types->member(btf::Type(), 0);
            if (member) return {std::string(btf::essential_name(type->name)), std::string(btf::essential_name(member->name))};
        }
    }
    return {};
}

} // namespace

ParameterNote iterator_parameter(std::string_view iterator, uint32_t number) {
    for (const NoteRow &row : kIterators)
        if (row.name == iterator && row.number == number) return row.note;
    return ParameterNote::none;
}

ParameterNote tracepoint_parameter(std::string_view tracepoint, uint32_t number) {
    for (const NoteRow &row : kTracepoints)
        if (row.name == tracepoint && row.number == number) return row.note;
    return ParameterNote::none;
}

Attached attached_to(const ObjectSpec &spec, const ProgramSpec &program, const btf::Btf *kernel) {
    Attached out;
    if (!kernel) return out;
    std::string_view target = program.attach_target;
    std::optional<btf::TypeId> id;
    switch (static_cast<ProgramType>(program.type)) {
    case ProgramType::TRACING:
        out.name = std::string(target);
        if (is(program, AttachType::TRACE_RAW_TP)) {
            id = kernel->find("btf_trace_" + out.name, Kind::typedef_);
            out.skipped = 1;
            out.trusted = true;
        } else if (is(program, AttachType::TRACE_ITER)) {
            id = kernel->find("bpf_iter_" + out.name, Kind::func);
            out.trusted = true;
        } else {
            id = kernel->find(target, Kind::func);
        }
        break;
    case ProgramType::LSM:
        out.name = "bpf_lsm_" + std::string(target);
        id = kernel->find(out.name, Kind::func);
        out.trusted = true;
        break;
    case ProgramType::STRUCT_OPS: {
        const auto [type, member_name] = member_of(spec, program);
        if (type.empty()) return out;
        out.name = type + "." + member_name;
        out.stub = type + "__" + member_name;
        out.trusted = true;
        const std::optional<btf::TypeId> operations = kernel->find(type, Kind::struct_);
        const Result<btf::Type> found = operations ? kernel->type(*operations) : kernel->type(0);
        for (uint32_t i = 0; operations && found && i < found->vlen; ++i) {
            const Result<btf::Member> member = kernel->member(*found, i);
            if (member && member->name == member_name) id = member->type;
        }
        break;
    }
    default: return out;
    }
    if (!id) return out;
    if (const std::optional<btf::Type> prototype = prototype_of(*kernel, *id)) {
        out.prototype = *prototype;
        out.known = true;
    }
    return out;
}

} // namespace rawbpf::inline v0::verifier
