// SPDX-License-Identifier: MIT
// The kernel's map types, a row each: everything that rawbpf knows of a type, for the assembler, the loader, `load` and its
// messages, `doctor`, the emulator and all listings. A new type is a new last row.
//
//      X(name, since, keys, values, contents, engine, least, flags, called, purpose, helpers)
//
//      name       BPF_MAP_TYPE_ in front of it; the assembler's word is the same in small letters. The number is the position
//      since      the kernel that brought it
//      keys       what map_alloc_check() wants of them (MapKeys)
//      values     likewise, and whether they have types (MapValues)
//      contents   how user space sees what is in it (MapContents)
//      engine     what it is in the emulator (MapEngine)
//      least      the size of the smallest value, where that isn't 4 bytes; 0: values of any size, or none
//      flags      BPF_F_ flags without which the kernel makes none (1: BPF_F_NO_PREALLOC, 0x400: BPF_F_MMAPABLE)
//      called     in "needs ring buffers, 5.8"; empty: "a kernel with map type BPF_MAP_TYPE_X"
//      purpose    what it is for, in `--syscalls`; empty: "memory that the programs and we share"
//      helpers    those for this type alone, which no other helper is for (the kernel's check_map_func_compatibility(), 6.18). With a
//                 plus in front it takes the general ones, too. Empty: the general ones
#pragma once

#include <cstdint>
#include <string_view>

namespace rawbpf::inline v0 {

/// What keys a map type has.
enum class MapKeys : uint8_t {
    unasked, ///< the kernel sets them, or checks them later
    any,     ///< any bytes, one at least
    index,   ///< a number of 4 bytes below max_entries
    none,    ///< key_size is 0
    prefix,  ///< a number of bits, then the bits: struct bpf_lpm_trie_key
    object,  ///< the 4 bytes of a descriptor; values lie at the object itself, without a max_entries
};
/// What values a map type has.
enum class MapValues : uint8_t {
    none,      ///< value_size is 0
    typed,     ///< the programs' own; their BTF is taken
    per_cpu,   ///< the same, one for each possible CPU
    reference, ///< to an object of the kernel, or bytes in the kernel's form: no BTF is taken
};
/// Whether such maps are made with the types of their keys and values. The others have a map_check_btf that refuses them.
[[nodiscard]] constexpr bool takes_btf(MapValues values) { return values == MapValues::typed || values == MapValues::per_cpu; }
/// How user space sees what is in a map.
enum class MapContents : uint8_t {
    entries, ///< keys and values, which BPF_MAP_GET_NEXT_KEY and BPF_MAP_LOOKUP_ELEM read
    ring,    ///< records that a reader takes as they come
    taken,   ///< reading takes out what is read
    asked,   ///< whether something is in it can be asked
    owned,   ///< values found by the socket, inode, task or cgroup that they belong to
    kernels, ///< a struct that the kernel calls, registered by a link
    memory,  ///< mapped, without entries
};
/// What does its work in the emulator (runtime/emulator/maps.h).
enum class MapEngine : uint8_t {
    array,    ///< values by index
    hash,     ///< values by key; LRU hashes, too
    trie,     ///< longest prefix match
    bloom,    ///< push adds, peek asks
    maps,     ///< an array of other maps
    map_set,  ///< a hash of other maps
    programs, ///< an array of programs, for tail calls
    queue,    ///< first in, first out
    stack,    ///< last in, first out
    ring,     ///< a ring buffer
    records,  ///< a perf event array: its records, without rings
    arena,    ///< memory
    targets,  ///< addresses of instructions, for gotox
    unknown,  ///< it is refused
};

// clang-format off
#define RAWBPF_MAP_TYPES(X) \
    X(UNSPEC, "", unasked, none, entries, unknown, 0, 0, "", "", "") \
    X(HASH, "3.19", any, typed, entries, hash, 0, 0, "", "", "") \
    X(ARRAY, "3.19", index, typed, entries, array, 0, 0, "", "", "") \
    X(PROG_ARRAY, "4.2", index, reference, entries, programs, 0, 0, "", "programs to go on with (tail calls)", "tail_call") \
    X(PERF_EVENT_ARRAY, "4.3", index, reference, ring, records, 0, 0, "", "rings, one for each CPU, that records come out of", \
      "perf_event_output perf_event_read_value perf_event_read skb_output xdp_output") \
    X(PERCPU_HASH, "4.6", any, per_cpu, entries, hash, 0, 0, "", "", "+map_lookup_percpu_elem") \
    X(PERCPU_ARRAY, "4.6", index, per_cpu, entries, array, 0, 0, "", "slots that each CPU has for itself", "+map_lookup_percpu_elem") \
    X(STACK_TRACE, "4.6", any, reference, entries, unknown, 8, 0, "", "stacks, found by number", "get_stackid") \
    X(CGROUP_ARRAY, "4.8", index, reference, entries, unknown, 0, 0, "", "cgroups to compare with", "skb_under_cgroup current_task_under_cgroup") \
    X(LRU_HASH, "4.10", any, typed, entries, hash, 0, 0, "", "", "") \
    X(LRU_PERCPU_HASH, "4.10", any, per_cpu, entries, hash, 0, 0, "", "", "+map_lookup_percpu_elem") \
    X(LPM_TRIE, "4.11", prefix, typed, entries, trie, 0, 1, "", "", "") \
    X(ARRAY_OF_MAPS, "4.12", index, reference, entries, maps, 0, 0, "", "", "map_lookup_elem") \
    X(HASH_OF_MAPS, "4.12", any, reference, entries, map_set, 0, 0, "", "", "map_lookup_elem") \
    X(DEVMAP, "4.14", index, reference, entries, unknown, 0, 0, "", "", "redirect_map map_lookup_elem") \
    X(SOCKMAP, "4.14", index, reference, entries, unknown, 0, 0, "", "", \
      "sk_redirect_map msg_redirect_map sock_map_update sk_select_reuseport map_lookup_elem map_delete_elem") \
    X(CPUMAP, "4.15", index, reference, entries, unknown, 0, 0, "", "", "redirect_map") \
    X(XSKMAP, "4.18", index, reference, entries, unknown, 0, 0, "", "", "redirect_map map_lookup_elem") \
    X(SOCKHASH, "4.18", any, reference, entries, unknown, 0, 0, "", "", \
      "sk_redirect_hash msg_redirect_hash sock_hash_update sk_select_reuseport map_lookup_elem map_delete_elem") \
    X(CGROUP_STORAGE, "4.19", unasked, typed, owned, unknown, 0, 0, "", "", "get_local_storage") \
    X(REUSEPORT_SOCKARRAY, "4.19", index, typed, entries, unknown, 0, 0, "", "", "sk_select_reuseport") \
    X(PERCPU_CGROUP_STORAGE, "4.20", unasked, per_cpu, owned, unknown, 0, 0, "", "", "get_local_storage") \
    X(QUEUE, "4.20", none, reference, taken, queue, 0, 0, "", "", "map_push_elem map_pop_elem map_peek_elem") \
    X(STACK, "4.20", none, reference, taken, stack, 0, 0, "", "", "map_push_elem map_pop_elem map_peek_elem") \
    X(SK_STORAGE, "5.2", object, typed, owned, unknown, 0, 1, "", "", "sk_storage_get sk_storage_delete") \
    X(DEVMAP_HASH, "5.4", any, reference, entries, unknown, 0, 0, "", "", "redirect_map map_lookup_elem") \
    X(STRUCT_OPS, "5.6", unasked, reference, kernels, unknown, 0, 0, "", "functions for the kernel to call", "") \
    X(RINGBUF, "5.8", none, none, ring, ring, 0, 0, "ring buffers", "the ring that records come out of", \
      "ringbuf_output ringbuf_reserve ringbuf_reserve_dynptr ringbuf_query") \
    X(INODE_STORAGE, "5.10", object, typed, owned, unknown, 0, 1, "inode storage", "", "inode_storage_get inode_storage_delete") \
    X(TASK_STORAGE, "5.11", object, typed, owned, unknown, 0, 1, "task storage", "", "task_storage_get task_storage_delete") \
    X(BLOOM_FILTER, "5.16", none, typed, asked, bloom, 0, 0, "Bloom filters", "", "map_push_elem map_peek_elem") \
    X(USER_RINGBUF, "6.1", none, none, ring, unknown, 0, 0, "user ring buffers", "", "user_ringbuf_drain") \
    X(CGRP_STORAGE, "6.2", object, typed, owned, unknown, 0, 1, "cgroup storage", "", "cgrp_storage_get cgrp_storage_delete") \
    X(ARENA, "6.9", none, none, memory, arena, 0, 0x400, "arenas", "memory with pointers, shared with us at one address", "") \
    X(INSN_ARRAY, "6.19", any, typed, entries, targets, 16, 0, "instruction arrays", "", "") \
    X(RHASH, "7.2", any, typed, entries, unknown, 0, 1, "", "", "")
// clang-format on

/// BPF_MAP_TYPE_*, with the kernel's names and numbers (include/uapi/linux/bpf.h).
enum class MapType : uint32_t {
#define RAWBPF_ENUMERATOR(name, ...) name,
    RAWBPF_MAP_TYPES(RAWBPF_ENUMERATOR)
#undef RAWBPF_ENUMERATOR
};

/// What is known of a map type.
struct MapTypeRow {
    std::string_view name,   ///< "HASH": without BPF_MAP_TYPE_
        since;               ///< the kernel that brought it, "5.8"; empty for UNSPEC and where it isn't known
    MapKeys keys;            ///< what map_alloc_check() of the kernel wants of them
    MapValues values;        ///< likewise
    MapContents contents;    ///< how user space sees what is in it
    MapEngine engine;        ///< what it is in the emulator
    uint32_t least;          ///< the size of the smallest value; 0: values of any size, or none
    uint32_t flags;          ///< BPF_F_ flags without which the kernel makes none
    std::string_view called, ///< in "needs ring buffers, 5.8"; empty: no word of its own
        purpose;             ///< what it is for, as a phrase; empty: memory that the programs and user space share
};

/// The row of each map type; its position is the type's number.
inline constexpr MapTypeRow kMapTypes[] = {
#define RAWBPF_ROW(name, since, keys, values, contents, engine, least, flags, called, purpose, helpers)                          \
    {#name, since, MapKeys::keys, MapValues::values, MapContents::contents, MapEngine::engine, least, flags, called, purpose},
    RAWBPF_MAP_TYPES(RAWBPF_ROW)
#undef RAWBPF_ROW
};
/// The last column, for explanations: apart, so that a loader without them doesn't have it.
inline constexpr std::string_view kMapTypeHelpers[] = {
#define RAWBPF_ROW(name, since, keys, values, contents, engine, least, flags, called, purpose, helpers) helpers,
    RAWBPF_MAP_TYPES(RAWBPF_ROW)
#undef RAWBPF_ROW
};
/// How many there are, UNSPEC included.
inline constexpr uint32_t kMapTypeCount = sizeof kMapTypes / sizeof *kMapTypes;
static_assert(uint32_t(MapType::RINGBUF) == 27 &&
              uint32_t(MapType::ARENA) == 33); // a row dropped or doubled would shift the others

/// The row of a type that isn't in the table yet: what is most likely.
inline constexpr MapTypeRow kNewMapType{"?", "", MapKeys::any, MapValues::typed, MapContents::entries, MapEngine::unknown, 0, 0,
                                        "",  ""};
/// The row of a BPF_MAP_TYPE_ number; kNewMapType for one that isn't in the table.
[[nodiscard]] constexpr const MapTypeRow &map_type_row(uint32_t type) {
    return type < kMapTypeCount ? kMapTypes[type] : kNewMapType;
}
/// The helpers that take a map of that type: names without "bpf_", one blank between; see the head of this file. Empty: the
/// general ones, and for a number that isn't in the table.
[[nodiscard]] constexpr std::string_view map_type_helpers(uint32_t type) {
    return type < kMapTypeCount ? kMapTypeHelpers[type] : std::string_view();
}
/// True for RINGBUF and USER_RINGBUF: one ring of records, whose max_entries is a number of bytes: whole pages, a power of two of
/// them.
[[nodiscard]] constexpr bool is_ring_buffer(uint32_t type) {
    return map_type_row(type).contents == MapContents::ring && map_type_row(type).values == MapValues::none;
}
/// True for maps whose values lie at the sockets, inodes, tasks or cgroups that they belong to (SK_STORAGE ...): max_entries is 0
/// (bpf_local_storage_map_alloc_check() and cgroup_storage_map_alloc() of the kernel).
[[nodiscard]] constexpr bool is_storage(uint32_t type) { return map_type_row(type).contents == MapContents::owned; }

} // namespace rawbpf::inline v0
