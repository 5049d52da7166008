// A section's variables, from the DATASEC of its name in the object's BTF:
//
//      VAR step u64 at 0, VAR mode enum at 8, VAR last struct event at 16     -->     uint64_t step;
//                                                                                    uint32_t mode;
//                                                                                    unsigned char rawbpf_gap_12[4];
//                                                                                    unsigned char last[24]; /* struct event */
//
// Structs aren't declared: the product has a header of its own for what it shares with its programs, and two declarations would
// collide.
#include "programs/inspect/bundle_variables.h"

#include <algorithm>
#include <optional>
#include <set>

#include "programs/inspect/c_words.h"
#include "runtime/base/fail.h"
#include "runtime/btf/c_header.h"

namespace rawbpf::inline v0::inspect {
namespace {

using btf::Kind;

struct Scalar {
    std::string_view type; ///< of C
    uint64_t size = 0;
};

std::optional<Scalar> whole(uint64_t size, bool is_signed) {
    switch (size) {
    case 1: return Scalar{is_signed ? "int8_t" : "uint8_t", 1};
    case 2: return Scalar{is_signed ? "int16_t" : "uint16_t", 2};
    case 4: return Scalar{is_signed ? "int32_t" : "uint32_t", 4};
    case 8: return Scalar{is_signed ? "int64_t" : "uint64_t", 8};
    default: return std::nullopt;
    }
}

/// nullopt: no number.
std::optional<Scalar> scalar(const btf::Btf &types, const btf::Type &type) {
    switch (type.kind) {
    case Kind::int_: {
        const btf::IntEncoding encoding = types.int_encoding(type);
        if (type.name == "char") return Scalar{"char", 1};
        return whole(type.size_or_type, encoding.is_signed);
    }
    case Kind::enum_:
    case Kind::enum64: return whole(type.size_or_type, type.kind_flag);
    case Kind::ptr: return Scalar{"uint64_t", 8};
    case Kind::float_:
        if (type.size_or_type == 4) return Scalar{"float", 4};
        if (type.size_or_type == 8) return Scalar{"double", 8};
        return std::nullopt;
    default: return std::nullopt;
    }
}

Result<std::string> declared(const btf::Btf &types, btf::TypeId id, std::string_view name, uint32_t offset, uint64_t size) {
    btf::Type type = TRY(types.resolve(id));
    std::string counts;
    uint64_t elements = 1;
    for (int depth = 0; type.kind == Kind::array && depth < 16; ++depth) {
        const btf::Array array = types.array(type);
        append(counts, "[{}]", array.count);
        if (__builtin_mul_overflow(elements, uint64_t{array.count}, &elements)) elements = 0;
        type = TRY(types.resolve(array.element));
    }
    // On 32-bit x86 a uint64_t is aligned to 4: there the gaps would be wrong, so the attribute says it.
    if (const std::optional<Scalar> number = scalar(types, type);
        number && offset % number->size == 0 && elements <= size && elements * number->size == size)
        return format("{} {}{}{};", number->type, name, counts, number->size == 8 ? " __attribute__((aligned(8)))" : "");
    return format("unsigned char {}[{}]; /* {}{}{} */", name, size, btf::kind_name(type.kind), type.name.empty() ? "" : " ",
                  commented(type.name));
}

} // namespace

Result<BundleVariables> bundle_variables(const btf::Btf &types, const MapSpec &map) {
    BundleVariables out;
    std::set<std::string> taken;
    uint32_t end = 0;
    const auto fill = [&](uint32_t to) {
        if (to > end) append(out.members, "        unsigned char rawbpf_gap_{}[{}];\n", end, to - end);
        end = std::max(end, to);
    };
    for (btf::TypeId id = 1; id < types.end_id(); ++id) {
        const btf::Type section = TRY(types.type(id));
        if (section.kind != Kind::datasec || section.name != map.data_section) continue;
        std::vector<btf::VarSecinfo> places;
        for (uint32_t i = 0; i < section.vlen; ++i) places.push_back(TRY(types.secinfo(section, i)));
        std::sort(places.begin(), places.end(), [](const auto &a, const auto &b) { return a.offset < b.offset; });
        for (const btf::VarSecinfo &place : places) {
            const btf::Type var = TRY(types.type(place.type));
            if (var.kind != Kind::var || place.size == 0) continue;
            if (place.offset < end || place.offset > map.value_size || place.size > map.value_size - place.offset)
                return fail(Errc::bad_input, "{}: variable {} at {} overlaps another one, or ends behind the section",
                            map.data_section, var.name, place.offset);
            std::string name = identifier(var.name);
            if (btf::is_keyword(name)) name += '_'; // of C++: `class`
            name = unique(taken, std::move(name));
            fill(place.offset);
            append(out.members, "        {}\n", TRY(declared(types, var.size_or_type, name, place.offset, place.size)));
            end = place.offset + place.size;
            out.variables.push_back({std::string(var.name), place.offset, place.size});
        }
    }
    fill(map.value_size);
    return out;
}

} // namespace rawbpf::inline v0::inspect
