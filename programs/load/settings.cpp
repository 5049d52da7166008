// Many objects are made for their own loader: it writes a process id into a constant, sets the entries of a map to the number
// of CPUs, and only then loads. In the file such maps have 0 entries, and the kernel refuses a map of 0 entries. With these
// two functions the user can do the same on the command line.
#include "programs/load/settings.h"

#include "asm/nearest.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/base/numbers.h"
#include "runtime/btf/parse_value.h"

namespace rawbpf::inline v0::load_tool {
namespace {

Result<std::pair<std::string_view, std::string_view>> halves(std::string_view setting, char between, std::string_view form) {
    const size_t at = setting.find(between);
    if (at == std::string_view::npos || at == 0)
        return fail(Errc::invalid_argument, "\"{}\" is not of the form {}", setting, form);
    return std::pair(setting.substr(0, at), setting.substr(at + 1));
}

/// Every variable of the object's data sections, for the nearest name.
std::string near_variable(const btf::Btf &types, const ObjectSpec &spec, std::string_view wanted) {
    Nearest nearest(wanted);
    for (const MapSpec &map : spec.maps) {
        const auto section = map.value_type == 0 || map.data_section.empty() ? Result<btf::Type>() : types.type(map.value_type);
        if (!section || section->kind != btf::Kind::datasec) continue;
        for (uint32_t i = 0; i < section->vlen; ++i) {
            const auto place = types.secinfo(*section, i);
            const auto variable = place ? types.type(place->type) : Result<btf::Type>();
            if (variable) nearest.offer(variable->name);
        }
    }
    return nearest.hint();
}

} // namespace

Result<void> set_variable(ObjectSpec &spec, std::string_view setting) {
    const auto [path, text] = TRY(halves(setting, '=', "NAME=VALUE"));
    const std::string_view name = path.substr(0, path.find_first_of(".["));
    if (spec.btf.empty())
        return fail(Errc::unsupported,
                    "{}: the object has no types (BTF), so rawbpf can't find its variables; compile it with -g", name);
    const btf::Btf types = TRY(btf::Btf::parse(spec.btf, spec.name));
    const ObjectSpec::Global variable = spec.find_variable(name);
    if (variable.bytes.empty()) {
        for (const ExternSpec &outside : spec.externs)
            if (outside.name == name)
                return fail(Errc::invalid_argument, "{} is the kernel's ({}): its value isn't the object's to set", name,
                            outside.section);
        return Unexpected(make_error(Errc::not_found, format("{} has no global variable {}", spec.name, name),
                                     near_variable(types, spec, name)));
    }
    const btf::ValuePart part = TRY_IN(btf::find_part(types, variable.type, path.substr(name.size())), "{}", name);
    const uint64_t size = TRY(types.size_of(part.type));
    if (part.offset > variable.bytes.size() || size > variable.bytes.size() - part.offset)
        return fail(Errc::bad_input, "{}: {} lies outside of its {} bytes", spec.name, path, variable.bytes.size());
    TRY_IN(btf::parse_value(types, part.type, text, variable.bytes.subspan(part.offset, size)), "{}", path);
    return {};
}

Result<void> set_map(ObjectSpec &spec, std::string_view setting) {
    constexpr std::string_view kForm = "NAME:entries=N";
    const auto [name, rest] = TRY(halves(setting, ':', kForm));
    const auto [property, text] = TRY(halves(rest, '=', kForm));
    if (property != "entries")
        return fail(Errc::invalid_argument, "{}: a map's {} can't be set, only its entries", setting, property);
    MapSpec *const map = spec.find_map(name);
    if (!map) {
        Nearest nearest(name);
        for (const MapSpec &known : spec.maps) nearest.offer(known.name);
        return Unexpected(make_error(Errc::not_found, format("{} has no map {}", spec.name, name), nearest.hint()));
    }
    if (!map->data_section.empty())
        return fail(Errc::invalid_argument, "{} holds the variables of {}: it has one entry", name, map->data_section);
    uint32_t entries = 0;
    if (!parse_whole(text, entries))
        return fail(Errc::invalid_argument, "{}: \"{}\" is no number of entries (0 to {})", name, text, UINT32_MAX);
    map->max_entries = entries;
    return {};
}

} // namespace rawbpf::inline v0::load_tool
