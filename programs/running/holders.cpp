// A program or map lives as long as somebody refers to it. What refers to it can be seen from outside:
//
//      /proc/PID/fd/7       -> anon_inode:bpf-map          (bpf-prog, bpf_link, btf, [perf_event])
//      /proc/PID/fdinfo/7   map_type: 1 ... map_id: 12     the id
//      /sys/fs/bpf/x        BPF_OBJ_GET opens it; /proc/self/fd/N says what it is
//
// A perf event that runs a program by ioctl has no id of the program in its fdinfo; BPF_TASK_FD_QUERY (4.18) says it. Objects
// also hold each other: a link its program, a program its maps; that stands in their own information.
#include "programs/running/holders.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <utility>

#include "runtime/base/format.h"
#include "runtime/base/numbers.h"
#include "runtime/kernel/find_object.h"
#include "runtime/sys/each_link.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/mounts.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::running {
namespace {

using sys::ObjectKind;

constexpr size_t kMostPins = 100'000;
constexpr int kDeepestPin = 16;

int number_of(std::string_view name) { return whole_number<int>(name).value_or(-1); }

constexpr std::string_view kPerfEvent = "anon_inode:[perf_event]";

// enum bpf_task_fd_type: what BPF_TASK_FD_QUERY says of a perf event.
std::string event_phrase(const sys::TaskFdQueryAttr &query, const char *text) {
    constexpr std::string_view kTypes[] = {"raw_tp", "tracepoint", "kprobe", "kretprobe", "uprobe", "uretprobe"};
    const std::string_view type = query.fd_type < std::size(kTypes) ? kTypes[query.fd_type] : "perf event";
    const std::string_view name(text, strnlen(text, query.buf_len));
    std::string out(type);
    if (!name.empty()) append(out, " {}", name);
    if (query.probe_offset != 0) append(out, "+{:#x}", query.probe_offset);
    return out;
}

} // namespace

void Holders::add(ObjectKind kind, uint32_t id, int pid, const std::string &comm, std::string via) {
    std::vector<Holder> &list = found_[{kind, id}];
    for (const Holder &holder : list)
        if (holder.pid == pid && holder.via == via) return; // a second descriptor of it
    list.push_back({pid, comm, std::move(via)});
}

void Holders::look(int pid) {
    struct Descriptor {
        std::string number, link;
    };
    std::vector<Descriptor> open;
    const Result<void> all = sys::each_symbolic_link(format("/proc/{}/fd", pid), [&](std::string_view fd, std::string_view link) {
        if (link == kPerfEvent || kind_of_link(link)) open.push_back({std::string(fd), std::string(link)});
    });
    // One that ended meanwhile holds nothing.
    if (!all && all.error().os != ENOENT && all.error().os != ESRCH) ++hidden_;
    if (open.empty()) return;
    const std::string comm = sys::first_line(format("/proc/{}/comm", pid));
    for (const Descriptor &fd : open) {
        if (fd.link == kPerfEvent) {
            char name[256] = {};
            sys::TaskFdQueryAttr query;
            query.pid = static_cast<uint32_t>(pid);
            query.fd = static_cast<uint32_t>(number_of(fd.number));
            query.buf_len = sizeof name;
            query.buf = sys::reg(name);
            // Of an event that runs no program the kernel says so, by an error.
            if (sys::task_fd_query(query)) add(ObjectKind::program, query.prog_id, pid, comm, event_phrase(query, name));
            continue;
        }
        const Result<std::string> info = sys::read_file(format("/proc/{}/fdinfo/{}", pid, fd.number));
        if (!info) continue; // it was closed meanwhile
        if (const std::optional<ObjectId> object = object_in_fdinfo(fd.link, *info)) add(object->kind, object->id, pid, comm);
    }
}

Holders Holders::scan() {
    Holders out;
    const int self = sys::own_pid();
    std::vector<int> pids;
    for (const std::string &name : sys::list_directory("/proc").value_or(std::vector<std::string>()))
        if (const int pid = number_of(name); pid > 0 && pid != self) pids.push_back(pid);
    std::sort(pids.begin(), pids.end());
    for (int pid : pids) out.look(pid);
    return out;
}

std::span<const Holder> Holders::of(ObjectKind kind, uint32_t id) const {
    const auto at = found_.find({kind, id});
    return at == found_.end() ? std::span<const Holder>() : std::span<const Holder>(at->second);
}

void PinnedPaths::add(const std::string &path, int fd, const See &see) {
    const Result<ObjectKind> kind = object_kind(fd, own_fds_.get());
    if (!kind) return; // not for lists: a BPF token
    std::optional<uint32_t> id;
    if (see) id = see(*kind, fd);
    if (!id)
        if (const Result<uint32_t> asked = object_id(*kind, fd)) id = *asked;
    if (id) found_[{*kind, *id}].push_back(path);
}

// To walk the path of each pin, and of each /proc/self/fd/N, takes as long as the rest of the questions to it.
Result<Fd> PinnedPaths::open_pin(int directory, const std::string &name, const std::string &path) {
    if (can_open_at_) {
        Result<Fd> object = sys::obj_get_at(directory, name);
        if (object || object.error().os != EINVAL) return object;
        can_open_at_ = false; // before 6.5
    }
    return sys::obj_get(path);
}

void PinnedPaths::look(const std::string &directory, int depth, const See &see) {
    if (depth > kDeepestPin) return;
    const Result<Fd> open = sys::open(directory, O_PATH | O_DIRECTORY);
    if (!open) return; // it went meanwhile
    std::vector<std::string> names = sys::list_directory(directory).value_or(std::vector<std::string>());
    std::sort(names.begin(), names.end());
    for (const std::string &name : names) {
        if (++files_ > kMostPins) return;
        const std::string path = format("{}/{}", directory, name);
        const Result<Fd> object = open_pin(open->get(), name, path);
        if (!object) { // a directory, or not for us to open, or it went meanwhile
            const Result<struct stat> st = sys::stat_file(path);
            if (st && S_ISDIR(st->st_mode)) look(path, depth + 1, see);
            continue;
        }
        add(path, object->get(), see);
    }
}

PinnedPaths PinnedPaths::scan(const See &see) {
    PinnedPaths out;
    if (Result<Fd> own = sys::open("/proc/self/fd", O_PATH | O_DIRECTORY)) out.own_fds_ = std::move(*own);
    for (const std::string &place : sys::mount_points("bpf")) out.look(place, 0, see);
    return out;
}

std::span<const std::string> PinnedPaths::of(ObjectKind kind, uint32_t id) const {
    const auto at = found_.find({kind, id});
    return at == found_.end() ? std::span<const std::string>() : std::span<const std::string>(at->second);
}

} // namespace rawbpf::inline v0::running
