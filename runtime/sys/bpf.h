// bpf(2): one function per command, one attribute struct per group of commands.
//
//      bpf(command, union bpf_attr *attr, size)
//
// The kernel's `union bpf_attr` grows with every release, and the headers of an old distribution know only its first members.
// So this file has the members of the union as structs of its own, with the kernel's field names (include/uapi/linux/bpf.h; a
// comment has the version that added each later field). The kernel accepts a longer attr than it knows as long as the rest is
// zero, and answers E2BIG otherwise; these functions pass only as much as is used, so that even a strict kernel or sandbox
// accepts it.
//
// Only this file retries: EAGAIN on BPF_PROG_LOAD (a signal during verification), EINTR, a log buffer that is too small
// (ENOSPC), and EPERM from the memlock limit of kernels before 5.11. Errors carry the command's name, errno, and a hint from
// the table in hints.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/sys/blocking_call.h"

namespace rawbpf::inline v0::sys {

/// BPF_MAP_CREATE.
struct MapCreateAttr {
    uint32_t map_type = 0;
    uint32_t key_size = 0;
    uint32_t value_size = 0;
    uint32_t max_entries = 0;
    uint32_t map_flags = 0;
    uint32_t inner_map_fd = 0;
    uint32_t numa_node = 0;
    char map_name[16] = {}; ///< 4.15
    uint32_t map_ifindex = 0;
    uint32_t btf_fd = 0; ///< 4.18
    uint32_t btf_key_type_id = 0;
    uint32_t btf_value_type_id = 0;
    uint32_t btf_vmlinux_value_type_id = 0; ///< 5.6
    uint64_t map_extra = 0;                 ///< 5.16
    int32_t value_type_btf_obj_fd = 0;      ///< 6.9
    int32_t map_token_fd = 0;               ///< 6.9
};
static_assert(offsetof(MapCreateAttr, map_extra) == 64 && sizeof(MapCreateAttr) == 80);

/// BPF_MAP_{LOOKUP,UPDATE,DELETE,LOOKUP_AND_DELETE}_ELEM, BPF_MAP_GET_NEXT_KEY, BPF_MAP_FREEZE.
struct MapElemAttr {
    uint32_t map_fd = 0;
    uint32_t pad = 0;
    uint64_t key = 0;
    uint64_t value = 0; ///< or next_key
    uint64_t flags = 0;
};
static_assert(sizeof(MapElemAttr) == 32);

/// BPF_MAP_*_BATCH (5.6).
struct MapBatchAttr {
    uint64_t in_batch = 0;  ///< where to go on, 0: at the start
    uint64_t out_batch = 0; ///< the kernel writes where to go on
    uint64_t keys = 0;
    uint64_t values = 0;
    uint32_t count = 0; ///< in: how many fit, out: how many there are
    uint32_t map_fd = 0;
    uint64_t elem_flags = 0;
    uint64_t flags = 0;
};
static_assert(sizeof(MapBatchAttr) == 56);

/// BPF_PROG_LOAD.
struct ProgLoadAttr {
    uint32_t prog_type = 0;
    uint32_t insn_cnt = 0;
    uint64_t insns = 0;
    uint64_t license = 0;
    uint32_t log_level = 0;
    uint32_t log_size = 0;
    uint64_t log_buf = 0;
    uint32_t kern_version = 0;
    uint32_t prog_flags = 0;
    char prog_name[16] = {}; ///< 4.15
    uint32_t prog_ifindex = 0;
    uint32_t expected_attach_type = 0; ///< 4.17
    uint32_t prog_btf_fd = 0;          ///< 5.0
    uint32_t func_info_rec_size = 0;
    uint64_t func_info = 0;
    uint32_t func_info_cnt = 0;
    uint32_t line_info_rec_size = 0;
    uint64_t line_info = 0;
    uint32_t line_info_cnt = 0;
    uint32_t attach_btf_id = 0;  ///< 5.5
    uint32_t attach_prog_fd = 0; ///< or attach_btf_obj_fd, 5.11
    uint32_t core_relo_cnt = 0;  ///< 5.17
    uint64_t fd_array = 0;       ///< 5.14
    uint64_t core_relos = 0;     ///< 5.17
    uint32_t core_relo_rec_size = 0;
    uint32_t log_true_size = 0; ///< out, 6.4
    int32_t prog_token_fd = 0;  ///< 6.9
    uint32_t fd_array_cnt = 0;  ///< 6.14
};
static_assert(offsetof(ProgLoadAttr, fd_array) == 120 && offsetof(ProgLoadAttr, log_true_size) == 140);

/// BPF_OBJ_PIN, BPF_OBJ_GET.
struct ObjAttr {
    uint64_t pathname = 0;
    uint32_t bpf_fd = 0;
    uint32_t file_flags = 0; ///< 4.15
    int32_t path_fd = 0;     ///< 6.5
    uint32_t pad = 0;
};
static_assert(sizeof(ObjAttr) == 24);

/// BPF_PROG_ATTACH, BPF_PROG_DETACH.
struct ProgAttachAttr {
    uint32_t target_fd = 0; ///< or target_ifindex (tcx, netkit)
    uint32_t attach_bpf_fd = 0;
    uint32_t attach_type = 0;
    uint32_t attach_flags = 0;
    uint32_t replace_bpf_fd = 0;    ///< 5.6
    uint32_t relative_fd = 0;       ///< or relative_id, 6.6
    uint64_t expected_revision = 0; ///< 6.6
};
static_assert(sizeof(ProgAttachAttr) == 32);

/// BPF_PROG_TEST_RUN.
struct ProgTestRunAttr {
    uint32_t prog_fd = 0;
    uint32_t retval = 0; ///< out
    uint32_t data_size_in = 0;
    uint32_t data_size_out = 0; ///< in and out
    uint64_t data_in = 0;
    uint64_t data_out = 0;
    uint32_t repeat = 0;
    uint32_t duration = 0;     ///< out, ns a run
    uint32_t ctx_size_in = 0;  ///< 5.2
    uint32_t ctx_size_out = 0; ///< in and out
    uint64_t ctx_in = 0;
    uint64_t ctx_out = 0;
    uint32_t flags = 0; ///< 5.10
    uint32_t cpu = 0;
    uint32_t batch_size = 0; ///< 5.18
    uint32_t pad = 0;
};
static_assert(sizeof(ProgTestRunAttr) == 80);

/// BPF_*_GET_NEXT_ID, BPF_*_GET_FD_BY_ID.
struct IdAttr {
    uint32_t id = 0;      ///< start_id, prog_id, map_id, btf_id or link_id
    uint32_t next_id = 0; ///< out
    uint32_t open_flags = 0;
};
static_assert(sizeof(IdAttr) == 12);

/// BPF_OBJ_GET_INFO_BY_FD.
struct InfoAttr {
    uint32_t bpf_fd = 0;
    uint32_t info_len = 0; ///< in and out
    uint64_t info = 0;
};
static_assert(sizeof(InfoAttr) == 16);

/// BPF_PROG_QUERY.
struct ProgQueryAttr {
    uint32_t target_fd = 0; ///< or target_ifindex
    uint32_t attach_type = 0;
    uint32_t query_flags = 0;
    uint32_t attach_flags = 0; ///< out
    uint64_t prog_ids = 0;
    uint32_t prog_cnt = 0; ///< in and out
    uint32_t pad = 0;
    uint64_t prog_attach_flags = 0; ///< 6.0
    uint64_t link_ids = 0;          ///< 6.6
    uint64_t link_attach_flags = 0;
    uint64_t revision = 0; ///< out, 6.6
};
static_assert(sizeof(ProgQueryAttr) == 64);

/// BPF_RAW_TRACEPOINT_OPEN.
struct RawTracepointAttr {
    uint64_t name = 0;
    uint32_t prog_fd = 0;
    uint32_t pad = 0;
    uint64_t cookie = 0; ///< 6.10
};
static_assert(sizeof(RawTracepointAttr) == 24);

/// BPF_BTF_LOAD.
struct BtfLoadAttr {
    uint64_t btf = 0;
    uint64_t btf_log_buf = 0;
    uint32_t btf_size = 0;
    uint32_t btf_log_size = 0;
    uint32_t btf_log_level = 0;
    uint32_t btf_log_true_size = 0; ///< out, 6.4
    uint32_t btf_flags = 0;         ///< 6.9
    int32_t btf_token_fd = 0;       ///< 6.9
};
static_assert(sizeof(BtfLoadAttr) == 40);

/// BPF_TASK_FD_QUERY.
struct TaskFdQueryAttr {
    uint32_t pid = 0;
    uint32_t fd = 0;
    uint32_t flags = 0;
    uint32_t buf_len = 0; ///< in and out
    uint64_t buf = 0;
    uint32_t prog_id = 0;      ///< out
    uint32_t fd_type = 0;      ///< out
    uint64_t probe_offset = 0; ///< out
    uint64_t probe_addr = 0;   ///< out
};
static_assert(sizeof(TaskFdQueryAttr) == 48);

/// BPF_LINK_CREATE (5.7); the tail is a union by attach type, named by the member that is used.
struct LinkCreateAttr {
    uint32_t prog_fd = 0;   ///< or map_fd (struct_ops)
    uint32_t target_fd = 0; ///< or target_ifindex
    uint32_t attach_type = 0;
    uint32_t flags = 0;
    struct PerfEvent {
        uint64_t bpf_cookie; ///< 5.15
    };
    struct Tracing {
        uint32_t target_btf_id; ///< 5.11
        uint32_t pad;
        uint64_t cookie; ///< 5.19
    };
    struct Iter {
        uint64_t iter_info;
        uint32_t iter_info_len;
        uint32_t pad;
    };
    struct KprobeMulti { // 5.18
        uint32_t flags, cnt;
        uint64_t syms, addrs, cookies;
    };
    struct UprobeMulti { // 6.6
        uint64_t path, offsets, ref_ctr_offsets, cookies;
        uint32_t cnt, flags, pid, path_fd;
    };
    struct TracingMulti { // newer than 7.2
        uint64_t ids, cookies;
        uint32_t cnt, pad;
    };
    struct Anchored { // tcx (6.6), netkit (6.7), cgroup (6.17)
        uint32_t relative_fd;
        uint32_t pad;
        uint64_t expected_revision;
    };
    struct Netfilter { // 6.4
        uint32_t pf, hooknum;
        int32_t priority;
        uint32_t flags;
    };
    union {
        uint64_t zero[6] = {};
        PerfEvent perf_event;
        Tracing tracing;
        Iter iter;
        KprobeMulti kprobe_multi;
        UprobeMulti uprobe_multi;
        TracingMulti tracing_multi;
        Anchored anchored;
        Netfilter netfilter;
    };
};
static_assert(sizeof(LinkCreateAttr) == 64);

/// BPF_LINK_UPDATE.
struct LinkUpdateAttr {
    uint32_t link_fd = 0;
    uint32_t new_prog_fd = 0;
    uint32_t flags = 0;
    uint32_t old_prog_fd = 0;
};
static_assert(sizeof(LinkUpdateAttr) == 16);

/// BPF_LINK_DETACH, BPF_ENABLE_STATS, BPF_ITER_CREATE, BPF_PROG_BIND_MAP, BPF_TOKEN_CREATE: up to three numbers.
struct SmallAttr {
    uint32_t a = 0, b = 0, c = 0;
};

/// struct bpf_prog_info, as far as 5.16 (verified_insns). Older kernels fill less of it.
struct ProgInfo {
    uint32_t type = 0, id = 0;
    uint8_t tag[8] = {};
    uint32_t jited_prog_len = 0, xlated_prog_len = 0;
    uint64_t jited_prog_insns = 0, xlated_prog_insns = 0;
    uint64_t load_time = 0; ///< ns since boot
    uint32_t created_by_uid = 0, nr_map_ids = 0;
    uint64_t map_ids = 0;
    char name[16] = {};
    uint32_t ifindex = 0;
    uint32_t gpl_compatible = 0; ///< bit 0
    uint64_t netns_dev = 0, netns_ino = 0;
    uint32_t nr_jited_ksyms = 0, nr_jited_func_lens = 0;
    uint64_t jited_ksyms = 0, jited_func_lens = 0;
    uint32_t btf_id = 0, func_info_rec_size = 0;
    uint64_t func_info = 0;
    uint32_t nr_func_info = 0, nr_line_info = 0;
    uint64_t line_info = 0, jited_line_info = 0;
    uint32_t nr_jited_line_info = 0, line_info_rec_size = 0, jited_line_info_rec_size = 0, nr_prog_tags = 0;
    uint64_t prog_tags = 0;
    uint64_t run_time_ns = 0, run_cnt = 0; ///< 5.1, counted while statistics are on
    uint64_t recursion_misses = 0;         ///< 5.12
    uint32_t verified_insns = 0;           ///< 5.16
    uint32_t attach_btf_obj_id = 0, attach_btf_id = 0, pad = 0;
};
static_assert(offsetof(ProgInfo, run_time_ns) == 192 && sizeof(ProgInfo) == 232);

/// struct bpf_map_info.
struct MapInfo {
    uint32_t type = 0, id = 0, key_size = 0, value_size = 0, max_entries = 0, map_flags = 0;
    char name[16] = {};
    uint32_t ifindex = 0, btf_vmlinux_value_type_id = 0;
    uint64_t netns_dev = 0, netns_ino = 0;
    uint32_t btf_id = 0, btf_key_type_id = 0, btf_value_type_id = 0, btf_vmlinux_id = 0;
    uint64_t map_extra = 0; ///< 5.16
};
static_assert(sizeof(MapInfo) == 88);

/// struct bpf_btf_info.
struct BtfInfo {
    uint64_t btf = 0;
    uint32_t btf_size = 0, id = 0;
    uint64_t name = 0;
    uint32_t name_len = 0, kernel_btf = 0; ///< 5.11
};
static_assert(sizeof(BtfInfo) == 32);

/// The head of struct bpf_link_info and room for the rest, which depends on `type`.
struct LinkInfo {
    uint32_t type = 0, id = 0, prog_id = 0, pad = 0;
    uint64_t rest[8] = {};
};

// ---- maps

/// Raises RLIMIT_MEMLOCK and tries again where a kernel before 5.11 says EPERM because of it.
[[nodiscard]] Result<Fd> map_create(const MapCreateAttr &attr);
/// not_found when the key isn't there.
[[nodiscard]] Result<void> map_lookup_elem(int map_fd, const void *key, void *value, uint64_t flags = 0);
[[nodiscard]] Result<void> map_lookup_and_delete_elem(int map_fd, const void *key, void *value, uint64_t flags = 0); ///< 4.20
/// Errors: no_memory (E2BIG) for a full map, and for an index past its end.
[[nodiscard]] Result<void> map_update_elem(int map_fd, const void *key, const void *value, uint64_t flags = 0);
/// Puts a map into a map of maps (its key an index), by a copy of this process: the member is there soon after, and the copy
/// waits in our stead until no program sees what was there before.
[[nodiscard]] Result<BlockingCall> map_update_in_copy(int outer_fd, uint32_t index, int inner_fd);
[[nodiscard]] Result<void> map_delete_elem(int map_fd, const void *key);
/// The key after `key`; nullptr: the first. not_found at the end.
[[nodiscard]] Result<void> map_get_next_key(int map_fd, const void *key, void *next);
/// Read-only for user space from now on (5.2).
[[nodiscard]] Result<void> map_freeze(int map_fd);

/// What a batch command did: how many entries, and whether the map's end was reached (lookups only).
struct Batch {
    uint32_t count = 0;
    bool end = false;
};
/// BPF_MAP_LOOKUP_BATCH or, with `and_delete`, BPF_MAP_LOOKUP_AND_DELETE_BATCH (5.6). `in` is null at the start; `in` and
/// `out` hold max(4, key size) bytes and may be the same. Errors: no_memory (ENOSPC) when one bucket holds more than `count`.
[[nodiscard]] Result<Batch> map_lookup_batch(int map_fd, const void *in, void *out, void *keys, void *values, uint32_t count,
                                             bool and_delete = false, uint64_t elem_flags = 0);
/// BPF_MAP_UPDATE_BATCH (5.6). Errors: as map_update_elem().
[[nodiscard]] Result<Batch> map_update_batch(int map_fd, const void *keys, const void *values, uint32_t count,
                                             uint64_t elem_flags = 0);
[[nodiscard]] Result<Batch> map_delete_batch(int map_fd, const void *keys, uint32_t count);

// ---- programs and BTF

/// Loads without asking for a log. attr's log fields are ignored.
[[nodiscard]] Result<Fd> prog_load(const ProgLoadAttr &attr);
/// Loads with a log at `level` (BPF_LOG_*), whatever its size up to 16 MiB: the buffer grows as long as the kernel says
/// ENOSPC. `log` is what the verifier said, also on success. A program that is valid but whose log doesn't fit is loaded
/// without one.
[[nodiscard]] Result<Fd> prog_load(const ProgLoadAttr &attr, uint32_t level, std::string &log);
inline constexpr size_t kLogLimit = (16 << 20) - 1; ///< the buffer: UINT_MAX >> 8, what every kernel takes
/// The same of a program that was refused without a log, for the reason: the verifier is asked once, whatever the log's size.
/// Of a log that has no room in kLogLimit bytes, `log` is the end (6.4), or the reason alone, for which the verifier is asked
/// once more.
[[nodiscard]] Result<Fd> prog_load_refused(const ProgLoadAttr &attr, uint32_t level, std::string &log);
/// BPF_BTF_LOAD (4.18); with a log when `log` is given.
[[nodiscard]] Result<Fd> btf_load(Bytes btf, std::string *log = nullptr, uint32_t level = 1);

/// Runs a program (BPF_PROG_TEST_RUN); `attr`'s outputs are filled.
[[nodiscard]] Result<void> prog_test_run(ProgTestRunAttr &attr);
[[nodiscard]] Result<void> prog_attach(const ProgAttachAttr &attr);
[[nodiscard]] Result<void> prog_detach(const ProgAttachAttr &attr);
[[nodiscard]] Result<void> prog_query(ProgQueryAttr &attr);
/// Keeps `map_fd` alive as long as the program (5.10).
[[nodiscard]] Result<void> prog_bind_map(int prog_fd, int map_fd, uint32_t flags = 0);
/// `name` empty: what the program was loaded for (fentry, tp_btf, LSM).
[[nodiscard]] Result<Fd> raw_tracepoint_open(const std::string &name, int prog_fd, uint64_t cookie = 0);

// ---- links

[[nodiscard]] Result<Fd> link_create(const LinkCreateAttr &attr);
[[nodiscard]] Result<void> link_update(const LinkUpdateAttr &attr);
[[nodiscard]] Result<void> link_detach(int link_fd);                     ///< 5.9
[[nodiscard]] Result<Fd> iter_create(int link_fd, uint32_t flags = 0);   ///< 5.8
[[nodiscard]] Result<Fd> enable_stats(uint32_t type);                    ///< 5.8; on while the descriptor is open
[[nodiscard]] Result<Fd> token_create(int bpffs_fd, uint32_t flags = 0); ///< 6.9
[[nodiscard]] Result<void> task_fd_query(TaskFdQueryAttr &attr);         ///< 4.17
/// Reads what the program printed to its stream (1: stdout, 2: stderr); bytes read (6.17).
[[nodiscard]] Result<size_t> prog_stream_read(int prog_fd, uint32_t stream, void *into, uint32_t size);

// ---- pins, ids, information

[[nodiscard]] Result<void> obj_pin(int fd, const std::string &path);
[[nodiscard]] Result<Fd> obj_get(const std::string &path, uint32_t file_flags = 0);
/// A pin of an open directory, whose path isn't walked again (6.5; EINVAL before).
[[nodiscard]] Result<Fd> obj_get_at(int directory, const std::string &name);

enum class ObjectKind : uint8_t { program, map, btf, link };
/// The smallest id above `after`; not_found at the end. Links since 5.8.
[[nodiscard]] Result<uint32_t> next_id(ObjectKind kind, uint32_t after);
[[nodiscard]] Result<Fd> fd_by_id(ObjectKind kind, uint32_t id);

/// BPF_OBJ_GET_INFO_BY_FD; `info` may carry buffers in. A kernel that knows less leaves the rest as it was.
[[nodiscard]] Result<uint32_t> obj_get_info(int fd, void *info, uint32_t size);
[[nodiscard]] Result<ProgInfo> prog_info(int fd);
[[nodiscard]] Result<MapInfo> map_info(int fd);

/// A name the kernel takes: 15 characters of [A-Za-z0-9_.], others become '_'. `out` holds 16 bytes.
void legal_name(std::string_view name, char *out);

} // namespace rawbpf::inline v0::sys
