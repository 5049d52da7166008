// BTF for older kernels.
//
// A kernel refuses BTF completely if it contains one kind that it doesn't know. Ids must stay the same, since line and
// function information and maps refer to them, so each unknown type is overwritten in place by an older kind whose record has
// the same length:
//
//      12 bytes: name_off | info (kind, vlen) | size or type     then, by kind:
//
//      VAR       u32 linkage                 ->  INT       u32 encoding           one byte, so that it fits whatever it stood for
//      DATASEC   12 x n: type, offset, size  ->  STRUCT    12 x n: name, type, bit offset
//      DECL_TAG  s32 component               ->  INT       u32 encoding
//      FLOAT     -                           ->  STRUCT    without members, of the same size
//      TYPE_TAG  -                           ->  CONST
//      ENUM64    12 x n: name, low, high     ->  UNION     12 x n: name, type, bit offset   of one-byte integers (added
//                                                                                           at the end)
//      ENUM with kind_flag (signed)          ->  ENUM without it
//      FUNC with linkage in vlen             ->  FUNC, static
//
// A STRUCT's name must be an identifier, so the dots of ".rodata" become underscores; so does the question mark of "?.struct_ops"
// where a DATASEC must not have one. Reference: kernel/bpf/btf.c.
#include "runtime/kernel/btf_sanitize.h"

#include <cstring>

#include "runtime/base/format.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0 {
namespace {

using btf::Kind;

constexpr size_t kHeader = 24;

uint32_t get(const std::byte *at) { return load<uint32_t>(at); }
void set(std::byte *at, uint32_t value) { std::memcpy(at, &value, sizeof value); }

uint32_t info_of(Kind kind, uint32_t vlen) { return static_cast<uint32_t>(kind) << 24 | vlen; }

// Bytes behind the fixed twelve; SIZE_MAX for a kind that nobody knows.
uint64_t extra_size(Kind kind, uint64_t vlen) {
    switch (kind) {
    case Kind::ptr:
    case Kind::fwd:
    case Kind::typedef_:
    case Kind::volatile_:
    case Kind::const_:
    case Kind::restrict_:
    case Kind::func:
    case Kind::float_:
    case Kind::type_tag: return 0;
    case Kind::int_:
    case Kind::var:
    case Kind::decl_tag: return 4;
    case Kind::array: return 12;
    case Kind::enum_:
    case Kind::func_proto: return 8 * vlen;
    case Kind::struct_:
    case Kind::union_:
    case Kind::datasec:
    case Kind::enum64: return 12 * vlen;
    default: return SIZE_MAX;
    }
}

} // namespace

Result<std::vector<std::byte>> sanitize_btf(Bytes btf, const BtfSupport &support) {
    ByteReader reader(btf, "BTF");
    if (btf.size() < kHeader) return Unexpected(reader.error_at(0, "no room for a header"));
    if (load<uint16_t>(btf.data()) != 0xeb9f) return Unexpected(reader.error_at(0, "no BTF of this machine's byte order"));
    const uint64_t header = get(btf.data() + 4);
    const uint64_t types = header + get(btf.data() + 8), types_size = get(btf.data() + 12);
    const uint64_t strings = header + get(btf.data() + 16), strings_size = get(btf.data() + 20);
    if (header < kHeader || types + types_size > btf.size() || strings + strings_size > btf.size())
        return Unexpected(reader.error_at(4, "sections outside the file"));

    std::vector<std::byte> out(btf.begin(), btf.end());
    // The id of the one-byte integer that stands for the values of ENUM64s: known when all types have been counted.
    uint32_t count = 0;
    std::vector<uint64_t> enum64s;
    for (uint64_t at = types; at < types + types_size; ++count) {
        if (types + types_size - at < 12) return Unexpected(reader.error_at(at, "a type ends early"));
        std::byte *type = out.data() + at;
        const uint32_t info = get(type + 4), vlen = info & 0xffffff;
        const Kind kind = static_cast<Kind>(info >> 24 & 0x7f);
        const uint64_t extra = extra_size(kind, vlen);
        if (extra == SIZE_MAX) return Unexpected(reader.error_at(at, format("unknown kind {}", info >> 24 & 0x7f)));
        if (types + types_size - at - 12 < extra) return Unexpected(reader.error_at(at, "a type ends early"));
        std::byte *tail = type + 12;
        constexpr uint32_t kOneByte = 8; // INT encoding: 8 bits at offset 0, unsigned

        if ((kind == Kind::var && !support.var_datasec) || (kind == Kind::decl_tag && !support.decl_tag)) {
            set(type + 4, info_of(Kind::int_, 0));
            set(type + 8, 1);
            set(tail, kOneByte);
        } else if (kind == Kind::datasec && (!support.var_datasec || !support.any_name)) {
            const uint32_t name = get(type);
            if (name >= strings_size) return Unexpected(reader.error_at(at, "a name outside the strings"));
            for (uint64_t i = strings + name; i < strings + strings_size && out[i] != std::byte{0}; ++i)
                if ((out[i] == std::byte{'.'} && !support.var_datasec) || out[i] == std::byte{'?'}) out[i] = std::byte{'_'};
            if (!support.var_datasec) {
                set(type + 4, info_of(Kind::struct_, vlen));
                for (uint32_t i = 0; i < vlen; ++i) {
                    std::byte *member = tail + 12 * uint64_t{i};
                    const uint32_t var = get(member), offset = get(member + 4);
                    set(member, 0); // no name: the variable's own would have to be looked up by id
                    set(member + 4, var);
                    set(member + 8, offset * 8);
                }
            }
        } else if (kind == Kind::float_ && !support.float_kind) {
            set(type + 4, info_of(Kind::struct_, 0));
        } else if (kind == Kind::type_tag && !support.type_tag) {
            set(type, 0); // qualifiers have no name
            set(type + 4, info_of(Kind::const_, 0));
        } else if (kind == Kind::enum64 && !support.enum64) {
            set(type + 4, info_of(Kind::union_, vlen));
            enum64s.push_back(at);
        } else if (kind == Kind::enum_ && !support.enum64) {
            set(type + 4, info_of(Kind::enum_, vlen));
        } else if (kind == Kind::func && !support.func_global) {
            set(type + 4, info_of(Kind::func, 0));
        }
        at += 12 + extra;
    }
    if (enum64s.empty()) return out;

    const uint32_t placeholder = count + 1;
    for (uint64_t at : enum64s) {
        const uint32_t vlen = get(out.data() + at + 4) & 0xffffff;
        for (uint32_t i = 0; i < vlen; ++i) {
            std::byte *member = out.data() + at + 12 + 12 * uint64_t{i};
            set(member + 4, placeholder);
            set(member + 8, 0);
        }
    }
    // The integer goes behind the last type, its name behind the last string. Sections may lie in either order and be apart, so
    // the file is put together afresh.
    constexpr std::string_view kName("enum64_value\0", 13);
    std::vector<std::byte> fresh(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(kHeader));
    const uint32_t integer[4] = {static_cast<uint32_t>(strings_size), info_of(Kind::int_, 0), 1, 8};
    const std::byte *raw = reinterpret_cast<const std::byte *>(integer);
    fresh.insert(fresh.end(), out.begin() + static_cast<std::ptrdiff_t>(types),
                 out.begin() + static_cast<std::ptrdiff_t>(types + types_size));
    fresh.insert(fresh.end(), raw, raw + sizeof integer);
    fresh.insert(fresh.end(), out.begin() + static_cast<std::ptrdiff_t>(strings),
                 out.begin() + static_cast<std::ptrdiff_t>(strings + strings_size));
    const Bytes name = bytes_of(kName);
    fresh.insert(fresh.end(), name.begin(), name.end());
    set(fresh.data() + 4, kHeader);
    set(fresh.data() + 8, 0);
    set(fresh.data() + 12, static_cast<uint32_t>(types_size + sizeof integer));
    set(fresh.data() + 16, static_cast<uint32_t>(types_size + sizeof integer));
    set(fresh.data() + 20, static_cast<uint32_t>(strings_size + kName.size()));
    return fresh;
}

} // namespace rawbpf::inline v0
