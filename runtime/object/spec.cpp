// Finds things in a spec by name.
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

MapSpec *ObjectSpec::find_map(std::string_view wanted) {
    for (MapSpec &map : maps)
        if (map.name == wanted) return &map;
    for (MapSpec &map : maps)
        if (!map.data_section.empty() && map.data_section == wanted) return &map;
    return nullptr;
}

ProgramSpec *ObjectSpec::find_program(std::string_view wanted) {
    for (ProgramSpec &program : programs)
        if (program.name == wanted) return &program;
    return nullptr;
}

ObjectSpec::Global ObjectSpec::find_variable(std::string_view wanted) {
    const auto types = btf::Btf::parse(btf, name);
    if (!types) return {};
    for (MapSpec &map : maps) {
        if (map.data_section.empty() || map.value_type == 0) continue;
        const auto section = types->type(map.value_type);
        if (!section || section->kind != btf::Kind::datasec) continue;
        for (uint32_t i = 0; i < section->vlen; ++i) {
            const auto place = types->secinfo(*section, i);
            const auto variable = place ? types->type(place->type) : Result<btf::Type>();
            if (!place || !variable || variable->name != wanted) continue;
            if (place->offset > map.value_size || place->size > map.value_size - place->offset) return {};
            map.contents.resize(map.value_size); // .bss has no bytes until somebody asks for them
            return {std::span(map.contents).subspan(place->offset, place->size), variable->size_or_type, map.name};
        }
    }
    return {};
}

} // namespace rawbpf::inline v0
