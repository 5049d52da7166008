// Advice on maps that a helper doesn't take: which types it takes, which helpers are for the map.
//
// The pairs are those of the kernel's check_map_func_compatibility(), 6.18. Types that aren't in the table take every helper for
// maps that isn't in it either.
#include <linux/bpf.h>

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/format.h"
#include "runtime/kernel/refusal_parts.h"
#include "runtime/sys/names.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::refusal {
namespace {

struct Pair {
    uint32_t type;
    std::string_view helper;
};

constexpr Pair kPairs[] = {
    {BPF_MAP_TYPE_PROG_ARRAY, "bpf_tail_call"},
    {BPF_MAP_TYPE_PERF_EVENT_ARRAY, "bpf_perf_event_output"},
    {BPF_MAP_TYPE_PERF_EVENT_ARRAY, "bpf_perf_event_read_value"},
    {BPF_MAP_TYPE_PERF_EVENT_ARRAY, "bpf_perf_event_read"},
    {BPF_MAP_TYPE_PERF_EVENT_ARRAY, "bpf_skb_output"},
    {BPF_MAP_TYPE_PERF_EVENT_ARRAY, "bpf_xdp_output"},
    {BPF_MAP_TYPE_RINGBUF, "bpf_ringbuf_output"},
    {BPF_MAP_TYPE_RINGBUF, "bpf_ringbuf_reserve"},
    {BPF_MAP_TYPE_RINGBUF, "bpf_ringbuf_reserve_dynptr"},
    {BPF_MAP_TYPE_RINGBUF, "bpf_ringbuf_query"},
    {uapi::BPF_MAP_TYPE_USER_RINGBUF, "bpf_user_ringbuf_drain"},
    {BPF_MAP_TYPE_STACK_TRACE, "bpf_get_stackid"},
    {BPF_MAP_TYPE_CGROUP_ARRAY, "bpf_skb_under_cgroup"},
    {BPF_MAP_TYPE_CGROUP_ARRAY, "bpf_current_task_under_cgroup"},
    {BPF_MAP_TYPE_CGROUP_STORAGE, "bpf_get_local_storage"},
    {BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE, "bpf_get_local_storage"},
    {BPF_MAP_TYPE_DEVMAP, "bpf_redirect_map"},
    {BPF_MAP_TYPE_DEVMAP, "bpf_map_lookup_elem"},
    {BPF_MAP_TYPE_DEVMAP_HASH, "bpf_redirect_map"},
    {BPF_MAP_TYPE_DEVMAP_HASH, "bpf_map_lookup_elem"},
    {BPF_MAP_TYPE_CPUMAP, "bpf_redirect_map"},
    {BPF_MAP_TYPE_XSKMAP, "bpf_redirect_map"},
    {BPF_MAP_TYPE_XSKMAP, "bpf_map_lookup_elem"},
    {BPF_MAP_TYPE_ARRAY_OF_MAPS, "bpf_map_lookup_elem"},
    {BPF_MAP_TYPE_HASH_OF_MAPS, "bpf_map_lookup_elem"},
    {BPF_MAP_TYPE_SOCKMAP, "bpf_sk_redirect_map"},
    {BPF_MAP_TYPE_SOCKMAP, "bpf_msg_redirect_map"},
    {BPF_MAP_TYPE_SOCKMAP, "bpf_sock_map_update"},
    {BPF_MAP_TYPE_SOCKMAP, "bpf_sk_select_reuseport"},
    {BPF_MAP_TYPE_SOCKMAP, "bpf_map_lookup_elem"},
    {BPF_MAP_TYPE_SOCKMAP, "bpf_map_delete_elem"},
    {BPF_MAP_TYPE_SOCKHASH, "bpf_sk_redirect_hash"},
    {BPF_MAP_TYPE_SOCKHASH, "bpf_msg_redirect_hash"},
    {BPF_MAP_TYPE_SOCKHASH, "bpf_sock_hash_update"},
    {BPF_MAP_TYPE_SOCKHASH, "bpf_sk_select_reuseport"},
    {BPF_MAP_TYPE_SOCKHASH, "bpf_map_lookup_elem"},
    {BPF_MAP_TYPE_SOCKHASH, "bpf_map_delete_elem"},
    {BPF_MAP_TYPE_REUSEPORT_SOCKARRAY, "bpf_sk_select_reuseport"},
    {BPF_MAP_TYPE_QUEUE, "bpf_map_push_elem"},
    {BPF_MAP_TYPE_QUEUE, "bpf_map_pop_elem"},
    {BPF_MAP_TYPE_QUEUE, "bpf_map_peek_elem"},
    {BPF_MAP_TYPE_STACK, "bpf_map_push_elem"},
    {BPF_MAP_TYPE_STACK, "bpf_map_pop_elem"},
    {BPF_MAP_TYPE_STACK, "bpf_map_peek_elem"},
    {uapi::BPF_MAP_TYPE_BLOOM_FILTER, "bpf_map_push_elem"},
    {uapi::BPF_MAP_TYPE_BLOOM_FILTER, "bpf_map_peek_elem"},
    {BPF_MAP_TYPE_SK_STORAGE, "bpf_sk_storage_get"},
    {BPF_MAP_TYPE_SK_STORAGE, "bpf_sk_storage_delete"},
    {BPF_MAP_TYPE_INODE_STORAGE, "bpf_inode_storage_get"},
    {BPF_MAP_TYPE_INODE_STORAGE, "bpf_inode_storage_delete"},
    {BPF_MAP_TYPE_TASK_STORAGE, "bpf_task_storage_get"},
    {BPF_MAP_TYPE_TASK_STORAGE, "bpf_task_storage_delete"},
    {uapi::BPF_MAP_TYPE_CGRP_STORAGE, "bpf_cgrp_storage_get"},
    {uapi::BPF_MAP_TYPE_CGRP_STORAGE, "bpf_cgrp_storage_delete"},
    {BPF_MAP_TYPE_PERCPU_ARRAY, "bpf_map_lookup_percpu_elem"},
    {BPF_MAP_TYPE_PERCPU_HASH, "bpf_map_lookup_percpu_elem"},
    {BPF_MAP_TYPE_LRU_PERCPU_HASH, "bpf_map_lookup_percpu_elem"},
};

// Helpers that are for more types than those of the table.
bool is_general(std::string_view helper) { return helper == "bpf_map_lookup_elem" || helper == "bpf_map_delete_elem"; }
// Maps that have more helpers than those of the table.
bool has_more(uint32_t type) {
    return type == BPF_MAP_TYPE_PERCPU_ARRAY || type == BPF_MAP_TYPE_PERCPU_HASH || type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

// "BPF_MAP_TYPE_QUEUE or BPF_MAP_TYPE_STACK"; empty: the table has none.
std::string types_of(std::string_view helper) {
    std::string out;
    for (const Pair &pair : kPairs)
        if (pair.helper == helper && !is_general(helper))
            append(out, "{}{}", out.empty() ? "" : " or ", sys::map_type_name(pair.type));
    return out;
}

std::string helpers_of(uint32_t type) {
    std::string out;
    for (const Pair &pair : kPairs)
        if (pair.type == type && !has_more(type)) append(out, "{}{}()", out.empty() ? "" : ", ", pair.helper);
    return out;
}

// "map rb" for the first register that holds one.
std::string map_in_words(const Case &c) {
    for (int reg = BPF_REG_1; reg <= BPF_REG_5; ++reg)
        if (const std::string value = register_value(c, reg);
            value.starts_with("map_ptr(") && value.find("map=") != std::string::npos)
            return describe_register(value);
    return "the map";
}

// Only the registers that hold maps: the others are right.
void show_maps_only(Case &c) {
    std::string kept;
    for (int reg = BPF_REG_1; reg <= BPF_REG_5; ++reg)
        if (const std::string value = register_value(c, reg); value.starts_with("map_ptr("))
            append(kept, "{}R{}={}", kept.empty() ? "" : " ", reg, value);
    c.refusal.registers = kept;
}

} // namespace

bool map_type(Case &c) {
    const std::optional<int64_t> given = number_after(c.refusal.reason, " map_type ");
    if (c.refusal.at.insn < 0 || !given || *given < 0) return false;
    const std::string name = c.called(static_cast<uint32_t>(c.refusal.at.insn));
    if (name.empty()) return false;
    const auto type = static_cast<uint32_t>(*given);
    const std::string takes = types_of(name), helpers = helpers_of(type), type_name = sys::map_type_name(type);
    show_maps_only(c);
    c.note(format("map_type {}, that of {}, is {}{}", type, map_in_words(c), type_name,
                  takes.empty() ? std::string() : format("; {}() is for {}", name, takes)));
    c.refusal.hint = helpers.empty() && takes.empty()
                         ? format("{}() doesn't work on maps of type {}", name, type_name)
                         : format("{}{}{}", takes.empty() ? "" : format("pass a map of type {}", takes),
                                  takes.empty() || helpers.empty() ? "" : ", or ",
                                  helpers.empty() ? "" : format("call a helper that is for {}: {}", type_name, helpers));
    return true;
}

bool tail_call_map(Case &c) {
    show_maps_only(c);
    c.refusal.kind = "argument";
    c.note(format("{}, argument 2 of bpf_tail_call(), isn't of type BPF_MAP_TYPE_PROG_ARRAY", map_in_words(c)));
    c.refusal.hint =
        "pass a map of type BPF_MAP_TYPE_PROG_ARRAY (key_size 4, value_size 4), which user space fills with programs";
    return true;
}

// "timer pointer in R1 map_uid=0 doesn't match map pointer in R2 map_uid=0"; "workqueue pointer"
bool other_map(Case &c) {
    const std::string_view reason = c.refusal.reason;
    const size_t second = reason.find("map pointer in ");
    const int inside = register_named(reason);
    const int given = second == std::string_view::npos ? -1 : register_named(reason.substr(second));
    if (inside < 0 || given < 0) return false;
    const std::string there = describe_register(register_value(c, inside)), here = describe_register(register_value(c, given));
    if (there.empty() || here.empty()) return false;
    c.refusal.kind = "argument";
    c.note(format("R{} is {}, and R{} is {}", inside, there, given, here));
    c.refusal.hint = format("pass the map that the {} lies in", reason.substr(0, reason.find(' ')));
    return true;
}

} // namespace rawbpf::inline v0::refusal
