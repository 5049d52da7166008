// All types' addresses in one table, and one pass of checks over everything that they refer to.
//
//      id:     0        1        2        3
//      at_:  nullptr    |        |        |
//                       v        v        v
//      bytes:           [INT    ][STRUCT          ][PTR] ...
//
// A split BTF's table begins with its base's types, so that any id is one load away. The kernel's 126,585 types take 1 MB and
// 4 ms, half of it for the checks.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2") // all of a kernel's types pass here; -Os, as releases are built, takes half as long again
#endif

#include "runtime/btf/flat.h"

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::btf {

bool refers(Kind kind) {
    switch (kind) {
    case Kind::ptr:
    case Kind::typedef_:
    case Kind::volatile_:
    case Kind::const_:
    case Kind::restrict_:
    case Kind::func:
    case Kind::func_proto:
    case Kind::var:
    case Kind::decl_tag:
    case Kind::type_tag: return true;
    default: return false;
    }
}

Result<Flat> Flat::make(const Btf &btf) {
    Flat flat;
    flat.state_ = btf.state_;
    flat.first_ = btf.first_id();
    flat.at_.resize(btf.end_id());
    const TypeId end = btf.end_id();
    for (const Btf::State *s = flat.state_.get(); s; s = s->base.get()) {
        const std::byte *at = s->types;
        for (TypeId id = s->first; id < s->end; ++id) {
            flat.at_[id] = at;
            at += s->size_at(at);
        }
    }
    // Strings end with a NUL, so an offset inside them is a string. The base was parsed by somebody else and is checked, too.
    const uint32_t strings_end = flat.state_->strings_end();
    for (TypeId id = 1; id < end; ++id) {
        auto bad = [&](std::string_view what, uint64_t value) {
            return fail(Errc::bad_input, "{}: BTF type {} ({}): {} {}, and there are {} types and {} bytes of names", btf.name(),
                        id, kind_name(flat.kind(id)), what, value, end - 1, strings_end);
        };
        auto name_fits = [&](uint32_t offset) { return offset == 0 || offset < strings_end; };
        const Kind kind = flat.kind(id);
        if (!name_fits(flat.name_offset(id))) return bad("its name is at", flat.name_offset(id));
        if (refers(kind) && flat.target(id) >= end) return bad("it refers to type", flat.target(id));
        const std::byte *at = flat.extra(id);
        const uint32_t count = flat.vlen(id);
        switch (kind) {
        case Kind::array:
            if (flat.word(at) >= end) return bad("its elements are of type", flat.word(at));
            if (flat.word(at + 4) >= end) return bad("its index is of type", flat.word(at + 4));
            break;
        case Kind::struct_:
        case Kind::union_:
            for (uint32_t i = 0; i < count; ++i, at += 12) {
                if (!name_fits(flat.word(at))) return bad("a member's name is at", flat.word(at));
                if (flat.word(at + 4) >= end) return bad("a member is of type", flat.word(at + 4));
            }
            break;
        case Kind::enum_:
        case Kind::enum64:
            for (uint32_t i = 0; i < count; ++i, at += kind == Kind::enum_ ? 8 : 12)
                if (!name_fits(flat.word(at))) return bad("an enumerator's name is at", flat.word(at));
            break;
        case Kind::func_proto:
            for (uint32_t i = 0; i < count; ++i, at += 8) {
                if (!name_fits(flat.word(at))) return bad("a parameter's name is at", flat.word(at));
                if (flat.word(at + 4) >= end) return bad("a parameter is of type", flat.word(at + 4));
            }
            break;
        case Kind::datasec:
            for (uint32_t i = 0; i < count; ++i, at += 12)
                if (flat.word(at) >= end) return bad("a variable is type", flat.word(at));
            break;
        default: break;
        }
    }
    return flat;
}

EnumValue Flat::enum_value(TypeId id, uint32_t index) const {
    const bool wide = kind(id) == Kind::enum64;
    const std::byte *at = extra(id) + size_t{index} * (wide ? 12 : 8);
    const uint32_t low = word(at + 4);
    const uint64_t value = wide            ? uint64_t{word(at + 8)} << 32 | low
                           : kind_flag(id) ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(low)})
                                           : low;
    return {text(word(at)), value};
}

IntEncoding Flat::int_encoding(TypeId id) const { return decode_int(extra_word(id, 0)); }

} // namespace rawbpf::inline v0::btf
