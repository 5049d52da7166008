// A table for each command: name, offset, and how to show the field. Fields that are zero are left out unless the command
// always needs them, so a line has no more than what was asked for. The kernel writes some answers into the same struct; it is
// read after the call, so they show too.
#include "runtime/sys/bpf_fields.h"

#include <cstddef>

#include "asm/attach_types.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::sys {
namespace {

#define FIELD(struct_, field, show_, always_)                                                                                    \
    Field { #field, offsetof(struct_, field), sizeof(struct_::field), Show::show_, always_ }
// What a pointer points at; `count_` is the field that says how many.
#define LIST(struct_, field, show_, always_, count_)                                                                             \
    Field { #field, offsetof(struct_, field), sizeof(struct_::field), Show::show_, always_, offsetof(struct_, count_) }
#define RECORDS(struct_, field, count_, record_)                                                                                 \
    Field {                                                                                                                      \
#field, offsetof(struct_, field), sizeof(struct_::field), Show::records, false, offsetof(struct_, count_),               \
            offsetof(struct_, record_)                                                                                           \
    }
#define CORE(struct_, field, show) FIELD(struct_, field, show, true)
#define MORE(struct_, field, show) FIELD(struct_, field, show, false)

constexpr Field kMapCreate[] = {
    CORE(MapCreateAttr, map_type, map_type),
    CORE(MapCreateAttr, key_size, number),
    CORE(MapCreateAttr, value_size, number),
    CORE(MapCreateAttr, max_entries, number),
    MORE(MapCreateAttr, map_flags, map_flags),
    MORE(MapCreateAttr, inner_map_fd, fd),
    MORE(MapCreateAttr, numa_node, number),
    MORE(MapCreateAttr, map_name, characters),
    MORE(MapCreateAttr, map_ifindex, number),
    MORE(MapCreateAttr, btf_fd, fd),
    MORE(MapCreateAttr, btf_key_type_id, number),
    MORE(MapCreateAttr, btf_value_type_id, number),
    MORE(MapCreateAttr, btf_vmlinux_value_type_id, number),
    MORE(MapCreateAttr, map_extra, number),
    MORE(MapCreateAttr, value_type_btf_obj_fd, signed_number),
    MORE(MapCreateAttr, map_token_fd, signed_number),
    Field{"excl_prog_hash", 80, 8, Show::bytes, false, 88}, // 6.18; rawbpf has no use for these
    Field{"excl_prog_hash_size", 88, 4, Show::number, false},
};
constexpr Field kUpdate[] = {
    CORE(MapElemAttr, map_fd, fd),
    CORE(MapElemAttr, key, key),
    CORE(MapElemAttr, value, value),
    MORE(MapElemAttr, flags, update_flags),
};
constexpr Field kLookup[] = {
    CORE(MapElemAttr, map_fd, fd),
    CORE(MapElemAttr, key, key),
    CORE(MapElemAttr, value, value_out),
    MORE(MapElemAttr, flags, update_flags),
};
constexpr Field kDelete[] = {CORE(MapElemAttr, map_fd, fd), CORE(MapElemAttr, key, key)};
constexpr Field kNextKey[] = {
    CORE(MapElemAttr, map_fd, fd),
    CORE(MapElemAttr, key, key),
    Field{"next_key", offsetof(MapElemAttr, value), 8, Show::key_out, true},
};
constexpr Field kFreeze[] = {CORE(MapElemAttr, map_fd, fd)};
constexpr Field kBatch[] = {
    CORE(MapBatchAttr, map_fd, fd),
    CORE(MapBatchAttr, in_batch, pointer),
    CORE(MapBatchAttr, out_batch, pointer),
    LIST(MapBatchAttr, keys, key_out, true, count),
    LIST(MapBatchAttr, values, value_out, true, count),
    CORE(MapBatchAttr, count, number),
    MORE(MapBatchAttr, elem_flags, number),
    MORE(MapBatchAttr, flags, number),
};
constexpr Field kProgLoad[] = {
    CORE(ProgLoadAttr, prog_type, prog_type),
    CORE(ProgLoadAttr, insn_cnt, number),
    LIST(ProgLoadAttr, insns, instructions, true, insn_cnt),
    CORE(ProgLoadAttr, license, string),
    MORE(ProgLoadAttr, log_level, log_level),
    MORE(ProgLoadAttr, log_size, number),
    LIST(ProgLoadAttr, log_buf, log, false, log_size),
    MORE(ProgLoadAttr, kern_version, number),
    MORE(ProgLoadAttr, prog_flags, prog_flags),
    MORE(ProgLoadAttr, prog_name, characters),
    MORE(ProgLoadAttr, prog_ifindex, number),
    MORE(ProgLoadAttr, expected_attach_type, attach_type),
    MORE(ProgLoadAttr, prog_btf_fd, fd),
    MORE(ProgLoadAttr, func_info_rec_size, number),
    RECORDS(ProgLoadAttr, func_info, func_info_cnt, func_info_rec_size),
    MORE(ProgLoadAttr, func_info_cnt, number),
    MORE(ProgLoadAttr, line_info_rec_size, number),
    RECORDS(ProgLoadAttr, line_info, line_info_cnt, line_info_rec_size),
    MORE(ProgLoadAttr, line_info_cnt, number),
    MORE(ProgLoadAttr, attach_btf_id, number),
    MORE(ProgLoadAttr, attach_prog_fd, fd),
    MORE(ProgLoadAttr, core_relo_cnt, number),
    LIST(ProgLoadAttr, fd_array, numbers_32, false, fd_array_cnt),
    RECORDS(ProgLoadAttr, core_relos, core_relo_cnt, core_relo_rec_size),
    MORE(ProgLoadAttr, core_relo_rec_size, number),
    MORE(ProgLoadAttr, log_true_size, number),
    MORE(ProgLoadAttr, prog_token_fd, signed_number),
    MORE(ProgLoadAttr, fd_array_cnt, number),
    Field{"signature", 152, 8, Show::bytes, false, 160}, // 6.18
    Field{"signature_size", 160, 4, Show::number, false},
    Field{"keyring_id", 164, 4, Show::signed_number, false},
};
constexpr Field kObj[] = {
    CORE(ObjAttr, pathname, string),
    MORE(ObjAttr, bpf_fd, fd),
    MORE(ObjAttr, file_flags, map_flags),
    MORE(ObjAttr, path_fd, signed_number),
};
constexpr Field kProgAttach[] = {
    CORE(ProgAttachAttr, target_fd, fd),
    CORE(ProgAttachAttr, attach_bpf_fd, fd),
    CORE(ProgAttachAttr, attach_type, attach_type),
    MORE(ProgAttachAttr, attach_flags, number),
    MORE(ProgAttachAttr, replace_bpf_fd, fd),
    MORE(ProgAttachAttr, relative_fd, fd),
    MORE(ProgAttachAttr, expected_revision, number),
};
constexpr Field kTestRun[] = {
    CORE(ProgTestRunAttr, prog_fd, fd),
    CORE(ProgTestRunAttr, retval, number),
    MORE(ProgTestRunAttr, data_size_in, number),
    MORE(ProgTestRunAttr, data_size_out, number),
    LIST(ProgTestRunAttr, data_in, bytes, false, data_size_in),
    LIST(ProgTestRunAttr, data_out, bytes_out, false, data_size_out),
    MORE(ProgTestRunAttr, repeat, number),
    MORE(ProgTestRunAttr, duration, number),
    MORE(ProgTestRunAttr, ctx_size_in, number),
    MORE(ProgTestRunAttr, ctx_size_out, number),
    LIST(ProgTestRunAttr, ctx_in, bytes, false, ctx_size_in),
    LIST(ProgTestRunAttr, ctx_out, bytes_out, false, ctx_size_out),
    MORE(ProgTestRunAttr, flags, number),
    MORE(ProgTestRunAttr, cpu, number),
    MORE(ProgTestRunAttr, batch_size, number),
};
constexpr Field kNextId[] = {Field{"start_id", 0, 4, Show::number, true}, CORE(IdAttr, next_id, number),
                             MORE(IdAttr, open_flags, number)};
constexpr Field kProgId[] = {Field{"prog_id", 0, 4, Show::number, true}, MORE(IdAttr, open_flags, number)};
constexpr Field kMapId[] = {Field{"map_id", 0, 4, Show::number, true}, MORE(IdAttr, open_flags, number)};
constexpr Field kBtfId[] = {Field{"btf_id", 0, 4, Show::number, true}, MORE(IdAttr, open_flags, number)};
constexpr Field kLinkId[] = {Field{"link_id", 0, 4, Show::number, true}, MORE(IdAttr, open_flags, number)};
constexpr Field kInfo[] = {CORE(InfoAttr, bpf_fd, fd), CORE(InfoAttr, info_len, number), CORE(InfoAttr, info, info)};
constexpr Field kQuery[] = {
    CORE(ProgQueryAttr, target_fd, fd),
    CORE(ProgQueryAttr, attach_type, attach_type),
    MORE(ProgQueryAttr, query_flags, number),
    MORE(ProgQueryAttr, attach_flags, number),
    LIST(ProgQueryAttr, prog_ids, numbers_out, false, prog_cnt),
    CORE(ProgQueryAttr, prog_cnt, number),
    LIST(ProgQueryAttr, prog_attach_flags, numbers_out, false, prog_cnt),
    LIST(ProgQueryAttr, link_ids, numbers_out, false, prog_cnt),
    LIST(ProgQueryAttr, link_attach_flags, numbers_out, false, prog_cnt),
    MORE(ProgQueryAttr, revision, number),
};
constexpr Field kRawTracepoint[] = {
    MORE(RawTracepointAttr, name, string),
    CORE(RawTracepointAttr, prog_fd, fd),
    MORE(RawTracepointAttr, cookie, number),
};
constexpr Field kBtfLoad[] = {
    LIST(BtfLoadAttr, btf, btf, true, btf_size),
    CORE(BtfLoadAttr, btf_size, number),
    LIST(BtfLoadAttr, btf_log_buf, log, false, btf_log_size),
    MORE(BtfLoadAttr, btf_log_size, number),
    MORE(BtfLoadAttr, btf_log_level, number),
    MORE(BtfLoadAttr, btf_log_true_size, number),
    MORE(BtfLoadAttr, btf_flags, number),
    MORE(BtfLoadAttr, btf_token_fd, signed_number),
};
constexpr Field kTaskFd[] = {
    CORE(TaskFdQueryAttr, pid, number),         CORE(TaskFdQueryAttr, fd, number),
    MORE(TaskFdQueryAttr, flags, number),       MORE(TaskFdQueryAttr, buf_len, number),
    MORE(TaskFdQueryAttr, buf, string),         MORE(TaskFdQueryAttr, prog_id, number),
    MORE(TaskFdQueryAttr, fd_type, number),     MORE(TaskFdQueryAttr, probe_offset, number),
    MORE(TaskFdQueryAttr, probe_addr, pointer),
};
// The tail of BPF_LINK_CREATE is a union by attach type.
#define LINK_HEAD                                                                                                                \
    CORE(LinkCreateAttr, prog_fd, fd), CORE(LinkCreateAttr, target_fd, fd), CORE(LinkCreateAttr, attach_type, attach_type),      \
        MORE(LinkCreateAttr, flags, number)
#define LINK_ANCHOR                                                                                                              \
    Field{"relative_fd", 16, 4, Show::fd, false}, Field { "expected_revision", 24, 8, Show::number, false }
constexpr Field kLinkCreate[] = {LINK_HEAD, LINK_ANCHOR};
constexpr Field kLinkInterface[] = {CORE(LinkCreateAttr, prog_fd, fd), Field{"target_ifindex", 4, 4, Show::number, true},
                                    CORE(LinkCreateAttr, attach_type, attach_type), MORE(LinkCreateAttr, flags, number),
                                    LINK_ANCHOR};
constexpr Field kLinkStructOps[] = {Field{"map_fd", 0, 4, Show::fd, true}, CORE(LinkCreateAttr, attach_type, attach_type),
                                    MORE(LinkCreateAttr, flags, number)};
constexpr Field kLinkEvent[] = {LINK_HEAD, Field{"perf_event.bpf_cookie", 16, 8, Show::number, false}};
constexpr Field kLinkTracing[] = {LINK_HEAD, Field{"tracing.target_btf_id", 16, 4, Show::number, false},
                                  Field{"tracing.cookie", 24, 8, Show::number, false}};
constexpr Field kLinkIter[] = {LINK_HEAD, Field{"iter_info", 16, 8, Show::bytes, false, 24},
                               Field{"iter_info_len", 24, 4, Show::number, false}};
constexpr Field kLinkKprobes[] = {LINK_HEAD,
                                  Field{"kprobe_multi.flags", 16, 4, Show::number, false},
                                  Field{"kprobe_multi.cnt", 20, 4, Show::number, true},
                                  Field{"kprobe_multi.syms", 24, 8, Show::strings, false, 20},
                                  Field{"kprobe_multi.addrs", 32, 8, Show::addresses, false, 20},
                                  Field{"kprobe_multi.cookies", 40, 8, Show::addresses, false, 20}};
constexpr Field kLinkUprobes[] = {LINK_HEAD,
                                  Field{"uprobe_multi.path", 16, 8, Show::string, true},
                                  Field{"uprobe_multi.offsets", 24, 8, Show::addresses, true, 48},
                                  Field{"uprobe_multi.ref_ctr_offsets", 32, 8, Show::addresses, false, 48},
                                  Field{"uprobe_multi.cookies", 40, 8, Show::addresses, false, 48},
                                  Field{"uprobe_multi.cnt", 48, 4, Show::number, true},
                                  Field{"uprobe_multi.flags", 52, 4, Show::number, false},
                                  Field{"uprobe_multi.pid", 56, 4, Show::number, false},
                                  Field{"uprobe_multi.path_fd", 60, 4, Show::signed_number, false}};
constexpr Field kLinkTrampolines[] = {LINK_HEAD, Field{"tracing_multi.ids", 16, 8, Show::numbers_32, true, 32},
                                      Field{"tracing_multi.cookies", 24, 8, Show::addresses, false, 32},
                                      Field{"tracing_multi.cnt", 32, 4, Show::number, true}};
constexpr Field kLinkNetfilter[] = {
    LINK_HEAD, Field{"netfilter.pf", 16, 4, Show::number, true}, Field{"netfilter.hooknum", 20, 4, Show::number, true},
    Field{"netfilter.priority", 24, 4, Show::signed_number, true}, Field{"netfilter.flags", 28, 4, Show::number, false}};
#undef LINK_HEAD
#undef LINK_ANCHOR
constexpr Field kLinkUpdate[] = {
    CORE(LinkUpdateAttr, link_fd, fd),
    CORE(LinkUpdateAttr, new_prog_fd, fd),
    MORE(LinkUpdateAttr, flags, number),
    MORE(LinkUpdateAttr, old_prog_fd, fd),
};
constexpr Field kLinkFd[] = {Field{"link_fd", 0, 4, Show::fd, true}};
constexpr Field kIter[] = {Field{"link_fd", 0, 4, Show::fd, true}, Field{"flags", 4, 4, Show::number, false}};
constexpr Field kStats[] = {Field{"type", 0, 4, Show::stats_type, true}};
constexpr Field kBindMap[] = {Field{"prog_fd", 0, 4, Show::fd, true}, Field{"map_fd", 4, 4, Show::fd, true},
                              Field{"flags", 8, 4, Show::number, false}};
constexpr Field kToken[] = {Field{"flags", 0, 4, Show::number, false}, Field{"bpffs_fd", 4, 4, Show::number, true}};
constexpr Field kStream[] = {Field{"stream_buf", 0, 8, Show::bytes_out, true, 8},
                             Field{"stream_buf_len", 8, 4, Show::number, true}, Field{"stream_id", 12, 4, Show::number, true},
                             Field{"prog_fd", 16, 4, Show::fd, true}};

constexpr Field kAssociate[] = {Field{"map_fd", 0, 4, Show::fd, true}, Field{"prog_fd", 4, 4, Show::fd, true},
                                Field{"flags", 8, 4, Show::number, false}};

#undef CORE
#undef MORE
#undef FIELD
#undef LIST
#undef RECORDS

std::span<const Field> fields_of_link(uint32_t attach_type) {
    switch (attach_type_row(attach_type).link) {
    case LinkType::PERF_EVENT: return kLinkEvent;
    case LinkType::ITER: return kLinkIter;
    case LinkType::KPROBE_MULTI: return kLinkKprobes;
    case LinkType::UPROBE_MULTI: return kLinkUprobes;
    case LinkType::NETFILTER: return kLinkNetfilter;
    case LinkType::TRACING_MULTI: return kLinkTrampolines;
    case LinkType::RAW_TRACEPOINT:
    case LinkType::TRACING: return kLinkTracing;
    case LinkType::XDP:
    case LinkType::TCX:
    case LinkType::NETKIT: return kLinkInterface;
    case LinkType::STRUCT_OPS: return kLinkStructOps;
    case LinkType::UNSPEC:
    case LinkType::CGROUP:
    case LinkType::NETNS:
    case LinkType::SOCKMAP: break;
    }
    return kLinkCreate;
}

} // namespace

std::span<const Field> fields_of(uint32_t command, uint32_t attach_type) {
    switch (command) {
    case BPF_MAP_CREATE: return kMapCreate;
    case BPF_MAP_LOOKUP_ELEM:
    case BPF_MAP_LOOKUP_AND_DELETE_ELEM: return kLookup;
    case BPF_MAP_UPDATE_ELEM: return kUpdate;
    case BPF_MAP_DELETE_ELEM: return kDelete;
    case BPF_MAP_GET_NEXT_KEY: return kNextKey;
    case BPF_MAP_FREEZE: return kFreeze;
    case BPF_MAP_LOOKUP_BATCH:
    case BPF_MAP_LOOKUP_AND_DELETE_BATCH:
    case BPF_MAP_UPDATE_BATCH:
    case BPF_MAP_DELETE_BATCH: return kBatch;
    case BPF_PROG_LOAD: return kProgLoad;
    case BPF_OBJ_PIN:
    case BPF_OBJ_GET: return kObj;
    case BPF_PROG_ATTACH:
    case BPF_PROG_DETACH: return kProgAttach;
    case BPF_PROG_TEST_RUN: return kTestRun;
    case BPF_PROG_GET_NEXT_ID:
    case BPF_MAP_GET_NEXT_ID:
    case BPF_BTF_GET_NEXT_ID:
    case BPF_LINK_GET_NEXT_ID: return kNextId;
    case BPF_PROG_GET_FD_BY_ID: return kProgId;
    case BPF_MAP_GET_FD_BY_ID: return kMapId;
    case BPF_BTF_GET_FD_BY_ID: return kBtfId;
    case BPF_LINK_GET_FD_BY_ID: return kLinkId;
    case BPF_OBJ_GET_INFO_BY_FD: return kInfo;
    case BPF_PROG_QUERY: return kQuery;
    case BPF_RAW_TRACEPOINT_OPEN: return kRawTracepoint;
    case BPF_BTF_LOAD: return kBtfLoad;
    case BPF_TASK_FD_QUERY: return kTaskFd;
    case BPF_LINK_CREATE: return fields_of_link(attach_type);
    case BPF_LINK_UPDATE: return kLinkUpdate;
    case BPF_LINK_DETACH: return kLinkFd;
    case BPF_ITER_CREATE: return kIter;
    case BPF_ENABLE_STATS: return kStats;
    case BPF_PROG_BIND_MAP: return kBindMap;
    case uapi::BPF_TOKEN_CREATE: return kToken;
    case uapi::BPF_PROG_STREAM_READ_BY_FD: return kStream;
    case uapi::BPF_PROG_ASSOC_STRUCT_OPS: return kAssociate;
    default: return {};
    }
}

} // namespace rawbpf::inline v0::sys
