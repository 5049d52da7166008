// Types are added when they are first needed, so that a unit without any costs nothing; clang's names are used, since C++ headers
// are made of them.
#include "runtime/object/unit_values.h"

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::object {

using btf::TypeId;

std::string legal_name(std::string_view name, bool dots) {
    std::string out(name);
    for (char &c : out)
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (dots && c == '.')))
            c = '_';
    if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out.insert(out.begin(), '_');
    return out;
}

Result<void> UnitValues::start(const Unit &unit, TypeId int32) {
    unit_name_ = unit.name;
    int32_ = int32;
    for (const StructDef &def : unit.types) {
        std::vector<btf::Writer::Field> fields;
        for (const StructDef::Field &field : def.fields)
            fields.push_back({field.name, TRY(type_of(field.type, field.count)), field.offset * 8});
        basic_[def.name] = types_.add_struct(def.name, def.size, fields);
    }
    return {};
}

Result<TypeId> UnitValues::type_of(std::string_view name, uint32_t count) {
    const size_t bracket = name.find('[');
    if (bracket != std::string_view::npos) {
        count = 0;
        for (char c : name.substr(bracket + 1)) {
            if (c == ']') break;
            count = count * 10 + static_cast<uint32_t>(c - '0');
        }
        name = name.substr(0, bracket);
    }
    auto known = basic_.find(name);
    TypeId id = 0;
    if (known != basic_.end()) {
        id = known->second;
    } else if (name == "ptr") {
        id = types_.add_ptr(0);
    } else if (name == "char") {
        id = types_.add_int("char", 1, true); // the kernel takes one property at a time: signed, as clang says it
    } else if ((name.starts_with('u') || name.starts_with('s')) && (name.size() == 2 || name.size() == 3)) {
        constexpr std::string_view kNames[2][4] = {{"unsigned char", "unsigned short", "unsigned int", "unsigned long long"},
                                                   {"signed char", "short", "int", "long long"}};
        const std::string_view bits = name.substr(1);
        const size_t which = bits == "8" ? 0 : bits == "16" ? 1 : bits == "32" ? 2 : bits == "64" ? 3 : 4;
        if (which == 4) return fail(Errc::invalid_argument, "{}: there is no type {}", unit_name_, name);
        const bool is_signed = name[0] == 's';
        id = is_signed && which == 2 ? int32_ : types_.add_int(kNames[is_signed ? 1 : 0][which], 1u << which, is_signed);
    } else {
        return fail(Errc::invalid_argument, "{}: there is no type {}", unit_name_, name);
    }
    if (known == basic_.end()) basic_.emplace(name, id);
    return count == 0 ? id : types_.add_array(id, int32_, count);
}

Result<TypeId> UnitValues::section_of(const Unit &unit, const MapDef &map) {
    std::vector<btf::VarSecinfo> vars;
    for (const Variable &variable : unit.variables) {
        if (variable.map != map.name) continue;
        TypeId type = TRY(type_of(variable.type, variable.count));
        if (map.read_only) type = types_.add_modifier(btf::Kind::const_, type);
        vars.push_back({types_.add_var(legal_name(variable.name), type, 1), variable.offset, variable.size});
    }
    return vars.empty() ? TypeId{0} : types_.add_datasec(map.name, map.value_size, vars);
}

} // namespace rawbpf::inline v0::object
