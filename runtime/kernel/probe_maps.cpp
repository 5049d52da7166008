// Map types: the smallest map of each that a kernel knowing the type accepts.
//
// The types have different requirements: local storage needs BTF for its key, maps of maps need a map, struct_ops needs a type
// of the kernel's (any type: a kernel that knows struct_ops answers ENOTSUPP for a type that isn't one, others say EINVAL).
#include "asm/map_types.h"
#include "runtime/kernel/probe_load.h"

#include <cerrno>
#include <map>

#include <linux/bpf.h>

#include "runtime/base/format.h"
#include "runtime/base/remembering.h"
#include "runtime/kernel/probe_maps.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/names.h"

namespace rawbpf::inline v0 {
namespace {

constexpr int kNotSupported = 524; // the kernel's ENOTSUPP, which it shouldn't show but does

// A header, one type "int x" of 32 bits (id 1), and its name.
constexpr uint8_t kIntBtf[] = {0x9f, 0xeb, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 16, 0, 0, 0, 3, 0, 0, 0, //
                               1,    0,    0, 0, 0,  0, 0, 1, 4, 0, 0, 0, 32, 0, 0, 1,                          //
                               0,    'x',  0};

int made(const sys::MapCreateAttr &attr) {
    Result<Fd> map = sys::map_create(attr);
    return map ? 0 : map.error().os;
}

int try_storage(MapType type, uint32_t flags) {
    Result<Fd> btf = load_int_btf();
    if (!btf) return btf.error().os;
    sys::MapCreateAttr attr = tiny_map(type, 4, 4, 0, flags);
    attr.btf_fd = static_cast<uint32_t>(btf->get());
    attr.btf_key_type_id = attr.btf_value_type_id = 1;
    return made(attr);
}

int try_map_of_maps(MapType type) {
    Result<Fd> inner = sys::map_create(tiny_map(MapType::ARRAY, 4, 4, 1));
    if (!inner) return inner.error().os;
    sys::MapCreateAttr attr = tiny_map(type, 4, 4, 1);
    attr.inner_map_fd = static_cast<uint32_t>(inner->get());
    return made(attr);
}

// 0 or errno. What a type wants of its sizes is in its row; where it needs another object, that is made first.
int try_map_type(MapType type) {
    const MapTypeRow &row = map_type_row(static_cast<uint32_t>(type));
    if (row.contents == MapContents::kernels) return try_struct_ops(0);
    if (row.engine == MapEngine::maps || row.engine == MapEngine::map_set) return try_map_of_maps(type);
    if (row.keys == MapKeys::object) return try_storage(type, row.flags);
    if (row.contents == MapContents::owned) return made(tiny_map(type, 8, 8, 0)); // the key is a cgroup's number
    if (is_ring_buffer(static_cast<uint32_t>(type))) return made(tiny_map(type, 0, 0, static_cast<uint32_t>(sys::page_size())));
    const uint32_t key = row.keys == MapKeys::none ? 0 : row.keys == MapKeys::prefix ? 8 : 4;
    const uint32_t value = row.values == MapValues::none ? 0 : row.least ? row.least : 4;
    return made(tiny_map(type, key, value, 1, row.flags));
}

std::map<uint32_t, Probed> answers;

} // namespace

sys::MapCreateAttr tiny_map(MapType type, uint32_t key, uint32_t value, uint32_t entries, uint32_t flags) {
    sys::MapCreateAttr attr;
    attr.map_type = static_cast<uint32_t>(type);
    attr.key_size = key;
    attr.value_size = value;
    attr.max_entries = entries;
    attr.map_flags = flags;
    return attr;
}

Result<Fd> load_int_btf() { return sys::btf_load(std::as_bytes(std::span(kIntBtf))); }

int try_struct_ops(uint32_t flags) {
    sys::MapCreateAttr attr = tiny_map(MapType::STRUCT_OPS, 4, 4, 1, flags);
    attr.btf_vmlinux_value_type_id = 1;
    int os = made(attr);
    return os == kNotSupported ? 0 : os;
}

Probed probe_map_type(uint32_t type) {
    const Remembering lock;
    if (auto known = answers.find(type); known != answers.end()) return known->second;
    sys::Because why("a probe: does this kernel have this type of map?");
    int os = try_map_type(MapType{type});
    Probed answer = os == 0 ? Probed{Support::yes} : Probed{support_from(os), errno_name(os)};
    if (answer.support == Support::unasked) return answer; // next time, perhaps
    return answers.emplace(type, std::move(answer)).first->second;
}

bool has_map_type(uint32_t type) { return probe_map_type(type).support == Support::yes; }

std::string map_type_needs(uint32_t type) {
    const MapTypeRow &row = map_type_row(type);
    if (!row.called.empty()) return format("{}, {}", row.called, row.since);
    return format("a kernel with map type {}", sys::map_type_name(type));
}

void forget_map_types() {
    const Remembering lock;
    answers.clear();
}

} // namespace rawbpf::inline v0
