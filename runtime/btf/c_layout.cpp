// Where C would put the members of a struct.
//
// BTF says where each member lies; C only lets one say in what order they come. So whoever writes a struct as C has to know what
// the compiler will make of it, and correct that where it differs:
//
//      BTF                        C by itself           written
//      a: u8  at 0                a at 0                unsigned char a;
//      b: u64 at 4                b at 8                unsigned long b;  } __attribute__((packed))
//
//      a: u8  at 0, size 64       size 1                unsigned char a; long: 56; long: 64; ...  (it was aligned to 64)
//
// `aligned` and `packed` aren't in BTF. A struct is packed when something in it lies where its own alignment wouldn't let it, or
// when its size isn't a multiple of the alignment. An attribute that asks for more alignment shows as gaps, which become unnamed
// bit-fields. What we call a struct's alignment is therefore never more than the real one where it matters: with less, there is a
// gap to fill; with more, its holder would be seen as packed.
//
// Bit-fields (System V ABI 3.1.2, followed by gcc and clang for BPF, x86_64 and arm64): each takes the next bits unless it would
// cross a boundary of its declared type, then the next boundary; packed ones cross it. Before Linux 5.0's kind_flag, a bit-field
// was an INT of few bits at a multiple of its own (dwarves up to 1.12).
#include "runtime/btf/c_layout.h"

#include <algorithm>
#include <bit>

namespace rawbpf::inline v0::btf {

namespace {

constexpr uint64_t kMaxSize = uint64_t{1} << 40;

} // namespace

std::optional<uint64_t> CLayout::size_of(TypeId id) const {
    uint64_t elements = 1;
    for (int depth = 0; depth < kMaxDepth; ++depth) {
        uint64_t size = 0;
        switch (types_.kind(id)) {
        case Kind::int_:
        case Kind::struct_:
        case Kind::union_:
        case Kind::enum_:
        case Kind::enum64:
        case Kind::float_: size = types_.size(id); break;
        case Kind::ptr: size = 8; break;
        case Kind::array: {
            const Array a = types_.array(id);
            if (__builtin_mul_overflow(elements, uint64_t{a.count}, &elements)) return std::nullopt;
            id = a.element;
            continue;
        }
        case Kind::const_:
        case Kind::volatile_:
        case Kind::restrict_:
        case Kind::typedef_:
        case Kind::type_tag: id = types_.target(id); continue;
        default: return std::nullopt;
        }
        if (__builtin_mul_overflow(elements, size, &size) || size > kMaxSize) return std::nullopt;
        return size;
    }
    return std::nullopt;
}

uint32_t CLayout::align_of(TypeId id, int depth) {
    for (; depth > 0; --depth) {
        switch (types_.kind(id)) {
        case Kind::int_:
        case Kind::float_: {
            const CBase base = c_base(types_, id);
            return base.word.empty() && base.alias.empty() ? 1 : types_.size(id);
        }
        case Kind::enum_:
        case Kind::enum64: return std::has_single_bit(types_.size(id)) ? std::min(types_.size(id), 8u) : 1;
        case Kind::ptr: return 8;
        case Kind::array: id = types_.array(id).element; continue;
        case Kind::const_:
        case Kind::volatile_:
        case Kind::restrict_:
        case Kind::typedef_:
        case Kind::type_tag: id = types_.target(id); continue;
        case Kind::struct_:
        case Kind::union_: {
            const uint8_t known = known_[id];
            if (known & kAlign) return 1u << ((known & kAlign) - 1);
            if (known & kBusy) return 1;
            known_[id] = kBusy;
            uint32_t align = 1;
            bool packed = false;
            for (uint32_t i = 0; i < types_.vlen(id); ++i) {
                const CMember m = member(id, i, depth - 1);
                if (!m.written) continue;
                if (m.unit) {
                    align = std::max(align, m.unit / 8);
                    packed |= m.at % m.unit + m.size > m.unit;
                } else {
                    align = std::max(align, m.align / 8);
                    packed |= m.at % m.align != 0;
                }
            }
            packed |= types_.size(id) % align != 0;
            if (packed) align = 1;
            known_[id] = static_cast<uint8_t>(std::countr_zero(align) + 1) | (packed ? kPacked : 0);
            return align;
        }
        default: return 1;
        }
    }
    return 1;
}

CMember CLayout::member(TypeId composite, uint32_t index, int depth) {
    const Member m = types_.member(composite, index);
    CMember out{.name = m.name, .type = m.type, .at = m.bit_offset};
    const std::optional<uint64_t> size = size_of(m.type);
    if (!size) return out;
    out.written = true;
    TypeId base = m.type;
    for (int steps = kMaxDepth; steps > 0 && stands_for_another(types_.kind(base)); --steps) base = types_.target(base);
    const bool is_int = types_.kind(base) == Kind::int_;
    uint32_t bits = m.bit_size;
    if (bits == 0 && is_int && !types_.kind_flag(composite)) {
        const IntEncoding encoding = types_.int_encoding(base);
        if (encoding.bits != 0 && encoding.bits < *size * 8) {
            bits = encoding.bits;
            out.at += encoding.bit_offset;
        }
    }
    if (bits == 0) {
        out.size = *size * 8;
        out.align = align_of(m.type, depth) * 8;
        return out;
    }
    out.unit = static_cast<uint32_t>(std::min<uint64_t>(*size * 8, 128));
    out.size = bits;
    out.align = 1;
    const uint32_t most = is_int && types_.int_encoding(base).is_bool ? 1 : out.unit;
    const bool can = is_int || is_enumeration(types_.kind(base));
    if (!can || !std::has_single_bit(out.unit) || out.unit < 8 || bits > most) out.written = false;
    return out;
}

} // namespace rawbpf::inline v0::btf
