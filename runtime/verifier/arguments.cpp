// Arguments of helpers: compares each argument with what the helper's prototype (prototypes.def) asks for.
//
//      bpf_map_update_elem(map, key, value, flags)      map: a map, whose sizes say how long key and value have to be
//      bpf_probe_read_kernel(dst, size, from)           dst: memory to write to, at least as much as the most that size can be
//
// A program need not initialise memory that a helper only writes to. After the call, the memory counts as written, with unknown
// values.
#include <algorithm>

#include "asm/attach_types.h"
#include "asm/kinds.h"
#include "asm/map_types.h"
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

namespace {

constexpr std::string_view kMemoryWords = "fp, pkt, pkt_meta, map_key, map_value, mem, ringbuf_mem, buf, trusted_ptr_";

// Whether a value may be memory that a helper reads (`read`) or writes.
bool is_memory(const Value &value, bool read, bool or_null) {
    if (value.maybe_null && !or_null) return false;
    if (value.read_only && !read && (value.sort == Sort::memory || value.sort == Sort::buffer)) return false;
    switch (value.sort) {
    case Sort::buffer: return true;
    case Sort::object: return read && value.trust == Trust::trusted && !value.maybe_null && !value.owned && !value.per_cpu;
    case Sort::stack:
    case Sort::packet:
    case Sort::packet_meta:
    case Sort::map_key:
    case Sort::map_value:
    case Sort::memory: return true;
    default: return false;
    }
}

bool has_word(std::string_view words, std::string_view name) {
    if (words.starts_with('+')) words.remove_prefix(1);
    while (!words.empty()) {
        const size_t end = std::min(words.find(' '), words.size());
        if (words.substr(0, end) == name) return true;
        words.remove_prefix(std::min(end + 1, words.size()));
    }
    return false;
}

} // namespace

// Some helpers are for some types of maps alone, and some types for some helpers (asm/map_types.h).
bool Engine::fits_map(const HelperInfo &helper, const Called &called) {
    if (called.map < 0) return true;
    const std::string_view helpers = map_type_helpers(map_at(spec_, static_cast<uint32_t>(called.map)).type);
    bool special = false; // the helper is for some types
    for (const std::string_view others : kMapTypeHelpers)
        special |= helper.name != "map_lookup_elem" && helper.name != "map_delete_elem" && has_word(others, helper.name);
    const MapSpec &map = map_at(spec_, static_cast<uint32_t>(called.map));
    const bool sockets = map.type == uint32_t(MapType::SOCKMAP) || map.type == uint32_t(MapType::SOCKHASH);
    if (sockets && (helper.name == "map_update_elem" || helper.name == "map_delete_elem")) {
        if (may_change_sockets(helper.name == "map_delete_elem")) return true;
        return refuse("cannot update sockmap in this context; cannot pass map_type {} into func bpf_{}#{}", map.type, helper.name,
                      helper.id);
    }
    const bool named = has_word(helpers, helper.name);
    if (named || (!special && (helpers.empty() || helpers.starts_with('+')))) return true;
    return refuse("cannot pass map_type {} into func bpf_{}#{}", map_at(spec_, static_cast<uint32_t>(called.map)).type,
                  helper.name, helper.id);
}

// Which programs may put sockets into maps, and take them out (may_update_sockmap() of the kernel).
bool Engine::may_change_sockets(bool takes_out) const {
    switch (static_cast<ProgramType>(program_.type)) {
    case ProgramType::TRACING: return program_.expected_attach_type == uint32_t(AttachType::TRACE_ITER);
    case ProgramType::SOCK_OPS: return takes_out;
    case ProgramType::SOCKET_FILTER:
    case ProgramType::SCHED_CLS:
    case ProgramType::SCHED_ACT:
    case ProgramType::XDP:
    case ProgramType::SK_REUSEPORT:
    case ProgramType::FLOW_DISSECTOR:
    case ProgramType::SK_LOOKUP: return true;
    default: return false;
    }
}

bool Engine::memory_argument(unsigned reg, int64_t size, bool write, bool may_be_empty, bool, Called &called) {
    const Value base = state_.reg(reg);
    switch (base.sort) {
    case Sort::packet:
    case Sort::packet_meta:
        if (write && !may_use_packet(true)) return refuse("cannot write into packet");
        return packet_region(reg, base, 0, size, may_be_empty);
    case Sort::map_key: {
        if (write) return refuse("R{} cannot write into map_key", reg);
        return region(reg, base, 0, size, map_at(spec_, base.map).key_size, may_be_empty);
    }
    case Sort::map_value: return map_region(reg, base, 0, size, write, may_be_empty, By::helper);
    case Sort::memory:
        if (write && base.read_only) return refuse("R{} cannot write into {}", reg, type_word(base));
        return region(reg, base, 0, size, base.size, may_be_empty);
    case Sort::buffer: return buffer_access(reg, base, 0, size, write);
    case Sort::object:
        if (write) return refuse("only read is supported");
        return object_region(reg, base, 0, static_cast<unsigned>(size));
    case Sort::stack:
        if (!stack_range(reg, base, size, write, may_be_empty, By::helper)) return false;
        if (write) called.rooms.push_back({reg, size});
        return true;
    default: break;
    }
    if (may_be_empty && size == 0 && base.is_zero()) return true;
    return refuse("R{} type={} expected={}", reg, type_word(base), "fp");
}

// A size, and the memory in the register before it.
bool Engine::sized_argument(unsigned reg, unsigned size_reg, bool write, bool may_be_empty, bool packet, Called &called) {
    const Value &size = state_.reg(size_reg);
    constexpr uint64_t kMostSize = uint64_t(1) << 29; // BPF_MAX_VAR_SIZ
    if (!size.is_number()) return refuse("R{} type={} expected=scalar", size_reg, type_word(size));
    called.most = size.bounds.u64.most;
    if (size.bounds.s64.least < 0) return refuse("R{} min value is negative, either use unsigned or 'var &= const'", size_reg);
    if (size.bounds.u64.least == 0 && !may_be_empty)
        return refuse("R{} invalid zero-sized read: u64=[{},{}]", size_reg, size.bounds.u64.least, size.bounds.u64.most);
    if (size.bounds.u64.most >= kMostSize)
        return refuse("R{} unbounded memory access, use 'var &= const' or 'if (var < const)'", size_reg);
    walk_.need(size.node);
    const bool known = size.bounds.is_known();
    const size_t rooms = called.rooms.size();
    // If the size isn't known, the helper may leave the end of the memory as it is, which therefore has to be initialised.
    if (!memory_argument(reg, static_cast<int64_t>(called.most), write && known, may_be_empty, packet, called)) return false;
    const Value &base = state_.reg(reg);
    if (write && !known) {
        if (base.sort == Sort::map_value &&
            !map_region(reg, base, 0, static_cast<int64_t>(called.most), true, may_be_empty, By::helper))
            return false;
        if (base.sort == Sort::stack && called.rooms.size() == rooms)
            called.rooms.push_back({reg, static_cast<int64_t>(called.most)});
        if ((base.sort == Sort::memory && base.read_only) || base.sort == Sort::map_key)
            return refuse("R{} cannot write into {}", reg, type_word(base));
        if (base.is_packet() && !may_use_packet(true)) return refuse("cannot write into packet");
    }
    return true;
}

// Whether a helper may be given a place in the packet: those of bpf_sockopt's value may all.
bool Engine::may_pass_packet(bool helper_takes_it) const {
    if (static_cast<ProgramType>(program_.type) == ProgramType::CGROUP_SOCKOPT) return true;
    return helper_takes_it && packet_use(program_.type) != PacketUse::none;
}

// Memory that a helper reads and writes: what was found good for reading has to be good for writing.
bool Engine::filled_argument(unsigned reg, int64_t size) {
    const Value base = state_.reg(reg);
    switch (base.sort) {
    case Sort::map_value: return map_region(reg, base, 0, size, true, true, By::helper);
    case Sort::map_key: return refuse("R{} cannot write into {}", reg, type_word(base));
    case Sort::packet:
    case Sort::packet_meta: return may_use_packet(true) || refuse("cannot write into packet");
    case Sort::stack: {
        const int64_t fixed = base.off;
        const int64_t least =
            fixed + (base.bounds.is_known() ? static_cast<int64_t>(base.bounds.number()) : base.bounds.s64.least);
        fill_bytes(state_.frames[base.frame], least, least + size, Byte::some);
        return true;
    }
    default: return true;
    }
}

bool Engine::argument(const HelperInfo &helper, const Prototype &prototype, unsigned number, Called &called) {
    const unsigned reg = number + 1;
    const Argument wanted = prototype.arguments[number];
    if (!readable(reg)) return false;
    if (wanted == Argument::any) return true;
    const Value value = state_.reg(reg);
    const bool packet = prototype.trait == Trait::packet;
    if (value.is_packet() && !may_pass_packet(packet)) return refuse("helper access to the packet is not allowed");
    if (value.is_zero() && may_be_null(wanted)) {
        walk_.need(value.node);
        return true; // of memory, the size says whether that is right
    }
    if (value.ref && wanted != Argument::pointer_place) {
        if (called.ref && value.sort != Sort::stack)
            return refuse("more than one arg with ref_obj_id R{} {} {}", reg, value.ref, called.ref);
        called.ref = value.ref;
    }
    auto expected = [&](std::string_view words) { return refuse("R{} type={} expected={}", reg, type_word(value), words); };
    auto memory = [&](int64_t size, bool write) {
        if (!is_memory(value, !write, false)) return expected(kMemoryWords);
        return memory_argument(reg, size, write, false, packet, called);
    };
    switch (wanted) {
    case Argument::context:
    case Argument::context_or_null:
        if (value.sort != Sort::context) return expected("ctx");
        if (!value.bounds.is_known() || value.bounds.number() != 0)
            return refuse("variable ctx access var_off={} disallowed", bits_text(value.bounds.bits));
        if (value.off < 0) return refuse("negative offset ctx ptr R{} off={} disallowed", reg, value.off);
        if (value.off != 0) return refuse("{}", moved_pointer("ctx", reg, value.off));
        return true;
    case Argument::number: return value.is_number() || expected("scalar");
    case Argument::map:
        if (value.sort != Sort::map || value.maybe_null) return expected("map_ptr");
        if (called.map >= 0 && called.map != static_cast<int>(value.map))
            return refuse("timer pointer in R1 map_uid=0 doesn't match map pointer in R2 map_uid=0");
        called.map = static_cast<int>(value.map);
        called.map_reg = reg;
        return true;
    case Argument::key: return memory(map_at(spec_, static_cast<uint32_t>(called.map)).key_size, false);
    case Argument::value:
    case Argument::value_or_null: {
        const MapSpec &map = map_at(spec_, static_cast<uint32_t>(called.map));
        const bool socket_map = map.type == uint32_t(MapType::SOCKMAP) || map.type == uint32_t(MapType::SOCKHASH);
        if (socket_map && helper.name == "map_update_elem") return socket_argument(reg, value, Argument::sock_object);
        return memory(map.value_size, false);
    }
    case Argument::space: {
        const MapSpec &map = map_at(spec_, static_cast<uint32_t>(called.map));
        return memory(map.value_size, map.type != uint32_t(MapType::BLOOM_FILTER));
    }
    case Argument::bytes:
    case Argument::bytes0: return is_memory(value, true, false) || expected(kMemoryWords);
    case Argument::bytes0_or_null: return is_memory(value, true, true) || expected(kMemoryWords);
    case Argument::room:
    case Argument::room0:
    case Argument::filled:
    case Argument::filled0: return is_memory(value, false, false) || expected(kMemoryWords);
    case Argument::filled0_or_null: return is_memory(value, false, true) || expected(kMemoryWords);
    case Argument::size: {
        const Argument memory = prototype.arguments[number - 1];
        const bool filled = memory == Argument::filled || memory == Argument::filled0 || memory == Argument::filled0_or_null;
        const bool write = memory == Argument::room || memory == Argument::room0;
        const bool may_be_empty = memory != Argument::bytes && memory != Argument::room && memory != Argument::filled;
        if (!value.is_number()) return expected("scalar");
        if (!sized_argument(reg - 1, reg, write, may_be_empty, packet, called)) return false;
        return !filled || filled_argument(reg - 1, static_cast<int64_t>(called.most));
    }
    case Argument::fixed:
        if (!value.is_number()) return expected("scalar");
        if (!value.bounds.is_known()) return refuse("R{} is not a known constant'", reg);
        walk_.need(value.node);
        called.fixed = value.bounds.number();
        return true;
    case Argument::record:
        if (value.sort != Sort::memory || !value.ring_record || value.maybe_null) return expected("ringbuf_mem");
        if (value.off != 0 || !value.bounds.is_known() || value.bounds.number() != 0)
            return refuse("R{} must have zero offset when passed to release func or trusted arg to kfunc", reg);
        if (!value.ref) return refuse("R{} must be referenced when passed to release function", reg);
        called.released = value.ref;
        return true;
    case Argument::long_out:
    case Argument::int_out:
    case Argument::int_in_out: {
        const bool read = wanted == Argument::int_in_out;
        const int64_t size = wanted == Argument::long_out ? 8 : 4;
        if (!is_memory(value, false, false)) return expected(kMemoryWords);
        if (value.sort == Sort::stack && value.bounds.is_known() &&
            (value.off + static_cast<int64_t>(value.bounds.number())) % size != 0)
            return refuse("misaligned stack access off {}+{}+0 size {}", value.bounds.number(), value.off, size);
        if (!memory(size, !read)) return false;
        return !read || filled_argument(reg, size);
    }
    case Argument::header20: return memory(20, false);
    case Argument::header40: return memory(40, false);
    case Argument::string:
        return value.sort != Sort::map_value || value.maybe_null ? expected("map_value") : constant_string(reg, value);
    case Argument::lock:
        if (value.sort == Sort::object && value.owned && !value.maybe_null) return take_lock(reg, helper.name == "spin_unlock");
        if (value.sort != Sort::map_value || value.maybe_null) return expected("map_value");
        return take_lock(reg, helper.name == "spin_unlock");
    case Argument::timer:
        return value.sort != Sort::map_value || value.maybe_null ? expected("map_value")
                                                                 : map_part(reg, value, "bpf_timer", called);
    case Argument::callback:
        if (value.sort != Sort::function) return expected("func");
        called.callback = value.type;
        return true;
    case Argument::stack_or_null: return (value.sort == Sort::stack && !value.maybe_null) || expected("fp");
    case Argument::sock:
    case Argument::socket_or_null:
    case Argument::sock_object:
    case Argument::sock_object_or_null:
    case Argument::sock_released:
        if (!socket_argument(reg, value, wanted)) return false;
        called.subject = value;
        if (wanted != Argument::sock_released) return true;
        if (value.off != 0) return refuse("R{} must have zero offset when passed to release func or trusted arg to kfunc", reg);
        if (!value.ref) return refuse("R{} must be referenced when passed to release function", reg);
        called.released = value.ref;
        return true;
    case Argument::per_cpu:
        if (value.sort != Sort::object || !value.per_cpu || value.maybe_null)
            return expected("percpu_ptr_, percpu_rcu_ptr_, percpu_trusted_ptr_");
        called.subject = value;
        return true;
    case Argument::dynptr:
    case Argument::dynptr_of_memory:
    case Argument::dynptr_of_ring:
    case Argument::dynptr_released: return dynptr_argument(reg, wanted, called);
    case Argument::pointer_place:
    case Argument::pointer_owned: return pointer_argument(reg, value, wanted, called);
    case Argument::none:
    case Argument::any: return true;
    default: return object_argument(reg, value, object_of_argument(wanted));
    }
}

} // namespace rawbpf::inline v0::verifier
