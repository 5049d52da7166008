// From a spec to things that live in the kernel.
//
//      ObjectSpec
//        | 1. which programs, and so which maps
//        | 2. CO-RE against the kernel's BTF               only where an instruction asks for it
//        | 3. BPF_BTF_LOAD                                 as it is, else sanitised, else not at all
//        | 4. BPF_MAP_CREATE, fill, freeze                 maps of the chosen programs
//        | 5. patch map descriptors into ld_imm64
//        | 6. BPF_PROG_LOAD                                without a log; once more with one when refused
//        | 7. prog arrays and maps of maps: their slots
//        v
//      LoadedObject: owns every descriptor
//
// Loading is on the way of a command that should be armed in milliseconds, so nothing is probed in advance: each step asks for
// what the object wants, and only a refusal starts the search for the reason. The order of the steps is the kernel's: a program
// can't name a map that isn't there.
//
// An ld_imm64 that refers to a map, before and after (Documentation/bpf/instruction-set, "map by fd", "map value"):
//
//      18 | src=0, dst | off 0 | imm 0        18 | src=1 BPF_PSEUDO_MAP_FD    | off 0 | imm fd
//       0 |     0      |   0   | imm 0         0 |     0                      |   0   | imm 0, or offset into the value (src=2)
#include "runtime/kernel/loader.h"

#include <algorithm>
#include <cerrno>

#include "runtime/kernel/btf_load.h"
#include "runtime/kernel/kernel_symbols.h"
#include "runtime/kernel/probes.h"
#include "runtime/kernel/program_error.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/choke.h"
#include "runtime/sys/file.h"
#include "runtime/sys/names.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0 {
namespace {

// A reason for the narrator that is made of parts.
struct Why {
    std::string text;
    sys::Because because;
    explicit Why(std::string words) : text(std::move(words)), because(text) {}
};

constexpr int kNotLoaded = -1;

// ---- 1. which programs, which maps

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

// True for each map that a chosen program refers to, and for the maps that those hold from the start. An object without any
// program is a set of maps.
Result<std::vector<bool>> needed_maps(const ObjectSpec &spec, const std::vector<size_t> &chosen) {
    std::vector<bool> needed(spec.maps.size(), spec.programs.empty());
    for (size_t index : chosen)
        for (const Fixup &fixup : spec.programs[index].fixups) {
            if (fixup.kind != Fixup::Kind::map_fd && fixup.kind != Fixup::Kind::map_value) continue;
            if (fixup.map >= spec.maps.size())
                return fail(Errc::bad_input, "program {}: refers to map number {} of {}", spec.programs[index].name, fixup.map,
                            spec.maps.size());
            needed[fixup.map] = true;
        }
    for (bool again = true; again;) { // a map in a slot of a map in a slot ...
        again = false;
        for (size_t i = 0; i < spec.maps.size(); ++i) {
            if (!needed[i]) continue;
            for (const MapSpec::Slot &slot : spec.maps[i].slots)
                for (size_t j = 0; j < spec.maps.size(); ++j)
                    if (!needed[j] && spec.maps[j].name == slot.target) needed[j] = again = true;
        }
    }
    return needed;
}

// ---- 4. maps

std::string purpose(const MapSpec &spec) {
    if (!spec.data_section.empty()) return format("map {}: the global variables of section {}", spec.name, spec.data_section);
    switch (spec.type) {
    case BPF_MAP_TYPE_RINGBUF: return format("map {}: the ring that records come out of", spec.name);
    case BPF_MAP_TYPE_PERF_EVENT_ARRAY: return format("map {}: rings, one for each CPU, that records come out of", spec.name);
    case BPF_MAP_TYPE_PROG_ARRAY: return format("map {}: programs to go on with (tail calls)", spec.name);
    case BPF_MAP_TYPE_PERCPU_ARRAY: return format("map {}: slots that each CPU has for itself", spec.name);
    case BPF_MAP_TYPE_CGROUP_ARRAY: return format("map {}: cgroups to compare with", spec.name);
    case BPF_MAP_TYPE_STACK_TRACE: return format("map {}: stacks, found by number", spec.name);
    default: return format("map {}: memory that the programs and we share", spec.name);
    }
}

// A map of somebody else's must be what the programs were compiled for.
Result<Map> adopt(const MapSpec &spec, Fd fd) {
    Map map = TRY_IN(Map::from_fd(std::move(fd)), "map {}", spec.name);
    if (map.type() != spec.type || map.key_size() != spec.key_size || map.value_size() != spec.value_size)
        return fail(Errc::invalid_argument,
                    "map {}: the one to use is {} with keys of {} and values of {} bytes, not {} with {} and {}", spec.name,
                    sys::map_type_name(map.type()), map.key_size(), map.value_size(), sys::map_type_name(spec.type),
                    spec.key_size, spec.value_size);
    return map;
}

// BPF_MAP_UPDATE_ELEM of the only entry; all zeros are what a new map holds anyway.
Result<void> fill(const MapSpec &spec, const Map &map) {
    const bool zeros = std::all_of(spec.contents.begin(), spec.contents.end(), [](std::byte b) { return b == std::byte{0}; });
    if (!zeros) {
        if (spec.contents.size() > spec.value_size)
            return fail(Errc::bad_input, "map {}: {} bytes of contents for a value of {}", spec.name, spec.contents.size(),
                        spec.value_size);
        std::vector<std::byte> value(spec.contents);
        value.resize(map.lookup_size());
        Why why(format("the initial values of {}", spec.name));
        uint32_t key = 0;
        TRY_IN(map.update(&key, value.data()), "filling");
    }
    if (spec.freeze) {
        Why why(format("{} is constant from now on, so the verifier may take its values as known", spec.name));
        TRY_IN(map.freeze(), "freezing");
    }
    return {};
}

// The values of .kconfig externs come from the kernel's configuration. Zeros in their place would be silently wrong.
Result<void> refuse_kconfig(const ObjectSpec &spec, const MapSpec &map) {
    if (map.data_section != ".kconfig") return {};
    for (const ExternSpec &external : spec.externs)
        if (external.section == ".kconfig")
            return fail(Errc::unsupported, "extern {}: values of the kernel's configuration (.kconfig) are not supplied yet",
                        external.name);
    return {};
}

Result<Map> make_map(const MapSpec &spec, int btf_fd, const LoadOptions &options) {
    for (const auto &[name, fd] : options.replace_maps)
        if (name == spec.name) return adopt(spec, TRY_IN(sys::duplicate(fd), "map {}", spec.name));
    const std::string pin = options.pin_directory + "/" + spec.name;
    if (spec.pin_by_name) {
        Result<Fd> pinned = sys::obj_get(pin);
        if (pinned) return adopt(spec, std::move(*pinned));
        if (pinned.error().os != ENOENT) return Unexpected(std::move(pinned).error());
    }
    Map map;
    {
        Why why(purpose(spec));
        Result<Map> made = Map::create(spec, btf_fd);
        if (!made) {
            Error error = std::move(made).error();
            if (!spec.data_section.empty() && error.os == EINVAL && !has_feature(Feature::global_data)) {
                error.kind = Errc::unsupported;
                error.hint = format("needs {}", feature_name(Feature::global_data));
            }
            return Unexpected(std::move(error));
        }
        map = std::move(*made);
    }
    TRY(fill(spec, map));
    if (spec.pin_by_name) TRY(map.pin(pin));
    return map;
}

// ---- 5. fixups

struct Loading {
    const ObjectSpec &spec;
    const LoadOptions &options;
    LoadedObject &object;
    std::vector<int> place; // spec.maps index -> object.maps index
    KernelSymbols symbols;
};

Result<void> patch(Loading &loading, ProgramSpec &program) {
    for (const Fixup &fixup : program.fixups) {
        const bool wide = fixup.kind != Fixup::Kind::kfunc;
        if (fixup.insn >= program.insns.size() || (wide && fixup.insn + 1 >= program.insns.size()) ||
            (wide && !is_wide(program.insns[fixup.insn])))
            return fail(Errc::bad_input, "program {}: instruction {} can't be patched: no ld_imm64 there", program.name,
                        fixup.insn);
        Insn &insn = program.insns[fixup.insn];
        switch (fixup.kind) {
        case Fixup::Kind::map_fd:
        case Fixup::Kind::map_value: {
            const bool value = fixup.kind == Fixup::Kind::map_value;
            const int place = loading.place[fixup.map];
            insn.src = value ? BPF_PSEUDO_MAP_VALUE : BPF_PSEUDO_MAP_FD;
            insn.imm = loading.object.maps[static_cast<size_t>(place)].fd();
            program.insns[fixup.insn + 1].imm = value ? static_cast<int32_t>(fixup.offset) : 0;
            break;
        }
        case Fixup::Kind::kfunc: TRY(loading.symbols.patch_call(program.insns[fixup.insn], fixup)); break;
        case Fixup::Kind::ksym: TRY(loading.symbols.patch_address(insn, program.insns[fixup.insn + 1], fixup)); break;
        }
    }
    return {};
}

// ---- 6. programs

sys::ProgLoadAttr attributes(const ObjectSpec &spec, const ProgramSpec &program, int btf_fd) {
    sys::ProgLoadAttr attr;
    attr.prog_type = program.type;
    attr.expected_attach_type = program.expected_attach_type;
    attr.insns = sys::reg(program.insns.data());
    attr.insn_cnt = static_cast<uint32_t>(program.insns.size());
    attr.license = sys::reg(spec.license.c_str());
    attr.kern_version = spec.kernel_version;
    attr.prog_flags = program.flags | (program.sleepable ? BPF_F_SLEEPABLE : 0);
    sys::legal_name(program.name, attr.prog_name);
    if (btf_fd >= 0 && !program.func_info.empty()) {
        static_assert(sizeof(FuncInfo) == 8 && sizeof(LineInfo) == 16); // struct bpf_func_info and bpf_line_info
        attr.prog_btf_fd = static_cast<uint32_t>(btf_fd);
        attr.func_info = sys::reg(program.func_info.data());
        attr.func_info_cnt = static_cast<uint32_t>(program.func_info.size());
        attr.func_info_rec_size = sizeof(FuncInfo);
        if (!program.line_info.empty()) {
            attr.line_info = sys::reg(program.line_info.data());
            attr.line_info_cnt = static_cast<uint32_t>(program.line_info.size());
            attr.line_info_rec_size = sizeof(LineInfo);
        }
    }
    return attr;
}

Result<Program> load_program(Loading &loading, ProgramSpec &program) {
    TRY(patch(loading, program));
    Program out;
    out.name = program.name;
    out.section = program.section;
    out.type = program.type;
    out.expected_attach_type = program.expected_attach_type;
    out.attach_target = program.attach_target;

    sys::ProgLoadAttr attr = attributes(loading.spec, program, loading.object.btf.get());
    if (program.needs_attach_btf)
        attr.attach_btf_id = TRY_IN(loading.symbols.attach_target(program), "loading program {}", program.name);
    Result<Fd> fd = [&] {
        Why why(format("program {}: the verifier checks it, the JIT compiles it", program.name));
        const uint32_t level = loading.options.log_level;
        return level == 0 ? sys::prog_load(attr) : sys::prog_load(attr, level, out.log);
    }();
    if (!fd) {
        Why why(format("program {} once more, with a log: why was it refused?", program.name));
        std::string log;
        Result<Fd> again = sys::prog_load(attr, uapi::BPF_LOG_LEVEL1, log);
        // Function and line information must match in every detail; without them a program still runs.
        if (!again && attr.prog_btf_fd != 0 && complains_of_btf(log)) {
            sys::Because because("and without its line information, which seems to be the reason");
            again = sys::prog_load(attributes(loading.spec, program, -1));
            if (again)
                loading.object.notes.push_back(format("program {}: loaded without line information: {}", program.name, log));
        }
        if (!again) return Unexpected(explain_refusal(loading.spec, program, std::move(fd).error(), std::move(log)));
        fd = std::move(again);
    }
    out.fd = std::move(*fd);
    return out;
}

// ---- 7. slots

Result<void> fill_slots(const Loading &loading) {
    for (size_t i = 0; i < loading.spec.maps.size(); ++i) {
        if (loading.place[i] == kNotLoaded) continue;
        const MapSpec &spec = loading.spec.maps[i];
        for (const MapSpec::Slot &slot : spec.slots) {
            uint32_t fd = 0;
            if (const Program *program = loading.object.find_program(slot.target))
                fd = static_cast<uint32_t>(program->fd.get());
            else if (const Map *map = loading.object.find_map(slot.target))
                fd = static_cast<uint32_t>(map->fd());
            else if (std::any_of(loading.spec.programs.begin(), loading.spec.programs.end(),
                                 [&](const ProgramSpec &p) { return p.name == slot.target; }))
                continue; // a program that wasn't asked for: its slot stays empty
            else
                return fail(Errc::bad_input, "map {}: slot {} refers to {}, which isn't there", spec.name, slot.index,
                            slot.target);
            Why why(format("slot {} of {}: {}", slot.index, spec.name, slot.target));
            TRY_IN(loading.object.maps[static_cast<size_t>(loading.place[i])].update(&slot.index, &fd), "slot {}", slot.index);
        }
    }
    return {};
}

Result<LoadedObject> load_parts(ObjectSpec &spec, const LoadOptions &options) {
    std::vector<size_t> chosen = TRY(chosen_programs(spec, options));
    std::vector<bool> needed = TRY(needed_maps(spec, chosen));

    LoadedObject object;
    object.name = spec.name;
    Loading loading{spec, options, object, std::vector<int>(spec.maps.size(), kNotLoaded), KernelSymbols(options.btf_path)};
    for (ProgramSpec &program : spec.programs) program.autoload = false;
    for (size_t index : chosen) spec.programs[index].autoload = true;
    TRY(loading.symbols.relocate(spec));
    if (!spec.btf.empty()) object.btf = load_btf(spec.btf, object.notes);
    for (size_t i = 0; i < spec.maps.size(); ++i) {
        if (!needed[i]) continue;
        TRY(refuse_kconfig(spec, spec.maps[i]));
        loading.place[i] = static_cast<int>(object.maps.size());
        object.maps.push_back(TRY(make_map(spec.maps[i], object.btf.get(), options)));
    }
    for (size_t index : chosen) object.programs.push_back(TRY(load_program(loading, spec.programs[index])));
    TRY(fill_slots(loading));
    return object;
}

} // namespace

Map *LoadedObject::find_map(std::string_view wanted) {
    for (Map &map : maps)
        if (map.name() == wanted) return &map;
    return nullptr;
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
