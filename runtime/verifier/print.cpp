// Prints values as the kernel's log does, so that programs that read its log can read ours.
//
//      R1=ctx()  R2=scalar(umax=255,var_off=(0x0; 0xff))  R0=map_value_or_null(id=1,map=counts,ks=4,vs=8)  R10=fp0
#include "runtime/verifier/print.h"

#include <array>

#include "runtime/base/format.h"
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

std::string_view sort_word(Sort sort) {
    switch (sort) {
    case Sort::unset: return "?";
    case Sort::number: return "scalar";
    case Sort::context: return "ctx";
    case Sort::map: return "map_ptr";
    case Sort::map_value: return "map_value";
    case Sort::map_key: return "map_key";
    case Sort::stack: return "fp";
    case Sort::packet: return "pkt";
    case Sort::packet_meta: return "pkt_meta";
    case Sort::packet_end: return "pkt_end";
    case Sort::memory: return "mem";
    case Sort::object: return "ptr_";
    case Sort::function: return "func";
    case Sort::socket: return "sock";
    case Sort::flow_keys: return "flow_keys";
    case Sort::buffer: return "buf";
    case Sort::arena: return "arena";
    case Sort::dynptr: return "dynptr_ptr";
    case Sort::iterator: return "iter";
    case Sort::irq_flag: return "irq_flag";
    }
    return "?";
}

std::string type_word(const Value &value) {
    std::string out;
    if (value.read_only) out += "rdonly_";
    if (value.ring_record) out += "ringbuf_";
    if (value.sort == Sort::object) {
        if (value.user) out += "user_";
        if (value.per_cpu) out += "percpu_";
        if (value.trust == Trust::untrusted) out += "untrusted_";
        if (value.trust == Trust::trusted) out += "trusted_";
        if (value.trust == Trust::rcu) out += "rcu_";
    }
    if (value.sort == Sort::socket && value.socket != SocketKind::full) {
        out += value.socket == SocketKind::common ? "sock_common" : value.socket == SocketKind::tcp ? "tcp_sock" : "xdp_sock";
    } else {
        // What a map of maps holds: until it is compared with 0, the kernel calls it a value.
        out += value.sort == Sort::map && value.maybe_null ? std::string_view("map_value") : sort_word(value.sort);
    }
    if (value.maybe_null) out += value.sort == Sort::object ? "or_null_" : "_or_null"; // the struct's name follows
    return out;
}

std::string moved_pointer(std::string_view word, unsigned reg, int64_t off) {
    return format("{} {} ptr R{} off={} disallowed", off < 0 ? "negative offset" : "dereference of modified", word, reg, off);
}

std::string bits_text(Tnum bits) { return format("({:#x}; {:#x})", bits.value, bits.mask); }

namespace {

template <class T> std::string number_text(T n) {
    if constexpr (std::is_signed_v<T>) {
        if (n < 0) return n > -65536 ? format("{}", n) : format("{:#x}", static_cast<std::make_unsigned_t<T>>(n));
    }
    return n < 65536 ? format("{}", n) : format("{:#x}", static_cast<std::make_unsigned_t<T>>(n));
}

// Equal bounds are written together: "smin=umin=4".
std::string bounds_text(const Bounds &b) {
    struct Entry {
        std::string name, text;
        bool shown;
    };
    std::array<Entry, 8> all = {{
        {"smin", number_text(b.s64.least), b.s64.least != INT64_MIN},
        {"smax", number_text(b.s64.most), b.s64.most != INT64_MAX},
        {"umin", number_text(b.u64.least), b.u64.least != 0},
        {"umax", number_text(b.u64.most), b.u64.most != UINT64_MAX},
        {"smin32", number_text(b.s32.least), b.s32.least != INT32_MIN},
        {"smax32", number_text(b.s32.most), b.s32.most != INT32_MAX},
        {"umin32", number_text(b.u32.least), b.u32.least != 0},
        {"umax32", number_text(b.u32.most), b.u32.most != UINT32_MAX},
    }};
    std::string out;
    for (size_t i = 0; i < all.size(); ++i) {
        if (!all[i].shown) continue;
        if (!out.empty()) out += ",";
        out += all[i].name + "=";
        for (size_t j = i + 1; j < all.size(); ++j)
            if (all[j].shown && all[j].text == all[i].text) {
                out += all[j].name + "=";
                all[j].shown = false;
            }
        out += all[i].text;
    }
    if (b.bits != Tnum{}) out += (out.empty() ? "" : ",") + std::string("var_off=") + bits_text(b.bits);
    return out;
}

} // namespace

std::string value_text(const Value &value, const ObjectSpec &spec) {
    if (value.is_number()) {
        if (value.bounds.is_known()) return number_text(static_cast<int64_t>(value.bounds.number()));
        std::string inside = value.id ? format("id={}{}", value.id, value.sum ? format("+{}", value.off) : "") : std::string();
        const std::string bounds = bounds_text(value.bounds);
        if (!inside.empty() && !bounds.empty()) inside += ",";
        return "scalar(" + inside + bounds + ")";
    }
    if (value.sort == Sort::stack && value.bounds.is_known()) {
        const std::string frame = value.frame ? format("[{}]", value.frame) : std::string();
        return format("fp{}{}", frame, value.off + static_cast<int64_t>(value.bounds.number()));
    }
    std::vector<std::string> parts;
    if (value.id) parts.push_back(format("id={}", value.id));
    if (value.ref) parts.push_back(format("ref_obj_id={}", value.ref));
    if (value.sort == Sort::map_value || value.sort == Sort::map || value.sort == Sort::map_key) {
        const MapSpec &map = map_at(spec, value.map);
        parts.push_back(format("map={},ks={},vs={}", map.name, map.key_size, map.value_size));
    }
    if (value.off) parts.push_back(format("off={}", value.off));
    if (value.is_packet()) parts.push_back(format("r={}", value.range));
    if (value.sort == Sort::memory) parts.push_back(format("sz={}", value.size));
    if (value.sort == Sort::function) parts.push_back(format("insn={}", value.type));
    if (!value.bounds.is_known())
        parts.push_back(bounds_text(value.bounds));
    else if (value.bounds.number() != 0)
        parts.push_back(format("imm={}", static_cast<int64_t>(value.bounds.number())));
    std::string out = type_word(value) + "(";
    for (size_t i = 0; i < parts.size(); ++i) out += (i ? "," : "") + parts[i];
    return out + ")";
}

} // namespace rawbpf::inline v0::verifier
