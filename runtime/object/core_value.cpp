// Numbers for places, and instructions that hold them.
//
// Most kinds are read off directly: an offset, a size, 0 or 1. Bitfields need three numbers that work together: where to load
// from (byte_off), how much (byte_sz), and how far to shift left and right again (lshift, rshift; _signed says which shift):
//
//        bit:  63                                         0
//      u64:    [ ........... | bits bit_size | ........... ]    little-endian, loaded from byte_off with byte_sz bytes
//      << lshift = 64 - (bit_offset + bit_size - byte_off * 8)   the field's top bit becomes bit 63
//      >> rshift = 64 - bit_size                                 and its lowest one bit 0
//
// byte_off is aligned to byte_sz, and byte_sz is the field's own type's size, doubled until the field lies inside.
//
// Instructions that can hold a number, and where:
//      rX = K, rX += K ...          imm, 32 bits
//      rX = *(T *)(rY + K), stores  off, 16 bits; T follows the field's size where zero-extension keeps the value right
//      rX = K ll                    imm of both halves
//
// Rules as in libbpf's relo_core.c and the kernel (which compiles the same file), since programs depend on them; the numbers
// are those of a little-endian target.
#include "runtime/object/core_value.h"

#include <linux/bpf.h>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::object {

namespace {

using btf::Kind;

/// Size of one element however many dimensions an array has; for other types their own.
Result<uint32_t> element_size(const btf::Btf &btf, btf::TypeId id) {
    constexpr int kDimensions = 32;
    btf::Type type = TRY(btf.resolve(id));
    for (int i = 0; i < kDimensions && type.kind == Kind::array; ++i) type = TRY(btf.resolve(btf.array(type).element));
    const uint64_t size = TRY(btf.size_of(type.id));
    return static_cast<uint32_t>(size); // no array: a 32-bit number in the BTF itself
}

struct Bits {
    uint64_t byte_offset, byte_size, bit_size;
};

/// The load that covers a field.
Result<Bits> covering_load(const CorePath &path, const btf::Member &member, const btf::Type &type) {
    if (member.bit_size == 0) {
        const uint64_t size = TRY(path.btf->size_of(type.id));
        return Bits{path.bit_offset / 8, size, size * 8};
    }
    uint64_t size = type.size_or_type;
    if (size == 0 || size > 8 || (type.kind != Kind::int_ && type.kind != Kind::enum_ && type.kind != Kind::enum64))
        return fail(Errc::bad_input, "{}: the type of a bitfield can't have {} bytes", describe(path), size);
    auto start = [&] { return path.bit_offset / 8 / size * size; };
    while (path.bit_offset + member.bit_size > (start() + size) * 8) {
        if (size >= 8) return fail(Errc::unsupported, "{}: this bitfield can't be read with one load of 64 bits", describe(path));
        size *= 2;
    }
    return Bits{start(), size, member.bit_size};
}

Result<CoreValue> element_value(CoreKind kind, const CorePath &path) {
    CoreValue value;
    if (kind == CoreKind::field_byte_offset) {
        value.number = path.bit_offset / 8;
        value.type = path.last().type;
        value.size = TRY(element_size(*path.btf, value.type));
    } else if (kind == CoreKind::field_byte_size) {
        value.number = TRY(path.btf->size_of(path.last().type));
    } else {
        return fail(Errc::bad_input, "{}: {} isn't possible for an array element", describe(path),
                    core_kind_name(uint32_t(kind)));
    }
    return value;
}

Result<CoreValue> field_value(CoreKind kind, const CorePath &path) {
    if (path.last().name.empty()) return element_value(kind, path);
    const btf::Btf &btf = *path.btf;
    const btf::Member member = TRY(btf.member(TRY(btf.type(path.last().type)), path.last().index));
    const btf::Type type = TRY(btf.resolve(member.type));
    const bool bitfield = member.bit_size > 0;
    CoreValue value;
    value.may_check = !bitfield;
    if (kind == CoreKind::field_signed) {
        const bool is_enum = type.kind == Kind::enum_ || type.kind == Kind::enum64;
        value.number = is_enum ? type.kind_flag : type.kind == Kind::int_ && btf.int_encoding(type).is_signed;
        value.may_check = true;
        return value;
    }
    const Bits bits = TRY(covering_load(path, member, type));
    switch (kind) {
    case CoreKind::field_byte_offset:
        value.number = bits.byte_offset;
        if (!bitfield) {
            value.type = type.id;
            value.size = TRY(element_size(btf, type.id));
        }
        break;
    case CoreKind::field_byte_size: value.number = bits.byte_size; break;
    case CoreKind::field_lshift: value.number = 64 - (path.bit_offset + bits.bit_size - bits.byte_offset * 8); break;
    default: // field_rshift
        value.number = 64 - bits.bit_size;
        value.may_check = true;
    }
    return value;
}

/// Whether a load may change its width from one type's to the other's: pointers (a 32-bit kernel's), unsigned integers.
Result<bool> may_resize(const CorePath &local, const CoreValue &before, const CorePath &target, const CoreValue &after) {
    const btf::Type a = TRY(local.btf->type(before.type)), b = TRY(target.btf->type(after.type));
    if (a.kind == Kind::ptr && b.kind == Kind::ptr) return true;
    auto zero_extends = [](const btf::Btf &btf, const btf::Type &type) {
        if (type.kind != Kind::int_) return false;
        const btf::IntEncoding encoding = btf.int_encoding(type);
        return !encoding.is_signed || encoding.is_char || encoding.is_bool; // "signed and nothing else" is what counts
    };
    return zero_extends(*local.btf, a) && zero_extends(*target.btf, b);
}

constexpr uint8_t class_of(const Insn &insn) { return insn.code & 0x07; }
constexpr uint8_t size_of(const Insn &insn) { return insn.code & 0x18; }

constexpr uint32_t access_bytes(const Insn &insn) {
    switch (size_of(insn)) {
    case BPF_B: return 1;
    case BPF_H: return 2;
    case BPF_W: return 4;
    default: return 8;
    }
}

bool is_memory(const Insn &insn) { return class_of(insn) == BPF_LDX || class_of(insn) == BPF_ST || class_of(insn) == BPF_STX; }
bool is_arithmetic(const Insn &insn) {
    return (class_of(insn) == BPF_ALU || class_of(insn) == BPF_ALU64) && (insn.code & BPF_X) == 0;
}
bool is_plain_wide(const Insn *insn, size_t left) {
    return left > 1 && is_wide(*insn) && insn->src == 0 && insn->off == 0 && insn[1].code == 0 && insn[1].dst == 0 &&
           insn[1].src == 0 && insn[1].off == 0;
}

/// Gives a load or store the width of the field in the target. Empty, or why it can't have it.
Result<std::string> resize(Insn &insn, uint32_t from, uint32_t to) {
    if (access_bytes(insn) != from)
        return fail(Errc::bad_input, "it accesses {} bytes, and the field has {}", access_bytes(insn), from);
    uint8_t code;
    switch (to) {
    case 1: code = BPF_B; break;
    case 2: code = BPF_H; break;
    case 4: code = BPF_W; break;
    case 8: code = BPF_DW; break;
    default: return format("the field has {} bytes, which no load or store can have", to);
    }
    insn.code = static_cast<uint8_t>((insn.code & ~0x18) | code);
    return std::string();
}

/// Whether the instruction's number is the one expected; `sign_extended`: a 32-bit enum value that was widened with its sign.
bool holds(uint64_t held, const CoreValue &expected, bool &sign_extended) {
    if (!expected.may_check || held == expected.number) return true;
    sign_extended = expected.narrow && held == static_cast<uint64_t>(int64_t{static_cast<int32_t>(expected.number)});
    return sign_extended || (expected.narrow && held == static_cast<uint32_t>(expected.number));
}

} // namespace

Result<std::optional<CoreValue>> core_value(CoreKind kind, const CorePath *path) {
    CoreValue value;
    if (kind == CoreKind::field_exists || kind == CoreKind::enum_value_exists) {
        value.number = path != nullptr;
    } else if (is_field_kind(kind)) {
        if (!path) return std::optional<CoreValue>();
        value = TRY(field_value(kind, *path));
    } else if (is_enum_kind(kind)) {
        if (!path) return std::optional<CoreValue>();
        const btf::Type type = TRY(path->btf->type(path->steps[0].type));
        value.number = TRY(path->btf->enum_value(type, path->steps[0].index)).value;
        value.narrow = type.kind == Kind::enum_;
    } else if (path) { // types that aren't found count 0
        switch (kind) {
        case CoreKind::type_id_local:
        case CoreKind::type_id_target:
            value.number = path->root;
            value.may_check = false; // linkers renumber types and leave the instruction alone
            break;
        case CoreKind::type_size: value.number = TRY(path->btf->size_of(path->root)); break;
        default: value.number = 1; // type_exists, type_matches
        }
    }
    return std::optional(value);
}

Result<CoreResult> core_result(const CorePath &local, const CorePath *target) {
    CoreResult result;
    const std::optional<CoreValue> before = TRY(core_value(local.kind, &local));
    result.before = *before; // the local path is there, so there is a number
    const std::optional<CoreValue> after = TRY(core_value(local.kind, target));
    result.poison = !after;
    if (after) result.after = *after;
    if (target && after && result.before.size != after->size)
        result.size_conflict = !TRY(may_resize(local, result.before, *target, *after));
    return result;
}

bool put_number(Insn *insn, size_t left, uint64_t number) {
    if (is_memory(*insn)) {
        if (number > INT16_MAX) return false;
        insn->off = static_cast<int16_t>(number);
        return true;
    }
    if (is_plain_wide(insn, left)) {
        insn[0].imm = static_cast<int32_t>(static_cast<uint32_t>(number));
        insn[1].imm = static_cast<int32_t>(static_cast<uint32_t>(number >> 32));
        return true;
    }
    if (!is_arithmetic(*insn)) return false;
    insn->imm = static_cast<int32_t>(static_cast<uint32_t>(number));
    return true;
}

Result<std::string> core_patch(Insn *insn, size_t left, const CoreResult &result) {
    uint64_t held;
    if (is_memory(*insn))
        held = static_cast<uint64_t>(int64_t{insn->off});
    else if (is_arithmetic(*insn))
        held = static_cast<uint64_t>(int64_t{insn->imm});
    else if (is_plain_wide(insn, left))
        held = uint64_t{static_cast<uint32_t>(insn[0].imm)} | uint64_t{static_cast<uint32_t>(insn[1].imm)} << 32;
    else
        return fail(Errc::bad_input, "opcode {:#x} can't hold a number", insn->code);

    bool sign_extended = false;
    if (!holds(held, result.before, sign_extended))
        return fail(Errc::bad_input, "it holds {}, but by the object's own types it must hold {}", static_cast<int64_t>(held),
                    static_cast<int64_t>(result.before.number));
    uint64_t number = result.after.number;
    if (sign_extended) number = static_cast<uint64_t>(int64_t{static_cast<int32_t>(number)});

    if (is_memory(*insn)) {
        if (result.size_conflict)
            return format("the field has {} bytes here and {} in the object, and not both are pointers or unsigned integers",
                          result.after.size, result.before.size);
        if (number > INT16_MAX) return format("offset {} doesn't fit in a load's or store's 16 bits", number);
        if (result.after.size != result.before.size) {
            std::string why = TRY(resize(*insn, result.before.size, result.after.size));
            if (!why.empty()) return why;
        }
    }
    (void)put_number(insn, left, number); // its kind and range were checked above
    return std::string();
}

void core_poison(Insn *insn, size_t left) {
    const Insn call = {BPF_JMP | BPF_CALL, 0, 0, 0, kPoisonHelper};
    if (is_wide(*insn) && left > 1) insn[1] = call;
    *insn = call;
}

} // namespace rawbpf::inline v0::object
