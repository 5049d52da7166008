// Loads and stores: what each kind of pointer may be used for.
//
//      context     at a fixed offset, where the program's type has a member      (context.cpp)
//      stack       inside of the frame's 512 bytes, aligned                       (stack.cpp)
//      map_value   from 0 to the value's size, wherever the pointer may point
//      packet      as far as it was compared with the packet's end
//      memory      from 0 to its size
//
// A pointer with a variable part must be right for the smallest and for the largest value of that part. Of a loaded number, the
// verifier knows only the size, unless the load is from the stack, or from a map that nobody can write to.
#include "runtime/verifier/engine.h"

#include <cstring>

#include "asm/kinds.h"
#include "asm/map_types.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::verifier {

namespace {

constexpr uint64_t kMostOffset = uint64_t(1) << 29; // BPF_MAX_VAR_OFF

} // namespace

bool Engine::fixed_region(unsigned reg, const Value &base, int64_t off, int64_t size, uint64_t room, bool may_be_empty) {
    const bool size_good = size > 0 || (size == 0 && may_be_empty);
    if (off >= 0 && size_good && static_cast<uint64_t>(off) + static_cast<uint64_t>(size) <= room) return true;
    switch (base.sort) {
    case Sort::map_key: return refuse("invalid access to map key, key_size={} off={} size={}", room, off, size);
    case Sort::map_value: return refuse("invalid access to map value, value_size={} off={} size={}", room, off, size);
    case Sort::packet:
    case Sort::packet_meta:
    case Sort::packet_end:
        return refuse("invalid access to packet, off={} size={}, R{}(id={},off={},r={})", off, size, reg, base.id, off, room);
    default: return refuse("invalid access to memory, mem_size={} off={} size={}", room, off, size);
    }
}

bool Engine::region(unsigned reg, const Value &base, int64_t off, int64_t size, uint64_t room, bool may_be_empty) {
    const int64_t fixed = off + base.off;
    const Bounds &b = base.bounds;
    if (b.s64.least < 0 &&
        (b.s64.least == INT64_MIN || fixed + b.s64.least != static_cast<int32_t>(fixed + b.s64.least) || b.s64.least + fixed < 0))
        return refuse("R{} min value is negative, either use unsigned index or do a if (index >=0) check.", reg);
    if (!fixed_region(reg, base, b.s64.least + fixed, size, room, may_be_empty)) {
        verdict_.reason += format("; R{} min value is outside of the allowed memory range", reg);
        return false;
    }
    // Since 7.1 what was added to the pointer is one range with the constant in it, which is no small number when it is negative.
    const bool below = rule(Rule::one_offset) && base.off + b.s64.least < 0;
    if (below || b.u64.most >= kMostOffset)
        return refuse("R{} unbounded memory access, make sure to bounds check any such access", reg);
    if (!fixed_region(reg, base, static_cast<int64_t>(b.u64.most) + fixed, size, room, may_be_empty)) {
        verdict_.reason += format("; R{} max value is outside of the allowed memory range", reg);
        return false;
    }
    return true;
}

bool Engine::map_region(unsigned reg, const Value &base, int64_t off, int64_t size, bool write, bool may_be_empty, By by) {
    field_ = nullptr;
    const MapSpec &map = map_at(spec_, base.map);
    if (write && (map.flags & BPF_F_RDONLY_PROG))
        return refuse("write into map forbidden, value_size={} off={} size={}", map.value_size, base.off + off, size);
    if (!write && (map.flags & BPF_F_WRONLY_PROG))
        return refuse("read from map forbidden, value_size={} off={} size={}", map.value_size, base.off + off, size);
    if (!region(reg, base, off, size, map.value_size, may_be_empty)) return false;
    for (const KernelPart &part : types_.parts[base.map]) {
        const int64_t least = base.off + off + base.bounds.s64.least,
                      most = base.off + off + static_cast<int64_t>(base.bounds.u64.most) + size;
        if (least >= part.offset + part.size || most <= part.offset) continue;
        if (part.target) {
            if (!pointer_field(base, part, off, size, by)) return false;
            field_ = &part;
            continue;
        }
        return refuse("{} cannot be accessed directly by load/store", part.name);
    }
    return true;
}

bool Engine::may_use_packet(bool write) {
    const PacketUse use = packet_use(program_.type);
    return use == PacketUse::write || (use == PacketUse::read && !write);
}

bool Engine::packet_region(unsigned reg, const Value &base, int64_t off, int64_t size, bool may_be_empty) {
    if (base.bounds.s64.least < 0)
        return refuse("R{} min value is negative, either use unsigned index or do a if (index >=0) check.", reg);
    const uint64_t range = base.range < 0 ? 0 : static_cast<uint64_t>(base.range);
    if (base.range < 0 || !fixed_region(reg, base, base.off + off, size, range, may_be_empty)) {
        if (base.range < 0) (void)fixed_region(reg, base, -1, size, 0, false);
        verdict_.reason += format("; R{} offset is outside of the packet", reg);
        return false;
    }
    return true;
}

// A load from a map that is constant: the number is in the object.
bool Engine::constant_map_load(const Value &base, int64_t off, unsigned size, bool extends_sign, int value) {
    const MapSpec &map = map_at(spec_, base.map);
    uint8_t bytes[8] = {};
    const size_t at = static_cast<size_t>(base.off + off);
    for (unsigned i = 0; i < size; ++i)
        if (at + i < map.contents.size()) bytes[i] = static_cast<uint8_t>(map.contents[at + i]);
    uint64_t number = 0;
    for (unsigned i = size; i-- > 0;) number = number << 8 | bytes[i];
    if (extends_sign) number = static_cast<uint64_t>(static_cast<int64_t>(number << (64 - size * 8)) >> (64 - size * 8));
    set(static_cast<unsigned>(value), known_number(number, node()));
    return true;
}

bool Engine::access(unsigned reg, int64_t off, unsigned size, bool write, int value, bool extends_sign, const Value *stored) {
    const Value base = state_.reg(reg);
    const std::string kind = type_word(base);
    if (base.maybe_null) return refuse("R{} invalid mem access '{}'", reg, kind);
    Value loaded = any_number(kNoNode);
    switch (base.sort) {
    case Sort::map_value: {
        if (!map_region(reg, base, off, size, write, false, By::instruction)) return false;
        if (field_ && write)
            return pointer_store(static_cast<unsigned>(insns_[state_.insn].src), *stored, *field_,
                                 (insns_[state_.insn].code & 7) == 3);
        if (write || value < 0) return true;
        if (field_) {
            if (!pointer_load(*field_, loaded)) return false;
            break;
        }
        const MapSpec &map = map_at(spec_, base.map);
        const bool constant = (map.flags & BPF_F_RDONLY_PROG) && map.freeze && map.type == uint32_t(MapType::ARRAY);
        if (constant && base.bounds.is_known() && base.bounds.number() == 0) {
            if (map.data_section == ".kconfig") {
                unsure_ = "values of .kconfig";
                break;
            }
            return constant_map_load(base, off, size, extends_sign, value);
        }
        break;
    }
    case Sort::map_key: {
        if (write) return refuse("write to change key R{} not allowed", reg);
        if (!region(reg, base, off, size, map_at(spec_, base.map).key_size, false)) return false;
        break;
    }
    case Sort::memory:
        if (write && base.read_only) return refuse("R{} cannot write into {}", reg, kind);
        if (!region(reg, base, off, size, base.size, false)) return false;
        break;
    case Sort::object: return object_access(reg, base, off, size, write, value, stored);
    case Sort::socket:
        if (!socket_load(reg, base, off, size, write)) return false;
        break;
    case Sort::flow_keys:
        if (!flow_keys_access(base, off, size)) return false;
        break;
    case Sort::buffer:
        if (!buffer_access(reg, base, off, size, write)) return false;
        break;
    case Sort::arena: break;
    case Sort::context: {
        if (static_cast<ProgramType>(program_.type) == ProgramType::SYSCALL) {
            // It is memory that whoever runs the program gives, as large as it likes.
            constexpr uint64_t kMostContext = UINT16_MAX;
            if (!region(reg, base, off, size, kMostContext, false)) return false;
            break;
        }
        if (!base.bounds.is_known() || base.bounds.number() != 0)
            return refuse("variable ctx access var_off={} disallowed", bits_text(base.bounds.bits));
        if (base.off != 0) {
            if (at_least(options_.kernel, {7, 0})) return undecided("a context pointer that was moved");
            return refuse("{}", moved_pointer("ctx", reg, base.off));
        }
        switch (context_access(program_, off, size, write, extends_sign, options_.registers_size)) {
        case ContextAnswer::refused: return refuse("invalid bpf_context access off={} size={}", off, size);
        case ContextAnswer::undecided: return undecided("a pointer in the context");
        case ContextAnswer::btf:
            if (!btf_context(off, size, write, loaded)) return false;
            break;
        case ContextAnswer::socket:
        case ContextAnswer::socket_or_null:
        case ContextAnswer::sock_common_or_null: {
            const ContextAnswer answer = context_access(program_, off, size, write, extends_sign, options_.registers_size);
            loaded = pointer(Sort::socket, kNoNode);
            loaded.socket = answer == ContextAnswer::sock_common_or_null ? SocketKind::common : SocketKind::full;
            loaded.maybe_null = answer != ContextAnswer::socket;
            if (loaded.maybe_null) loaded.id = new_id();
            break;
        }
        case ContextAnswer::flow_keys: loaded = pointer(Sort::flow_keys, kNoNode); break;
        case ContextAnswer::number: break;
        case ContextAnswer::packet: loaded = pointer(Sort::packet, kNoNode); break;
        case ContextAnswer::packet_meta: loaded = pointer(Sort::packet_meta, kNoNode); break;
        case ContextAnswer::packet_end: loaded = pointer(Sort::packet_end, kNoNode); break;
        }
        break;
    }
    case Sort::stack:
        if (!stack_bounds(reg, base, off, size, write, By::instruction)) return false;
        if (write) return stack_store(reg, base, off, size, stored);
        if (!stack_load(reg, base, off, size, value)) return false;
        if (value >= 0 && state_.reg(static_cast<unsigned>(value)).is_number() && size < 8) {
            Value &got = state_.reg(static_cast<unsigned>(value));
            if (extends_sign)
                got.bounds.extend_sign(size, false, rules_);
            else
                got.bounds.cut_to(size, rules_);
        }
        return true;
    case Sort::packet:
    case Sort::packet_meta:
        if (write && !may_use_packet(true)) return refuse("cannot write into packet");
        if (!packet_region(reg, base, off, size, false)) return false;
        break;
    case Sort::map: {
        // The kernel's own struct bpf_map, of which each type of map has a larger one.
        if (write) return refuse("only read from bpf_array is supported");
        if (!options_.kernel_types) return undecided("types of the kernel, which aren't at hand");
        if (base.off + off < 0) return refuse("R{} is bpf_array invalid negative access: off={}", reg, off);
        const std::optional<btf::TypeId> map = options_.kernel_types->find("bpf_map", btf::Kind::struct_);
        if (!map) return undecided("reads of a map's own struct");
        const Walked walked = walk_struct(*options_.kernel_types, *map, base.off + off, size, false);
        if (walked.what == Walked::What::nothing && walked.refusal.starts_with("access beyond struct"))
            return undecided("reads of a map's own struct");
        if (walked.what == Walked::What::nothing) return refuse_text(walked.refusal);
        if (walked.what == Walked::What::pointer) {
            loaded = pointer(Sort::object, kNoNode);
            loaded.type = walked.type;
            loaded.trust = Trust::untrusted;
        }
        break;
    }
    default: return refuse("R{} invalid mem access '{}'", reg, kind);
    }
    if (write || value < 0) return true;
    if (loaded.is_number() && size < 8) {
        if (extends_sign)
            loaded.bounds.extend_sign(size, false, rules_);
        else
            loaded.bounds.cut_to(size, rules_);
    }
    loaded.node = node();
    set(static_cast<unsigned>(value), std::move(loaded));
    return true;
}

// Other accesses may be unaligned, atomic ones may not. The stack's are checked with its bounds.
bool Engine::aligned(unsigned reg, int64_t off, unsigned size) {
    const Value &base = state_.reg(reg);
    if (base.maybe_null || (base.sort != Sort::map_value && base.sort != Sort::map_key && base.sort != Sort::memory)) return true;
    if (is_aligned(add(base.bounds.bits, tnum_of(static_cast<uint64_t>(base.off + off))), size)) return true;
    return refuse("misaligned {}access off {}+{}+{} size {}", base.sort == Sort::memory ? "" : "value ",
                  base.bounds.is_known() ? format("{}", base.bounds.number()) : bits_text(base.bounds.bits), base.off, off, size);
}

bool Engine::load(const Insn &insn, const Form &form) {
    if (!readable(insn.src) || !writable(insn.dst)) return false;
    const Sort sort = state_.reg(insn.src).sort;
    if (form.shape == Shape::load_acquire && (sort == Sort::context || sort == Sort::packet || sort == Sort::packet_meta))
        return refuse("BPF_ATOMIC loads from R{} {} is not allowed", static_cast<unsigned>(insn.src), sort_word(sort));
    if (form.shape == Shape::load_acquire && !aligned(insn.src, insn.off, form.bits / 8u)) return false;
    return access(insn.src, insn.off, form.bits / 8u, false, insn.dst, form.is_signed, nullptr);
}

bool Engine::store(const Insn &insn, const Form &form) {
    const bool by_register = form.shape != Shape::store_imm;
    if (by_register && !readable(insn.src)) return false;
    if (!readable(insn.dst)) return false;
    const Sort sort = state_.reg(insn.dst).sort;
    if (form.shape == Shape::store_release && (sort == Sort::context || sort == Sort::packet || sort == Sort::packet_meta))
        return refuse("BPF_ATOMIC stores into R{} {} is not allowed", static_cast<unsigned>(insn.dst), sort_word(sort));
    if (form.shape == Shape::store_release && !aligned(insn.dst, insn.off, form.bits / 8u)) return false;
    if (!by_register && sort == Sort::context && !at_least(options_.kernel, {6, 4}))
        return refuse("BPF_ST stores into R{} ctx is not allowed", static_cast<unsigned>(insn.dst));
    Value constant;
    if (!by_register) constant = known_number(static_cast<uint64_t>(int64_t(insn.imm)), node());
    if (by_register) {
        // A number that is stored is linked with the register, if all of it is stored.
        Value &from = state_.reg(insn.src);
        if (sort == Sort::stack && from.is_number() && state_.reg(insn.dst).bounds.is_known() && !from.bounds.is_known()) {
            const unsigned bits = form.bits;
            const bool fits = bits == 64 || from.bounds.u64.most < uint64_t(1) << bits;
            if (fits && from.sum) from.unlink();
            if (fits && !from.id) from.id = new_id();
        }
    }
    const Value stored = by_register ? state_.reg(insn.src) : constant;
    return access(insn.dst, insn.off, form.bits / 8u, true, -1, false, &stored);
}

bool Engine::atomic(const Insn &insn, const Form &form) {
    if (!readable(insn.src) || !readable(insn.dst)) return false;
    const bool swaps = form.shape == Shape::compare_swap;
    if (swaps && !readable(0)) return false;
    const Sort sort = state_.reg(insn.dst).sort;
    if (sort == Sort::context || sort == Sort::packet || sort == Sort::packet_meta)
        return refuse("BPF_ATOMIC stores into R{} {} is not allowed", static_cast<unsigned>(insn.dst), sort_word(sort));
    const bool fetches = form.shape != Shape::atomic;
    const unsigned into = swaps ? 0 : insn.src, size = form.bits / 8u;
    if (fetches && !writable(into)) return false;
    const unsigned reg = insn.dst;
    const Value base = state_.reg(reg); // which may be overwritten by the load
    if (!aligned(reg, insn.off, size)) return false;
    if (!access(reg, insn.off, size, false, fetches ? static_cast<int>(into) : -1, false, nullptr)) return false;
    Value after;
    const bool same = fetches && into == reg;
    if (same) {
        after = state_.reg(reg);
        state_.reg(reg) = base;
    }
    if (!access(reg, insn.off, size, true, -1, false, nullptr)) return false;
    if (same) state_.reg(reg) = after;
    return true;
}

// LD_ABS and LD_IND, from before there were packet pointers: a function of the kernel in disguise.
bool Engine::packet_load(const Insn &insn, const Form &form) {
    const auto type = static_cast<ProgramType>(program_.type);
    if (type != ProgramType::SOCKET_FILTER && type != ProgramType::SCHED_CLS && type != ProgramType::SCHED_ACT)
        return refuse("BPF_LD_[ABS|IND] instructions not allowed for this program type");
    if (!readable(6)) return false;
    if (state_.lock) return refuse("BPF_LD_[ABS|IND] cannot be used inside bpf_spin_lock-ed region");
    if (!nothing_held("BPF_LD_[ABS|IND]")) return false;
    if (state_.reg(6).sort != Sort::context) return refuse("at the time of BPF_LD_ABS|IND R6 != pointer to skb");
    if (state_.reg(6).off != 0 || !state_.reg(6).bounds.is_known())
        return refuse("{}", moved_pointer("ctx", 6, state_.reg(6).off));
    if (form.shape == Shape::packet_ind && !readable(insn.src)) return false;
    if (flow_.functions.size() > 1) return undecided("LD_ABS and LD_IND in a program with functions");
    forget_caller_saved();
    set(0, any_number(node()));
    return true;
}

} // namespace rawbpf::inline v0::verifier
