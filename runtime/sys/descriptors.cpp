// A descriptor's number is free again when it is closed, and what it meant is forgotten then.
#include "runtime/sys/descriptors.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <utility>

#include "runtime/base/bytes.h"
#include "runtime/base/format.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/contents.h"
#include "runtime/sys/names.h"

namespace rawbpf::inline v0::sys {
namespace {

constexpr size_t kMostName = 48;

std::string text_of(const char (&name)[16]) { return std::string(name, strnlen(name, sizeof name)); }

template <class Attr> Attr attributes(const Call &call) {
    Attr attr;
    const std::vector<std::byte> given = own_memory(call.args[1], std::min<size_t>(call.args[2], sizeof attr));
    std::memcpy(static_cast<void *>(&attr), given.data(), given.size());
    return attr;
}

} // namespace

const Descriptor *Descriptors::find(int fd) const {
    const auto it = known_.find(fd);
    return it == known_.end() ? nullptr : &it->second;
}

void Descriptors::see(const Call &call, long result) {
    const auto first = static_cast<int>(call.args[0]);
    if (call.number == __NR_close) {
        known_.erase(first);
        return;
    }
    if (result < 0) return;
    const auto fd = static_cast<int>(result);
    if (call.number == __NR_bpf) see_bpf(call, fd);
    if (call.number == __NR_openat) known_[fd] = {Descriptor::other, own_string(call.args[1], kMostName)};
    if (call.number == __NR_perf_event_open) known_[fd] = {Descriptor::other, "perf event"};
    if (call.number == __NR_fcntl && call.args[1] == F_DUPFD_CLOEXEC) {
        if (const Descriptor *same = find(first))
            known_[fd] = Descriptor(*same);
        else
            known_.erase(fd);
    }
}

void Descriptors::see_bpf(const Call &call, int fd) {
    switch (call.args[0]) {
    case BPF_MAP_CREATE: {
        const auto attr = attributes<MapCreateAttr>(call);
        std::string name = text_of(attr.map_name);
        known_[fd] = {Descriptor::map, name.empty() ? map_type_name(attr.map_type) : std::move(name), attr.key_size,
                      attr.value_size};
        break;
    }
    case BPF_PROG_LOAD: {
        const auto attr = attributes<ProgLoadAttr>(call);
        std::string name = text_of(attr.prog_name);
        known_[fd] = {Descriptor::program, name.empty() ? prog_type_name(attr.prog_type) : std::move(name)};
        break;
    }
    case BPF_BTF_LOAD: known_[fd] = {Descriptor::btf, "BTF"}; break;
    case BPF_OBJ_GET: known_[fd] = {Descriptor::other, own_string(attributes<ObjAttr>(call).pathname, kMostName)}; break;
    case BPF_PROG_GET_FD_BY_ID: known_[fd] = {Descriptor::program, format("program {}", attributes<IdAttr>(call).id)}; break;
    case BPF_MAP_GET_FD_BY_ID: known_[fd] = {Descriptor::map, format("map {}", attributes<IdAttr>(call).id)}; break;
    case BPF_BTF_GET_FD_BY_ID: known_[fd] = {Descriptor::btf, format("BTF {}", attributes<IdAttr>(call).id)}; break;
    case BPF_LINK_GET_FD_BY_ID: known_[fd] = {Descriptor::link, format("link {}", attributes<IdAttr>(call).id)}; break;
    case BPF_LINK_CREATE: known_[fd] = {Descriptor::link, "link"}; break;
    case BPF_RAW_TRACEPOINT_OPEN:
        known_[fd] = {Descriptor::link, own_string(attributes<RawTracepointAttr>(call).name, kMostName)};
        break;
    case BPF_ITER_CREATE: known_[fd] = {Descriptor::other, "iterator"}; break;
    case BPF_ENABLE_STATS: known_[fd] = {Descriptor::other, "statistics"}; break;
    default: break;
    }
}

} // namespace rawbpf::inline v0::sys
