// What a helper is given: each argument is compared with what its prototype (prototypes.def) asks for.
//
//      bpf_map_update_elem(map, key, value, flags)      map: a map, whose sizes say how long key and value have to be
//      bpf_probe_read_kernel(dst, size, from)           dst: memory to write to, at least as much as the most that size can be
//
// Memory that a helper only writes to need not be initialised. Afterwards it is something.
#include <algorithm>

#include "asm/kinds.h"
#include "asm/map_types.h"
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

namespace {

constexpr std::string_view kMemoryWords = "fp, pkt, pkt_meta, map_key, map_value, mem, ringbuf_mem, buf, trusted_ptr_";

bool is_memory(const Value &value) {
    if (value.maybe_null) return false;
    switch (value.sort) {
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
    const MapTypeRow &row = map_type_row(spec_.maps[static_cast<size_t>(called.map)].type);
    bool special = false; // the helper is for some types
    for (const MapTypeRow &other : kMapTypes)
        special |= helper.name != "map_lookup_elem" && helper.name != "map_delete_elem" && has_word(other.helpers, helper.name);
    const bool named = has_word(row.helpers, helper.name);
    if (named || (!special && (row.helpers.empty() || row.helpers.starts_with('+')))) return true;
    return refuse("cannot pass map_type {} into func bpf_{}#{}", spec_.maps[static_cast<size_t>(called.map)].type, helper.name,
                  helper.id);
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
        return region(reg, base, 0, size, spec_.maps[base.map].key_size, may_be_empty);
    }
    case Sort::map_value: return map_region(reg, base, 0, size, write, may_be_empty, By::helper);
    case Sort::memory:
        if (write && base.read_only) return refuse("R{} cannot write into {}", reg, type_word(base));
        return region(reg, base, 0, size, base.size, may_be_empty);
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

bool Engine::take_lock(unsigned reg, bool unlock) {
    const Value &value = state_.reg(reg);
    if (!value.bounds.is_known())
        return refuse("R{} doesn't have constant offset. bpf_spin_lock has to be at the constant offset", reg);
    const std::string &name = spec_.maps[value.map].name;
    const int at = types_.lock_of(value.map);
    if (at < 0) return refuse("map '{}' has no valid bpf_spin_lock", name);
    const int64_t off = value.off + static_cast<int64_t>(value.bounds.number());
    if (off != at) return refuse("off {} doesn't point to 'struct bpf_spin_lock' that is at {}", off, at);
    if (!unlock) {
        if (state_.lock) return refuse("Locking two bpf_spin_locks are not allowed");
        state_.lock = value.id;
        state_.lock_map = value.map;
        return true;
    }
    if (!state_.lock) return refuse("bpf_spin_unlock without taking a lock");
    if (state_.lock != value.id || state_.lock_map != value.map) return refuse("bpf_spin_unlock of different lock");
    state_.lock = 0;
    return true;
}

bool Engine::argument(const HelperInfo &helper, const Prototype &prototype, unsigned number, Called &called) {
    const unsigned reg = number + 1;
    const Argument wanted = prototype.arguments[number];
    if (!readable(reg)) return false;
    if (wanted == Argument::any) return true;
    const Value value = state_.reg(reg);
    const bool packet = prototype.trait == Trait::packet;
    if (value.is_packet() && (!packet || packet_use(program_.type) == PacketUse::none))
        return refuse("helper access to the packet is not allowed");
    if (wanted == Argument::bytes0_or_null && value.is_zero()) {
        walk_.need(value.node);
        return true; // the size says whether that is right
    }
    auto expected = [&](std::string_view words) { return refuse("R{} type={} expected={}", reg, type_word(value), words); };
    switch (wanted) {
    case Argument::context:
        if (value.sort != Sort::context) return expected("ctx");
        if (!value.bounds.is_known() || value.bounds.number() != 0)
            return refuse("variable ctx access var_off={} disallowed", bits_text(value.bounds.bits));
        if (value.off < 0) return refuse("negative offset ctx ptr R{} off={} disallowed", reg, value.off);
        if (value.off != 0) return refuse("dereference of modified ctx ptr R{} off={} disallowed", reg, value.off);
        return true;
    case Argument::map:
        if (value.sort != Sort::map) return expected("map_ptr");
        called.map = static_cast<int>(value.map);
        called.map_reg = reg;
        return true;
    case Argument::key:
    case Argument::value:
    case Argument::space: {
        if (!is_memory(value)) return expected(kMemoryWords);
        const MapSpec &map = spec_.maps[static_cast<size_t>(called.map)];
        const int64_t size = wanted == Argument::key ? map.key_size : map.value_size;
        return memory_argument(reg, size, wanted == Argument::space, false, packet, called);
    }
    case Argument::bytes:
    case Argument::bytes0:
    case Argument::bytes0_or_null:
    case Argument::room:
    case Argument::room0:
        if (!is_memory(value)) return expected(kMemoryWords);
        return true;
    case Argument::size: {
        const Argument memory = prototype.arguments[number - 1];
        const bool write = memory == Argument::room || memory == Argument::room0;
        const bool may_be_empty = memory == Argument::bytes0 || memory == Argument::bytes0_or_null || memory == Argument::room0;
        if (!value.is_number()) return expected("scalar");
        return sized_argument(reg - 1, reg, write, may_be_empty, packet, called);
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
    case Argument::int_out: {
        if (!is_memory(value)) return expected(kMemoryWords);
        const int64_t size = wanted == Argument::long_out ? 8 : 4;
        if (value.sort == Sort::stack && value.bounds.is_known() &&
            (value.off + static_cast<int64_t>(value.bounds.number())) % size != 0)
            return refuse("misaligned stack access off {}+{}+0 size {}", value.bounds.number(), value.off, size);
        return memory_argument(reg, size, true, false, packet, called);
    }
    case Argument::lock:
        if (value.sort != Sort::map_value || value.maybe_null) return expected("map_value");
        return take_lock(reg, helper.name == "spin_unlock");
    case Argument::none:
    case Argument::any: break;
    }
    return true;
}

} // namespace rawbpf::inline v0::verifier
