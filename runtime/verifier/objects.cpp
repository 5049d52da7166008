// Pointers to kernel structs, and to the structs that programs see instead of them.
//
//      object        a struct in the kernel's BTF: reading follows its types (kernel_walk.cpp); a fault gives 0, so that even a
//                    pointer that may be dangling can be read. What it may not be is passed on
//      socket        struct bpf_sock, bpf_tcp_sock, bpf_xdp_sock: reads of members, rewritten by the kernel
//      flow_keys     struct bpf_flow_keys: 56 bytes
//      buffer        as many bytes as the one who attaches the program has: any offset that is known will do
//
// Trust decides what a program may do with an object: see enum Trust.
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

std::string Engine::object_name(const Value &value) const {
    const btf::Btf *types = value.owned ? types_.own() : options_.kernel_types;
    return types ? std::string(type_name(*types, value.type)) : std::string("?");
}

std::optional<Value> Engine::object(std::string_view type, Trust trust, bool maybe_null) {
    if (!options_.kernel_types) {
        (void)undecided("types of the kernel, which aren't at hand");
        return {};
    }
    const std::optional<btf::TypeId> id = options_.kernel_types->find(type, btf::Kind::struct_);
    if (!id) {
        (void)undecided(format("struct {}, which isn't in the types of the kernel", type));
        return {};
    }
    Value value = pointer(Sort::object, node());
    value.type = *id;
    value.trust = trust;
    value.maybe_null = maybe_null;
    if (maybe_null) value.id = new_id();
    return value;
}

bool Engine::object_region(unsigned reg, const Value &base, int64_t off, unsigned size) {
    const Walked walked = walk_struct(*options_.kernel_types, base.type, base.off + off, size, true);
    if (walked.what == Walked::What::nothing) return refuse_text(walked.refusal);
    (void)reg;
    return true;
}

// A read, or a write to what is the program's own.
bool Engine::object_access(unsigned reg, const Value &base, int64_t off, unsigned size, bool write, int value, const Value *) {
    const btf::Btf *types = base.owned ? types_.own() : options_.kernel_types;
    if (!types) return undecided("types of the kernel, which aren't at hand");
    const std::string name = object_name(base);
    if (!base.owned && !gpl_) return refuse("Cannot access kernel 'struct {}' from non-GPL compatible program", name);
    const int64_t at = base.off + off;
    if (at < 0) return refuse("R{} is ptr_{} invalid negative access: off={}", reg, name, at);
    if (!base.bounds.is_known() || base.bounds.number() != 0)
        return refuse("R{} is ptr_{} invalid variable offset: off={}, var_off={}", reg, name, at, bits_text(base.bounds.bits));
    if (base.user) return refuse("R{} is ptr_{} access user memory: off={}", reg, name, at);
    if (base.per_cpu) return refuse("R{} is ptr_{} access percpu memory: off={}", reg, name, at);
    if (write && !base.owned) {
        if (base.trust == Trust::untrusted) return refuse("only read is supported");
        if (const std::optional<bool> may = may_write_object(name, at, size)) return *may || refuse("only read is supported");
        return refuse("only read is supported");
    }
    if (base.owned)
        for (const KernelPart &part : types_.parts_of_type(base.type))
            if (at < part.offset + part.size && part.offset < at + size)
                return refuse("direct access to {} is disallowed", part.name);
    const Walked walked = walk_struct(*types, base.type, at, size, !base.owned);
    if (walked.what == Walked::What::nothing) return refuse_text(walked.refusal);
    if (write || value < 0) return true;
    if (walked.what == Walked::What::number || base.owned) {
        set(static_cast<unsigned>(value), any_number(node(base.node)));
        return true;
    }
    Value got = pointer(Sort::object, node(base.node));
    got.type = walked.type;
    got.user = walked.user;
    got.per_cpu = walked.per_cpu;
    got.trust = walked.in_union ? Trust::untrusted : Trust::plain;
    if (base.trust == Trust::untrusted) {
        got.trust = Trust::untrusted;
        got.user = got.per_cpu = false;
    } else if (rule(Rule::trust) && (base.trust == Trust::trusted || base.trust == Trust::rcu || base.ref)) {
        const Inherits inherits = inherited(name, walked.field);
        if (inherits == Inherits::trusted || inherits == Inherits::trusted_or_null) {
            got.trust = Trust::trusted;
            got.maybe_null = inherits == Inherits::trusted_or_null;
        } else if (in_rcu() && !base.maybe_null) {
            if (inherits == Inherits::rcu) {
                got.trust = Trust::rcu;
            } else if (walked.rcu || inherits == Inherits::rcu_or_null) {
                got.trust = Trust::rcu;
                got.maybe_null = true;
            } else if (!walked.user && !walked.per_cpu) {
                got.trust = walked.in_union ? Trust::untrusted : Trust::plain;
            }
        } else {
            got.trust = Trust::untrusted;
            got.user = got.per_cpu = false;
        }
    }
    if (got.maybe_null) got.id = new_id();
    set(static_cast<unsigned>(value), std::move(got));
    return true;
}

// Members of the kernel's structs that some types of programs may write to; nothing: it depends on more than is modelled.
std::optional<bool> Engine::may_write_object(std::string_view name, int64_t off, unsigned size) const {
    const btf::Btf &types = *options_.kernel_types;
    const bool connection = name == "nf_conn" || name == "nf_conn___init"; // the second begins with the first
    const std::optional<btf::TypeId> id = types.find(connection ? "nf_conn" : name, btf::Kind::struct_);
    const Result<btf::Type> type = id ? types.type(*id) : types.type(0);
    if (!type) return {};
    auto covers = [&](std::initializer_list<std::string_view> members) {
        for (uint32_t i = 0; i < type->vlen; ++i) {
            const Result<btf::Member> member = types.member(*type, i);
            const Result<uint64_t> bytes = member ? types.size_of(member->type) : Result<uint64_t>(uint64_t(0));
            if (!member || !bytes) continue;
            const int64_t begin = member->bit_offset / 8;
            for (std::string_view wanted : members)
                if (member->name == wanted && off >= begin && off + size <= begin + static_cast<int64_t>(*bytes)) return true;
        }
        return false;
    };
    switch (static_cast<ProgramType>(program_.type)) {
    case ProgramType::XDP:
    case ProgramType::SCHED_CLS:
    case ProgramType::SCHED_ACT: return connection && covers({"mark"});
    case ProgramType::STRUCT_OPS:
        if (name == "tcp_sock" || name == "inet_connection_sock")
            return covers({"snd_cwnd", "snd_cwnd_cnt", "snd_cwnd_stamp", "snd_ssthresh", "ecn_flags", "app_limited",
                           "icsk_ca_priv", "icsk_ack"}) ||
                   name == "tcp_sock";
        return name == "bpf_dummy_ops_state";
    default: return false;
    }
}

bool Engine::socket_load(unsigned reg, const Value &base, int64_t off, unsigned size, bool write) {
    const int64_t at = base.off + off + static_cast<int64_t>(base.bounds.number());
    if (write) return refuse("R{} cannot write into {}", reg, type_word(base));
    if (socket_access(base.socket, at, size, write) == ContextAnswer::number) return true;
    return refuse("R{} invalid {} access off={} size={}", reg, type_word(base), at, size);
}

bool Engine::flow_keys_access(const Value &base, int64_t off, unsigned size) {
    constexpr int64_t kFlowKeys = 56; // struct bpf_flow_keys
    const int64_t at = base.off + off;
    if (at < 0 || at + size > kFlowKeys) return refuse("invalid access to flow keys off={} size={}", at, size);
    return true;
}

bool Engine::buffer_access(unsigned reg, const Value &base, int64_t off, int64_t size, bool write) {
    (void)size;
    if (write && base.read_only) return refuse("R{} cannot write into {}", reg, type_word(base));
    if (base.off + off < 0)
        return refuse("R{} invalid {} buffer access: off={}, size={}", reg, base.read_only ? "rdonly" : "rdwr", base.off + off,
                      size);
    if (!base.bounds.is_known() || base.bounds.number() != 0)
        return refuse("R{} invalid variable buffer offset: off={}, var_off={}", reg, base.off + off, bits_text(base.bounds.bits));
    return true;
}

// A helper's argument that is an object of the kernel.
bool Engine::object_argument(unsigned reg, const Value &value, const ObjectWord &wanted) {
    constexpr std::string_view kExpected = "ptr_, trusted_ptr_, rcu_ptr_";
    if (value.sort != Sort::object || value.owned || value.per_cpu || value.user || value.trust == Trust::untrusted ||
        (value.maybe_null && !wanted.or_null))
        return refuse("R{} type={} expected={}", reg, type_word(value), kExpected);
    if (!options_.kernel_types) return undecided("types of the kernel, which aren't at hand");
    if (!is_a(*options_.kernel_types, value.type, value.off, wanted.type, false))
        return refuse("R{} is of type {} but {} is expected", reg, object_name(value), wanted.type);
    return true;
}

bool Engine::socket_argument(unsigned reg, const Value &value, Argument wanted) {
    const bool objects =
        wanted == Argument::sock_object || wanted == Argument::sock_object_or_null || wanted == Argument::sock_released;
    const bool or_null = wanted == Argument::sock_object_or_null || wanted == Argument::socket_or_null;
    auto expected = [&] {
        return refuse("R{} type={} expected={}", reg, type_word(value),
                      wanted == Argument::socket_or_null ? "sock"
                      : objects                          ? "sock_common, sock, tcp_sock, xdp_sock, ptr_, trusted_ptr_"
                                                         : "sock_common, sock, tcp_sock, xdp_sock");
    };
    if (value.maybe_null && !or_null) return expected();
    if (value.sort == Sort::socket) {
        if (wanted == Argument::socket_or_null && value.socket != SocketKind::full) return expected();
        if (value.off != 0) return refuse("{}", moved_pointer(type_word(value), reg, value.off));
        return true;
    }
    if (!objects || value.sort != Sort::object || value.owned || value.per_cpu || value.user || value.trust == Trust::untrusted ||
        value.trust == Trust::rcu)
        return expected();
    if (!options_.kernel_types) return undecided("types of the kernel, which aren't at hand");
    if (!is_a(*options_.kernel_types, value.type, value.off, "sock_common", false))
        return refuse("R{} is of type {} but sock_common is expected", reg, object_name(value));
    return true;
}

// A constant string: in a map that nobody can write to, and ended by 0.
bool Engine::constant_string(unsigned reg, const Value &value) {
    const MapSpec &map = map_at(spec_, value.map);
    if (!(map.flags & kReadOnlyForPrograms) || !map.freeze) return refuse("R{} does not point to a readonly map'", reg);
    if (!value.bounds.is_known()) return refuse("R{} is not a constant address'", reg);
    if (map.type != uint32_t(MapType::ARRAY)) return refuse("no direct value access support for this map type");
    const int64_t at = value.off + static_cast<int64_t>(value.bounds.number());
    if (!map_region(reg, value, 0, static_cast<int64_t>(map.value_size) - value.off, false, false, By::helper)) return false;
    for (size_t i = static_cast<size_t>(at); i < map.value_size; ++i)
        if (i >= map.contents.size() || map.contents[i] == std::byte(0)) return true;
    return refuse("string is not zero-terminated");
}

// The place of a part of a map's value that is the kernel's: bpf_timer and the like.
bool Engine::map_part(unsigned reg, const Value &value, std::string_view name, Called &called) {
    if (!value.bounds.is_known())
        return refuse("R{} doesn't have constant offset. {} has to be at the constant offset", reg, name);
    const MapSpec &map = map_at(spec_, value.map);
    const KernelPart *part = nullptr;
    for (const KernelPart &each : types_.parts[value.map])
        if (each.name == name) part = &each;
    if (!part) return refuse("map '{}' has no valid {}", map.name, name);
    const int64_t off = value.off + static_cast<int64_t>(value.bounds.number());
    if (off != part->offset) return refuse("off {} doesn't point to 'struct {}' that is at {}", off, name, part->offset);
    called.map = static_cast<int>(value.map);
    return true;
}

} // namespace rawbpf::inline v0::verifier
