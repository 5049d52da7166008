// bpf(2), one function per command; see bpf.h for the picture.
//
// Three things happen on the way into the kernel, each in one place:
//
//      used_size()     how much of the attribute struct is passed: up to its last byte that isn't zero, but never less than
//                      the command's outputs need. The kernel fills up with zeros.
//      command()       makes the call; repeats it on EINTR, and on EAGAIN from BPF_PROG_LOAD, which means that a signal came
//                      during a long verification (kernel/bpf/verifier.c, do_check; five times as a limit, since a profiler's
//                      own timer could otherwise keep it from ever finishing).
//      with_memlock()  kernels before 5.11 charge maps and programs to RLIMIT_MEMLOCK, whose default is 64 KiB, and say EPERM.
//                      Newer ones count in the memory cgroup. Instead of asking for the version, the limit is raised and the
//                      call repeated; when that didn't help, the limit was not the reason and is put back.
#include "runtime/sys/bpf.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <type_traits>

#include "runtime/base/fail.h"
#include "runtime/sys/hints.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/names.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::sys {
namespace {

constexpr size_t kLogStart = 64 << 10;

template <class Attr> size_t used_size(const Attr &attr, size_t at_least = 4) {
    static_assert(std::has_unique_object_representations_v<Attr> || std::is_same_v<Attr, LinkCreateAttr>);
    const auto *bytes = reinterpret_cast<const unsigned char *>(&attr);
    size_t size = sizeof attr;
    // The structs have no padding, and their members are all initialised; the analyzer loses track of the union in
    // LinkCreateAttr.
    while (size > at_least && bytes[size - 1] == 0) --size; // NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult)
    return (size + 3) & ~size_t{3};
}

long command(uint32_t number, void *attr, size_t size) {
    for (int tries = 0;; ++tries) {
        long result = invoke(__NR_bpf, number, reg(attr), size);
        // An interrupted test run is the caller's business: whoever pressed Ctrl-C doesn't want it started afresh.
        if (result == -EINTR && number != BPF_PROG_TEST_RUN) continue;
        if (result == -EAGAIN && number == BPF_PROG_LOAD && tries < 5) continue;
        return result;
    }
}

template <class Call> long with_memlock(Call &&call) {
    long result = call();
    if (result != -EPERM) return result;
    rlimit before{};
    if (invoke(__NR_prlimit64, 0, RLIMIT_MEMLOCK, 0, reg(&before)) < 0 || before.rlim_cur == RLIM_INFINITY) return result;
    Because why("kernels before 5.11 answer EPERM when the memlock limit is too small");
    rlimit wanted{RLIM_INFINITY, RLIM_INFINITY};
    if (invoke(__NR_prlimit64, 0, RLIMIT_MEMLOCK, reg(&wanted), 0) < 0) {
        if (before.rlim_cur == before.rlim_max) return result;
        wanted = {before.rlim_max, before.rlim_max};
        if (invoke(__NR_prlimit64, 0, RLIMIT_MEMLOCK, reg(&wanted), 0) < 0) return result;
    }
    result = call();
    if (result == -EPERM) invoke(__NR_prlimit64, 0, RLIMIT_MEMLOCK, reg(&before), 0);
    return result;
}

Unexpected refused(uint32_t number, long result) {
    int os = static_cast<int>(-result);
    Error error = os_error(os, command_name(number), bpf_hint(number, os));
    // Of other commands it is an attribute or a flag that this kernel doesn't know; here the map has a limit.
    if (os == E2BIG && (number == BPF_MAP_UPDATE_ELEM || number == BPF_MAP_UPDATE_BATCH)) error.kind = Errc::no_memory;
    return Unexpected(std::move(error));
}

Result<void> done(uint32_t number, long result) {
    if (result < 0) return refused(number, result);
    return {};
}

Result<Fd> descriptor(uint32_t number, long result) {
    if (result < 0) return refused(number, result);
    return Fd(static_cast<int>(result));
}

// Calls `attempt(buffer, size, true_size)` with growing buffers until the log fits. Returns the last result.
template <class Attempt> long with_growing_log(std::string &log, Attempt &&attempt) {
    for (size_t size = kLogStart;;) {
        log.assign(size, '\0');
        uint32_t true_size = 0;
        long result = attempt(log.data(), static_cast<uint32_t>(size), true_size);
        if (result == -ENOSPC && size < kLogLimit) {
            size = true_size > size ? true_size : size * 8;
            if (size > kLogLimit) size = kLogLimit;
            continue;
        }
        log.resize(strnlen(log.data(), log.size()));
        log.shrink_to_fit();
        return result;
    }
}

} // namespace

Result<Fd> map_create(const MapCreateAttr &attr) {
    MapCreateAttr copy = attr;
    return descriptor(BPF_MAP_CREATE, with_memlock([&] {
                          return command(BPF_MAP_CREATE, &copy, used_size(copy, offsetof(MapCreateAttr, inner_map_fd)));
                      }));
}

namespace {
long element(uint32_t number, int map_fd, const void *key, const void *value, uint64_t flags) {
    MapElemAttr attr{static_cast<uint32_t>(map_fd), 0, reg(key), reg(value), flags};
    return command(number, &attr, number == BPF_MAP_FREEZE ? 4 : sizeof attr);
}
} // namespace

Result<void> map_lookup_elem(int map_fd, const void *key, void *value, uint64_t flags) {
    return done(BPF_MAP_LOOKUP_ELEM, element(BPF_MAP_LOOKUP_ELEM, map_fd, key, value, flags));
}

Result<void> map_lookup_and_delete_elem(int map_fd, const void *key, void *value, uint64_t flags) {
    return done(BPF_MAP_LOOKUP_AND_DELETE_ELEM, element(BPF_MAP_LOOKUP_AND_DELETE_ELEM, map_fd, key, value, flags));
}

Result<void> map_update_elem(int map_fd, const void *key, const void *value, uint64_t flags) {
    return done(BPF_MAP_UPDATE_ELEM, element(BPF_MAP_UPDATE_ELEM, map_fd, key, value, flags));
}

Result<BlockingCall> map_update_in_copy(int outer_fd, uint32_t index, int inner_fd) {
    const auto value = static_cast<uint32_t>(inner_fd);
    MapElemAttr attr; // the copy has its own, and its own of what it points to
    attr.map_fd = static_cast<uint32_t>(outer_fd);
    attr.key = reg(&index);
    attr.value = reg(&value);
    return BlockingCall::call(__NR_bpf, {BPF_MAP_UPDATE_ELEM, reg(&attr), sizeof attr, 0, 0, 0}, outer_fd, inner_fd);
}

Result<void> map_delete_elem(int map_fd, const void *key) {
    return done(BPF_MAP_DELETE_ELEM, element(BPF_MAP_DELETE_ELEM, map_fd, key, nullptr, 0));
}

Result<void> map_get_next_key(int map_fd, const void *key, void *next) {
    return done(BPF_MAP_GET_NEXT_KEY, element(BPF_MAP_GET_NEXT_KEY, map_fd, key, next, 0));
}

Result<void> map_freeze(int map_fd) { return done(BPF_MAP_FREEZE, element(BPF_MAP_FREEZE, map_fd, nullptr, nullptr, 0)); }

Result<Batch> map_lookup_batch(int map_fd, const void *in, void *out, void *keys, void *values, uint32_t count, bool and_delete,
                               uint64_t elem_flags) {
    uint32_t number = and_delete ? BPF_MAP_LOOKUP_AND_DELETE_BATCH : BPF_MAP_LOOKUP_BATCH;
    MapBatchAttr attr{reg(in), reg(out), reg(keys), reg(values), count, static_cast<uint32_t>(map_fd), elem_flags, 0};
    long result = command(number, &attr, sizeof attr);
    if (result == -ENOENT) return Batch{attr.count, true}; // the end; the last entries may have come with it
    if (result < 0) return refused(number, result);
    return Batch{attr.count, false};
}

Result<Batch> map_update_batch(int map_fd, const void *keys, const void *values, uint32_t count, uint64_t elem_flags) {
    MapBatchAttr attr{0, 0, reg(keys), reg(values), count, static_cast<uint32_t>(map_fd), elem_flags, 0};
    long result = command(BPF_MAP_UPDATE_BATCH, &attr, sizeof attr);
    if (result < 0) return refused(BPF_MAP_UPDATE_BATCH, result);
    return Batch{attr.count, false};
}

Result<Batch> map_delete_batch(int map_fd, const void *keys, uint32_t count) {
    MapBatchAttr attr{0, 0, reg(keys), 0, count, static_cast<uint32_t>(map_fd), 0, 0};
    long result = command(BPF_MAP_DELETE_BATCH, &attr, sizeof attr);
    if (result < 0) return refused(BPF_MAP_DELETE_BATCH, result);
    return Batch{attr.count, false};
}

Result<Fd> prog_load(const ProgLoadAttr &attr) {
    ProgLoadAttr copy = attr;
    copy.log_level = copy.log_size = copy.log_true_size = 0;
    copy.log_buf = 0;
    return descriptor(BPF_PROG_LOAD, with_memlock([&] {
                          return command(BPF_PROG_LOAD, &copy, used_size(copy, offsetof(ProgLoadAttr, log_level)));
                      }));
}

Result<Fd> prog_load(const ProgLoadAttr &attr, uint32_t level, std::string &log) {
    ProgLoadAttr copy = attr;
    copy.log_level = level;
    long result = with_growing_log(log, [&](char *buffer, uint32_t size, uint32_t &true_size) {
        copy.log_buf = reg(buffer);
        copy.log_size = size;
        copy.log_true_size = 0;
        long r = with_memlock([&] {
            return command(BPF_PROG_LOAD, &copy,
                           used_size(copy, offsetof(ProgLoadAttr, log_true_size) + sizeof copy.log_true_size));
        });
        true_size = copy.log_true_size;
        return r;
    });
    if (result == -ENOSPC) return prog_load(attr); // 16 MiB were not enough for the log; the program may be fine
    return descriptor(BPF_PROG_LOAD, result);
}

Result<Fd> prog_load_refused(const ProgLoadAttr &attr, uint32_t level, std::string &log) {
    ProgLoadAttr copy = attr;
    const std::unique_ptr<char[]> buffer(new char[kLogLimit]); // pages that the log doesn't reach stay untouched
    const auto load = [&](uint32_t at_level) {
        buffer[0] = 0;
        copy.log_level = at_level;
        copy.log_buf = reg(buffer.get());
        copy.log_size = kLogLimit;
        copy.log_true_size = 0;
        const long result = with_memlock([&] {
            return command(BPF_PROG_LOAD, &copy,
                           used_size(copy, offsetof(ProgLoadAttr, log_true_size) + sizeof copy.log_true_size));
        });
        log.assign(buffer.get(), strnlen(buffer.get(), kLogLimit));
        return result;
    };
    long result = load(level);
    if (result == -ENOSPC && copy.log_true_size == 0) { // before 6.4 the start is kept, and the reason stands at the end
        Because why("the log was full before it came to the reason: now the reason alone");
        result = load(uapi::BPF_LOG_STATS);
    }
    return descriptor(BPF_PROG_LOAD, result);
}

Result<Fd> btf_load(Bytes btf, std::string *log, uint32_t level) {
    BtfLoadAttr attr;
    attr.btf = reg(btf.data());
    attr.btf_size = static_cast<uint32_t>(btf.size());
    if (!log) return descriptor(BPF_BTF_LOAD, with_memlock([&] { return command(BPF_BTF_LOAD, &attr, used_size(attr)); }));
    attr.btf_log_level = level;
    long result = with_growing_log(*log, [&](char *buffer, uint32_t size, uint32_t &true_size) {
        attr.btf_log_buf = reg(buffer);
        attr.btf_log_size = size;
        attr.btf_log_true_size = 0;
        long r = with_memlock([&] { return command(BPF_BTF_LOAD, &attr, used_size(attr, offsetof(BtfLoadAttr, btf_flags))); });
        true_size = attr.btf_log_true_size;
        return r;
    });
    return descriptor(BPF_BTF_LOAD, result);
}

Result<void> prog_test_run(ProgTestRunAttr &attr) {
    return done(BPF_PROG_TEST_RUN, command(BPF_PROG_TEST_RUN, &attr, used_size(attr, offsetof(ProgTestRunAttr, ctx_size_in))));
}

Result<void> prog_attach(const ProgAttachAttr &attr) {
    ProgAttachAttr copy = attr;
    return done(BPF_PROG_ATTACH, command(BPF_PROG_ATTACH, &copy, used_size(copy, 16)));
}

Result<void> prog_detach(const ProgAttachAttr &attr) {
    ProgAttachAttr copy = attr;
    return done(BPF_PROG_DETACH, command(BPF_PROG_DETACH, &copy, used_size(copy, 16)));
}

Result<void> prog_query(ProgQueryAttr &attr) {
    return done(BPF_PROG_QUERY, command(BPF_PROG_QUERY, &attr, used_size(attr, offsetof(ProgQueryAttr, pad))));
}

Result<void> prog_bind_map(int prog_fd, int map_fd, uint32_t flags) {
    SmallAttr attr{static_cast<uint32_t>(prog_fd), static_cast<uint32_t>(map_fd), flags};
    return done(BPF_PROG_BIND_MAP, command(BPF_PROG_BIND_MAP, &attr, sizeof attr));
}

Result<Fd> raw_tracepoint_open(const std::string &name, int prog_fd, uint64_t cookie) {
    RawTracepointAttr attr;
    attr.name = name.empty() ? 0 : reg(name.c_str());
    attr.prog_fd = static_cast<uint32_t>(prog_fd);
    attr.cookie = cookie;
    return descriptor(BPF_RAW_TRACEPOINT_OPEN, command(BPF_RAW_TRACEPOINT_OPEN, &attr, used_size(attr, 12)));
}

Result<Fd> link_create(const LinkCreateAttr &attr) {
    LinkCreateAttr copy = attr;
    return descriptor(BPF_LINK_CREATE, command(BPF_LINK_CREATE, &copy, used_size(copy, 16)));
}

Result<void> link_update(const LinkUpdateAttr &attr) {
    LinkUpdateAttr copy = attr;
    return done(BPF_LINK_UPDATE, command(BPF_LINK_UPDATE, &copy, sizeof copy));
}

Result<void> link_detach(int link_fd) {
    SmallAttr attr{static_cast<uint32_t>(link_fd)};
    return done(BPF_LINK_DETACH, command(BPF_LINK_DETACH, &attr, 4));
}

Result<Fd> iter_create(int link_fd, uint32_t flags) {
    SmallAttr attr{static_cast<uint32_t>(link_fd), flags};
    return descriptor(BPF_ITER_CREATE, command(BPF_ITER_CREATE, &attr, 8));
}

Result<Fd> enable_stats(uint32_t type) {
    SmallAttr attr{type};
    return descriptor(BPF_ENABLE_STATS, command(BPF_ENABLE_STATS, &attr, 4));
}

Result<Fd> token_create(int bpffs_fd, uint32_t flags) {
    SmallAttr attr{flags, static_cast<uint32_t>(bpffs_fd)};
    return descriptor(uapi::BPF_TOKEN_CREATE, command(uapi::BPF_TOKEN_CREATE, &attr, 8));
}

Result<void> task_fd_query(TaskFdQueryAttr &attr) {
    return done(BPF_TASK_FD_QUERY, command(BPF_TASK_FD_QUERY, &attr, sizeof attr));
}

Result<size_t> prog_stream_read(int prog_fd, uint32_t stream, void *into, uint32_t size) {
    struct {
        uint64_t stream_buf;
        uint32_t stream_buf_len, stream_id, prog_fd, pad;
    } attr{reg(into), size, stream, static_cast<uint32_t>(prog_fd), 0};
    long result = command(uapi::BPF_PROG_STREAM_READ_BY_FD, &attr, 20);
    if (result < 0) return refused(uapi::BPF_PROG_STREAM_READ_BY_FD, result);
    return static_cast<size_t>(result);
}

Result<void> obj_pin(int fd, const std::string &path) {
    ObjAttr attr;
    attr.pathname = reg(path.c_str());
    attr.bpf_fd = static_cast<uint32_t>(fd);
    TRY_IN(done(BPF_OBJ_PIN, command(BPF_OBJ_PIN, &attr, used_size(attr, 12))), "{}", path);
    return {};
}

Result<Fd> obj_get(const std::string &path, uint32_t file_flags) {
    ObjAttr attr;
    attr.pathname = reg(path.c_str());
    attr.file_flags = file_flags;
    return TRY_IN(descriptor(BPF_OBJ_GET, command(BPF_OBJ_GET, &attr, used_size(attr, 12))), "{}", path);
}

Result<Fd> obj_get_at(int directory, const std::string &name) {
    ObjAttr attr;
    attr.pathname = reg(name.c_str());
    attr.file_flags = uapi::BPF_F_PATH_FD;
    attr.path_fd = directory;
    return TRY_IN(descriptor(BPF_OBJ_GET, command(BPF_OBJ_GET, &attr, used_size(attr, 12))), "{}", name);
}

Result<uint32_t> next_id(ObjectKind kind, uint32_t after) {
    constexpr uint32_t kCommands[] = {BPF_PROG_GET_NEXT_ID, BPF_MAP_GET_NEXT_ID, BPF_BTF_GET_NEXT_ID, BPF_LINK_GET_NEXT_ID};
    uint32_t number = kCommands[static_cast<int>(kind)];
    IdAttr attr{after};
    long result = command(number, &attr, 8);
    if (result < 0) return refused(number, result);
    return attr.next_id;
}

Result<Fd> fd_by_id(ObjectKind kind, uint32_t id) {
    constexpr uint32_t kCommands[] = {BPF_PROG_GET_FD_BY_ID, BPF_MAP_GET_FD_BY_ID, BPF_BTF_GET_FD_BY_ID, BPF_LINK_GET_FD_BY_ID};
    uint32_t number = kCommands[static_cast<int>(kind)];
    IdAttr attr{id};
    return descriptor(number, command(number, &attr, 4));
}

Result<uint32_t> obj_get_info(int fd, void *info, uint32_t size) {
    InfoAttr attr{static_cast<uint32_t>(fd), size, reg(info)};
    long result = command(BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof attr);
    if (result < 0) return refused(BPF_OBJ_GET_INFO_BY_FD, result);
    return attr.info_len;
}

Result<ProgInfo> prog_info(int fd) {
    ProgInfo info;
    TRY(obj_get_info(fd, &info, sizeof info));
    return info;
}

Result<MapInfo> map_info(int fd) {
    MapInfo info;
    TRY(obj_get_info(fd, &info, sizeof info));
    return info;
}

void legal_name(std::string_view name, char *out) {
    size_t i = 0;
    for (; i < name.size() && i < 15; ++i) {
        char c = name[i];
        bool legal = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
        out[i] = legal ? c : '_';
    }
    for (; i < 16; ++i) out[i] = '\0';
}

} // namespace rawbpf::inline v0::sys
