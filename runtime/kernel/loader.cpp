// Loads a spec into the kernel.
//
//      ObjectSpec
//        | 1. which programs, and so which maps            struct_ops maps say which of theirs are wanted
//        | 2. CO-RE against the kernel's BTF               only where an instruction asks for it
//        | 3. BPF_BTF_LOAD                                 as it is, else sanitised, else not at all
//        | 4. BPF_MAP_CREATE, fill, freeze                 maps of the chosen programs          load_maps.cpp
//        | 5. patch descriptors and addresses into code                                         load_programs.cpp
//        | 6. BPF_PROG_LOAD                                without a log; once more with one when refused
//        | 7. prog arrays and maps of maps: their slots
//        v
//      LoadedObject: owns every descriptor
//
// A command should be ready in milliseconds, and loading is a part of its start, so nothing is probed in advance: each step
// does what the object needs, and only when the kernel refuses does the search for the reason begin. The kernel determines the
// order of the steps: a program can't refer to a map that doesn't exist.
#include "runtime/kernel/loader.h"

#include <algorithm>

#include "asm/map_types.h"
#include "asm/program_types.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/btf_load.h"
#include "runtime/kernel/load_parts.h"
#include "runtime/kernel/loading.h"
#include "runtime/kernel/permission_error.h"
#include "runtime/object/core.h"

namespace rawbpf::inline v0 {
namespace {

Result<std::vector<size_t>> chosen_programs(const ObjectSpec &spec, const LoadOptions &options) {
    std::vector<size_t> chosen;
    for (const std::string &wanted : options.programs) {
        bool found = false;
        for (size_t i = 0; i < spec.programs.size(); ++i) found |= spec.programs[i].name == wanted;
        if (found) continue;
        std::string names;
        for (const ProgramSpec &program : spec.programs) append(names, "{}{}", names.empty() ? "" : ", ", program.name);
        return fail(Errc::not_found, "no program {}; there {}: {}", wanted, spec.programs.size() == 1 ? "is" : "are",
                    names.empty() ? "none" : names);
    }
    for (size_t i = 0; i < spec.programs.size(); ++i) {
        const ProgramSpec &program = spec.programs[i];
        if (options.programs.empty()
                ? program.autoload
                : std::find(options.programs.begin(), options.programs.end(), program.name) != options.programs.end())
            chosen.push_back(i);
    }
    return chosen;
}

bool has_struct_ops(const ObjectSpec &spec) {
    return std::any_of(
               spec.programs.begin(), spec.programs.end(),
               [](const ProgramSpec &program) { return program.type == static_cast<uint32_t>(ProgramType::STRUCT_OPS); }) ||
           std::any_of(spec.maps.begin(), spec.maps.end(),
                       [](const MapSpec &map) { return map.type == static_cast<uint32_t>(MapType::STRUCT_OPS); });
}

Result<LoadedObject> load_parts(ObjectSpec &spec, const LoadOptions &options) {
    std::vector<size_t> chosen = TRY(chosen_programs(spec, options));
    LoadedObject object;
    object.name = spec.name;
    object.notes = spec.notes;
    Loading loading{spec, options, object, {}, {}, 0, !options.programs.empty(), {}, {}};
    if (has_struct_ops(spec)) TRY(struct_ops_part(loading, chosen));
    const std::vector<bool> needed = TRY(needed_maps(loading, chosen));
    for (ProgramSpec &program : spec.programs) program.autoload = false;
    for (size_t index : chosen) spec.programs[index].autoload = true;
    if (has_core_relocations(spec)) TRY(TRY(loading.symbols())->relocate(spec));
    if (!spec.btf.empty()) object.btf = load_btf(spec.btf, object.notes);
    if (Result<void> made = make_maps(loading, needed); !made) {
        Error error = std::move(made).error();
        std::vector<uint32_t> types;
        types.reserve(chosen.size());
        for (size_t index : chosen) types.push_back(spec.programs[index].type);
        if (error.kind == Errc::permission)
            if (std::string words = missing_privileges(types); !words.empty()) error.hint = std::move(words);
        return Unexpected(std::move(error));
    }
    if (Result<void> done = load_programs(loading, chosen); !done) {
        // What couldn't be heeded may be why: a pointer in data that points nowhere.
        Error error = std::move(done).error();
        if (error.kind == Errc::rejected)
            for (const std::string &note : spec.notes) append(error.hint, "{}{}", error.hint.empty() ? "" : "\n", note);
        return Unexpected(std::move(error));
    }
    TRY(fill_slots(loading));
    object.pinned_by_name = loading.pins.files();
    loading.pins.keep();
    return object;
}

} // namespace

Result<KernelSymbols *> Loading::symbols() {
    if (!names) names = TRY(kernel_types_part(spec, options.btf_path));
    return names.get();
}

Map *LoadedObject::find_map(std::string_view wanted) {
    for (Map &map : maps)
        if (map.name() == wanted) return &map;
    return nullptr;
}

Result<Map *> LoadedObject::needed_map(std::string_view wanted) {
    if (Map *found = find_map(wanted)) return found;
    return fail(Errc::internal, "{} has no map {}", name, wanted);
}

Program *LoadedObject::find_program(std::string_view wanted) {
    for (Program &program : programs)
        if (program.name == wanted) return &program;
    return nullptr;
}

Result<LoadedObject> load(ObjectSpec spec, const LoadOptions &options) {
    return TRY_IN(load_parts(spec, options), "{}", spec.name.empty() ? "object" : spec.name);
}

} // namespace rawbpf::inline v0
