// Creates maps from a spec, reads and writes them.
//
// Creation passes everything that the spec knows, and removes what this kernel refuses: first BTF type ids (several map types
// refuse them, others only on older kernels), then the name (before 4.15). If it still fails, the reason is the spec or an old
// kernel, and the error says which: the map type is tried alone, in its smallest form.
//
// A per-CPU map has one value for each POSSIBLE cpu, each padded to 8 bytes:
//
//      lookup(key) ->  [ value cpu 0 |pad][ value cpu 1 |pad] ...
//
// Sources: kernel/bpf/syscall.c (map_create, generic_map_lookup_batch), hashtab.c, arraymap.c.
#include "runtime/kernel/map.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "asm/map_types.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/probes.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/names.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0 {
namespace {

// What the checks of the map types (map_alloc_check) complain of most, none of which comes with a word.
std::string_view why_invalid(const sys::MapCreateAttr &map) {
    const MapTypeRow &row = map_type_row(map.map_type);
    const bool keyless = row.keys == MapKeys::none, valueless = row.values == MapValues::none,
               indexed = row.keys == MapKeys::index;
    if (row.keys == MapKeys::unasked) return {};
    if (row.keys == MapKeys::object)
        return map.max_entries == 0 && map.key_size == 4 && (map.map_flags & BPF_F_NO_PREALLOC)
                   ? std::string_view()
                   : "storage maps have int keys, BPF_F_NO_PREALLOC, and no max_entries";
    if (map.max_entries == 0)
        return "max_entries is 0, and a map of this type needs at least 1. Some objects leave this number to their own loader; "
               "`rawbpf load --map NAME:entries=N` sets it";
    if (keyless && map.key_size != 0) return "maps of this type have no keys";
    if (!keyless && map.key_size == 0) return "maps of this type have keys: __type(key, ...)";
    if (indexed && map.key_size != 4) return "keys of maps of this type have 4 bytes";
    if (valueless && map.value_size != 0) return "maps of this type have no values";
    if (!valueless && map.value_size == 0) return "maps of this type have values: __type(value, ...)";
    if (row.keys == MapKeys::prefix && !(map.map_flags & BPF_F_NO_PREALLOC)) return "LPM tries need the flag BPF_F_NO_PREALLOC";
    return {};
}

// A ring must be a power of two and whole pages, and pages are 64 KiB on some arm64 kernels: rounded up here, so that one
// program fits all.
Result<uint32_t> ring_size(uint32_t wanted, std::string_view name) {
    uint64_t size = std::bit_ceil(std::max<uint64_t>(wanted, sys::page_size()));
    if (size > 1U << 31) return fail(Errc::invalid_argument, "map {}: a ring buffer of {} bytes is too large", name, wanted);
    return static_cast<uint32_t>(size);
}

constexpr uint32_t kLink = 1u << 13; // BPF_F_LINK, 6.4

Result<Fd> create_adapting(sys::MapCreateAttr &attr) {
    Result<Fd> fd = sys::map_create(attr);
    if (fd || fd.error().os == EPERM || fd.error().os == ENOMEM) return fd;
    if (attr.btf_fd != 0 && attr.btf_vmlinux_value_type_id == 0) {
        sys::Because why("again without BTF types: this kernel may not take them for such a map");
        attr.btf_fd = attr.btf_key_type_id = attr.btf_value_type_id = 0;
        Result<Fd> plain = sys::map_create(attr);
        if (plain) return plain;
    }
    if (attr.btf_vmlinux_value_type_id != 0 && (attr.map_flags & kLink) && fd.error().os == EINVAL) {
        sys::Because why("again without a link: before 6.4 the map itself is what registers the struct");
        attr.map_flags &= ~kLink;
        Result<Fd> plain = sys::map_create(attr);
        if (plain) return plain;
        attr.map_flags |= kLink;
    }
    // The type comes first: without it, nothing else could help, and with it the name is old news.
    if (attr.map_name[0] != '\0' && probe_feature(Feature::object_name).support == Support::no) {
        sys::Because why("again without a name: this kernel has no names for maps");
        std::memset(attr.map_name, 0, sizeof attr.map_name);
        return sys::map_create(attr);
    }
    return fd;
}

} // namespace

Result<Map> Map::create(const MapSpec &spec, int btf_fd, const KernelValue *kernel) {
    Map map;
    map.name_ = spec.name;
    map.type_ = spec.type;
    map.key_size_ = spec.key_size;
    map.value_size_ = spec.value_size;
    map.max_entries_ = spec.max_entries;
    map.flags_ = spec.flags;
    if (is_ring_buffer(spec.type)) map.max_entries_ = TRY(ring_size(spec.max_entries, spec.name));
    if (spec.type == BPF_MAP_TYPE_PERF_EVENT_ARRAY) {
        map.key_size_ = map.value_size_ = 4;
        if (map.max_entries_ == 0) map.max_entries_ = static_cast<uint32_t>(TRY(possible_cpu_count()));
    }

    Fd inner; // only a template: the kernel copies its properties
    if (spec.inner) inner = std::move(TRY_IN(create(*spec.inner, btf_fd), "map {}: its inner map", spec.name).fd_);

    sys::MapCreateAttr attr;
    attr.map_type = map.type_;
    attr.key_size = map.key_size_;
    attr.value_size = map.value_size_;
    attr.max_entries = map.max_entries_;
    attr.map_flags = spec.flags;
    attr.map_extra = spec.map_extra;
    if (spec.flags & BPF_F_NUMA_NODE) attr.numa_node = spec.numa_node;
    if (inner) attr.inner_map_fd = static_cast<uint32_t>(inner.get());
    if (kernel) {
        attr.value_size = map.value_size_ = kernel->size;
        attr.btf_vmlinux_value_type_id = kernel->type;
        if (btf_fd >= 0) attr.btf_fd = static_cast<uint32_t>(btf_fd); // must be there, though no type of it is used
        if (kernel->module_btf >= 0) {
            attr.value_type_btf_obj_fd = kernel->module_btf;
            attr.map_flags |= uapi::BPF_F_VTYPE_BTF_OBJ_FD;
        }
    }
    sys::legal_name(spec.name, attr.map_name);
    if (btf_fd >= 0 && spec.value_type != 0 && takes_btf(map_type_row(spec.type).values)) {
        attr.btf_fd = static_cast<uint32_t>(btf_fd);
        attr.btf_key_type_id = spec.key_type;
        attr.btf_value_type_id = spec.value_type;
    }
    Result<Fd> fd = create_adapting(attr);
    if (!fd) {
        Error error = in_context(std::move(fd).error(),
                                 format("creating map {} ({}, key {} bytes, value {} bytes, {} entries)", spec.name,
                                        sys::map_type_name(spec.type), map.key_size_, map.value_size_, map.max_entries_));
        if (error.os == EINVAL && probe_map_type(spec.type).support == Support::no) {
            error.kind = Errc::unsupported;
            error.hint = format("needs {}", map_type_needs(spec.type));
        } else if (error.os == EINVAL && !inner &&
                   (spec.type == BPF_MAP_TYPE_ARRAY_OF_MAPS || spec.type == BPF_MAP_TYPE_HASH_OF_MAPS)) {
            error.hint = "the kernel must know what maps it will hold: add an inner map to its definition, `__array(values, "
                         "struct {...})`, with type, key, value and entries";
        } else if (error.os == EINVAL) {
            if (std::string_view words = why_invalid(attr); !words.empty()) error.hint = words;
        }
        return Unexpected(std::move(error));
    }
    if (map.per_cpu()) TRY(possible_cpu_count()); // lookup_size() must not be a guess: the kernel writes that much
    map.flags_ &= attr.map_flags;                 // a flag may have been given up
    map.fd_ = std::move(*fd);
    return map;
}

Result<Map> Map::from_fd(Fd fd) {
    sys::MapInfo info = TRY_IN(sys::map_info(fd.get()), "asking what map descriptor {} is", fd.get());
    Map map;
    map.fd_ = std::move(fd);
    map.name_ = std::string(info.name, strnlen(info.name, sizeof info.name));
    map.type_ = info.type;
    map.key_size_ = info.key_size;
    map.value_size_ = info.value_size;
    map.max_entries_ = info.max_entries;
    map.flags_ = info.map_flags;
    if (map.per_cpu()) TRY(possible_cpu_count());
    return map;
}

bool Map::per_cpu() const { return map_type_row(type_).values == MapValues::per_cpu; }

size_t Map::lookup_size() const {
    if (!per_cpu()) return value_size_;
    return ((size_t{value_size_} + 7) & ~size_t{7}) * static_cast<size_t>(possible_cpu_count().value_or(0));
}

Result<void> Map::lookup(const void *key, void *value) const {
    TRY_IN(sys::map_lookup_elem(fd_.get(), key, value), "map {}", name_);
    return {};
}

Result<void> Map::update(const void *key, const void *value, uint64_t flags) const {
    Result<void> done = sys::map_update_elem(fd_.get(), key, value, flags);
    if (done) return done;
    Error error = std::move(done).error();
    const MapKeys keys = map_type_row(type_).keys;
    if (error.os == E2BIG && keys == MapKeys::index) {
        error.kind = Errc::invalid_argument;
        error.hint = format("there is no entry {}: it has {}", load<uint32_t>(static_cast<const std::byte *>(key)), max_entries_);
    } else if (error.os == E2BIG || (error.os == ENOSPC && keys == MapKeys::prefix)) {
        error.hint = {}; // said in front
        return Unexpected(in_context(std::move(error), format("map {} is full, with {} entries", name_, max_entries_)));
    }
    return Unexpected(in_context(std::move(error), format("map {}", name_)));
}

Result<void> Map::erase(const void *key) const {
    TRY_IN(sys::map_delete_elem(fd_.get(), key), "map {}", name_);
    return {};
}

Result<void> Map::next_key(const void *key, void *next) const {
    TRY_IN(sys::map_get_next_key(fd_.get(), key, next), "map {}", name_);
    return {};
}

Result<void> Map::freeze() const {
    TRY_IN(sys::map_freeze(fd_.get()), "map {}", name_);
    return {};
}

Result<void> Map::check_sizes(size_t key, size_t value, size_t has) const {
    if (key != key_size_)
        return fail(Errc::invalid_argument, "map {}: keys have {} bytes, and the key's type has {}", name_, key_size_, key);
    if (value != has)
        return fail(Errc::invalid_argument, "map {}: values have {} bytes, and the value's type has {}{}", name_, has, value,
                    has == value_size_ ? "" : ": it has a value for each CPU, which get_per_cpu() reads");
    return {};
}

Result<void> Map::pin(const std::string &path) const {
    TRY_IN(sys::obj_pin(fd_.get(), path), "pinning map {}", name_);
    return {};
}

} // namespace rawbpf::inline v0
