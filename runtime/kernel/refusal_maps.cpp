// Advice on maps that a helper refuses: which types it takes, which helpers are for the map.
//
// asm/map_types.h has the helpers of each type. A type without special helpers takes every helper that no other type has for
// itself.
#include <linux/bpf.h>

#include <optional>
#include <string>
#include <string_view>

#include "asm/map_types.h"
#include "runtime/base/format.h"
#include "runtime/kernel/refusal_parts.h"
#include "runtime/sys/names.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::refusal {
namespace {

// Each helper that is for a type, without the plus.
template <class See> void each_helper(uint32_t type, See &&see) {
    std::string_view rest = map_type_helpers(type);
    if (rest.starts_with('+')) rest.remove_prefix(1);
    while (!rest.empty()) {
        const size_t blank = rest.find(' ');
        see(rest.substr(0, blank));
        rest.remove_prefix(blank == std::string_view::npos ? rest.size() : blank + 1);
    }
}

// Helpers that are for more types than those that name them.
bool is_general(std::string_view helper) { return helper == "bpf_map_lookup_elem" || helper == "bpf_map_delete_elem"; }

// "BPF_MAP_TYPE_QUEUE or BPF_MAP_TYPE_STACK"; empty: the table has none.
std::string types_of(std::string_view helper) {
    std::string out;
    if (is_general(helper) || !helper.starts_with("bpf_")) return out;
    helper.remove_prefix(4);
    for (uint32_t type = 0; type < kMapTypeCount; ++type)
        each_helper(type, [&](std::string_view name) {
            if (helper == name) append(out, "{}{}", out.empty() ? "" : " or ", sys::map_type_name(type));
        });
    return out;
}

// Those that are for this type; empty where general ones are, too.
std::string helpers_of(uint32_t type) {
    std::string out;
    if (map_type_helpers(type).starts_with('+')) return out;
    each_helper(type, [&](std::string_view name) { append(out, "{}bpf_{}()", out.empty() ? "" : ", ", name); });
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
