// Bundles: what a loader would find out on the target is found out here, and written as tables of C
// (runtime/core/rawbpf/bundle.h).
//
//      ObjectSpec  --  for each kernel: CO-RE, kernel functions, attach targets  -->  the instructions that differ there
//          |
//          `--------  maps, instructions, fixups, section names  ------------------>  tables
//
// Instructions are written once, as the compiler made them; each kernel has a list of those that are others there, which for most
// programs is short. A kernel is recognised by the size and a hash of its types: the very bytes that the answers came from.
#include "programs/inspect/bundle_header.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "asm/map_types.h"
#include "programs/inspect/bundle_variables.h"
#include "programs/inspect/c_words.h"
#include "runtime/base/fail.h"
#include "runtime/core/rawbpf/bundle.h"
#include "runtime/kernel/btf_sanitize.h"
#include "runtime/kernel/kernel_symbols.h"
#include "runtime/object/core.h"
#include "runtime/object/sections.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::inspect {
namespace {

struct WayRow {
    Attachment attachment;
    std::string_view word; ///< of enum rawbpf_bundle_way
};
constexpr WayRow kWays[] = {
    {Attachment::kprobe, "RAWBPF_KPROBE"},
    {Attachment::kretprobe, "RAWBPF_KRETPROBE"},
    {Attachment::ksyscall, "RAWBPF_SYSCALL"},
    {Attachment::kretsyscall, "RAWBPF_RETSYSCALL"},
    {Attachment::uprobe, "RAWBPF_UPROBE"},
    {Attachment::uretprobe, "RAWBPF_URETPROBE"},
    {Attachment::tracepoint, "RAWBPF_TRACEPOINT"},
    {Attachment::raw_tracepoint, "RAWBPF_RAW_TRACEPOINT"},
    {Attachment::trampoline, "RAWBPF_TRAMPOLINE"},
    {Attachment::iterator, "RAWBPF_ITERATOR"},
    {Attachment::perf_event, "RAWBPF_PERF_EVENT"},
    {Attachment::cgroup, "RAWBPF_CGROUP"},
    {Attachment::network_namespace, "RAWBPF_NETNS"},
    {Attachment::xdp, "RAWBPF_XDP"},
    {Attachment::tcx, "RAWBPF_TCX"},
};

constexpr std::string_view kByHand = "RAWBPF_BY_HAND";

std::string_view way_word(const SectionKind *kind) {
    for (const WayRow &row : kWays)
        if (kind && row.attachment == kind->attachment) return row.word;
    return kByHand;
}

Error only_core(const ObjectSpec &spec, const std::string &what) {
    return make_error(Errc::unsupported, format("{}: {}, which a bundle can't have", spec.name, what),
                      "load it by <rawbpf/core.h>, which finds such things out on the machine that it runs on");
}

Result<void> check_fits(const ObjectSpec &spec) {
    if (spec.maps.size() > size_t{RAWBPF_BUNDLE_MOST} || spec.programs.size() > size_t{RAWBPF_BUNDLE_MOST})
        return Unexpected(only_core(spec, format("it has more than {} maps or programs", size_t{RAWBPF_BUNDLE_MOST})));
    for (const MapSpec &map : spec.maps) {
        if (map.type == BPF_MAP_TYPE_STRUCT_OPS) return Unexpected(only_core(spec, format("{} is a struct_ops map", map.name)));
        if (map.type == uapi::BPF_MAP_TYPE_ARENA) return Unexpected(only_core(spec, format("{} is an arena", map.name)));
        if (map.data_section == ".kconfig")
            return Unexpected(only_core(spec, "it asks for the kernel's configuration (.kconfig)"));
    }
    for (const ProgramSpec &program : spec.programs) {
        if (!program.autoload) continue;
        if (program.type == BPF_PROG_TYPE_UNSPEC)
            return fail(Errc::bad_input, "program {}: {}", program.name, explain_unknown_section(program.section));
        if (program.type == BPF_PROG_TYPE_EXT)
            return Unexpected(only_core(spec, format("program {} replaces a function of another program", program.name)));
        if (!program.jump_tables.empty())
            return Unexpected(
                only_core(spec, format("program {} has a jump table (-fno-jump-tables compiles without)", program.name)));
        for (const Fixup &fixup : program.fixups)
            if (fixup.kind == Fixup::Kind::ksym && fixup.type == 0)
                return Unexpected(only_core(
                    spec, format("program {} asks for the address of the kernel symbol {}", program.name, fixup.symbol)));
    }
    return {};
}

bool is_kernel_fixup(const Fixup &fixup) { return fixup.kind == Fixup::Kind::kfunc || fixup.kind == Fixup::Kind::ksym; }

/// The spec as it would be loaded on that kernel, but for descriptors, and for each program what it is verified against.
struct ForKernel {
    ObjectSpec spec;
    std::vector<uint32_t> attach_ids;
};

Result<ForKernel> for_kernel(const ObjectSpec &spec, const btf::Btf &types) {
    ForKernel out{spec, {}};
    KernelSymbols symbols(spec, types);
    TRY(symbols.relocate(out.spec));
    for (ProgramSpec &program : out.spec.programs) {
        out.attach_ids.push_back(0);
        if (!program.autoload) continue;
        for (const Fixup &fixup : program.fixups) {
            if (!is_kernel_fixup(fixup)) continue;
            if (fixup.kind == Fixup::Kind::kfunc)
                TRY(symbols.patch_call(program, fixup));
            else
                TRY(symbols.patch_address(program.insns[fixup.insn], program.insns[fixup.insn + 1], fixup));
        }
        if (program.needs_attach_btf)
            out.attach_ids.back() = TRY_IN(symbols.attach_target(program), "program {}", program.name).id;
    }
    return out;
}

uint64_t word_of(const Insn &insn) {
    uint64_t word = 0;
    static_assert(sizeof insn == sizeof word);
    std::memcpy(&word, &insn, sizeof word);
    return word;
}

std::string quoted_or_null(std::string_view text) { return text.empty() ? std::string("NULL") : quoted(text); }

class Bundles {
  public:
    Bundles(const ObjectSpec &spec, std::string_view name) : spec_(spec), name_(name) {}

    Result<BundleHeader> write(Bytes object, std::span<const BundleKernel> kernels) {
        TRY(check_fits(spec_));
        out_.needs_kernels = depends_on_kernel(spec_);
        if (out_.needs_kernels && kernels.empty())
            return Unexpected(make_error(Errc::unsupported,
                                         format("{}: its programs depend on the kernel, and no kernel is given", spec_.name),
                                         "--btf /sys/kernel/btf/vmlinux, copied from each machine that it is for"));
        if (!out_.needs_kernels && !kernels.empty())
            out_.notes.push_back(
                "the object depends on no kernel: the bundle is the same on every one, and --btf counts for nothing");
        choose_programs();
        head();
        TRY(write_data());
        TRY(write_types());
        TRY(write_maps());
        TRY(write_programs());
        if (out_.needs_kernels) TRY(write_kernels(kernels));
        write_bundle(out_.needs_kernels ? kernels.size() : 0);
        write_live(object);
        append(out_.text, "\n#endif\n");
        return std::move(out_);
    }

  private:
    void choose_programs() {
        for (size_t i = 0; i < spec_.programs.size(); ++i) {
            if (spec_.programs[i].autoload)
                programs_.push_back(i);
            else
                out_.notes.push_back(format("program {}: left out: its section is ?{}, for programs that are loaded only by name",
                                            spec_.programs[i].name, spec_.programs[i].section));
        }
    }

    void head() {
        append(out_.text,
               "/* {0}: made by `rawbpf bundle` of {1}; edit the program it was made of instead.\n"
               "   For <rawbpf/bundle.h>: one file of a product includes this. */\n"
               "#ifndef {0}_BUNDLE_H\n#define {0}_BUNDLE_H\n\n#include <rawbpf/bundle.h>\n\n",
               name_, commented(spec_.name));
        std::set<std::string> taken;
        for (const MapSpec &map : spec_.maps)
            map_words_.push_back(unique(taken, map.data_section.empty() ? identifier(map.name) : section_word(map.data_section)));
        taken.clear();
        std::vector<std::string> programs;
        for (size_t i : programs_) programs.push_back(unique(taken, identifier(spec_.programs[i].name)));
        enumerate("map", map_words_);
        enumerate("program", programs);
    }

    void enumerate(std::string_view what, const std::vector<std::string> &words) {
        if (words.empty()) return;
        append(out_.text, "enum {{");
        for (size_t i = 0; i < words.size(); ++i) append(out_.text, "{} {}_{}_{}", i ? "," : "", name_, what, words[i]);
        append(out_.text, " }};\n");
    }

    /// The memory of sections of data: "packets_rodata", as bytes and as variables.
    Result<void> write_data() {
        std::optional<btf::Btf> types;
        if (!spec_.btf.empty()) types = TRY(btf::Btf::parse(spec_.btf, format("{}: .BTF", spec_.name)));
        for (size_t i = 0; i < spec_.maps.size(); ++i) {
            const MapSpec &map = spec_.maps[i];
            variables_.emplace_back();
            if (map.data_section.empty()) continue;
            const std::string word = format("{}_{}", name_, map_words_[i]);
            const uint32_t size = (map.value_size + 7) / 8 * 8; // as C pads it; the map's value has its own size
            append(
                out_.text,
                "\n/* {}: initial values, to be changed before it is loaded. */\nstatic union {{\n    unsigned char bytes[{}];\n",
                commented(map.data_section), size);
            if (types) {
                BundleVariables variables = TRY_IN(bundle_variables(*types, map), "{}", spec_.name);
                if (!variables.variables.empty()) append(out_.text, "    struct {{\n{}    }} v;\n", variables.members);
                variables_.back() = std::move(variables.variables);
            }
            const bool zeros =
                std::all_of(map.contents.begin(), map.contents.end(), [](std::byte b) { return b == std::byte{0}; });
            append(out_.text, "}} {}", word);
            if (!zeros) {
                append(out_.text, " = {{{{");
                append_bytes(out_.text, map.contents);
                append(out_.text, "\n}}}}");
            }
            append(out_.text, ";\n");
            // A compiler that laid the struct out otherwise would be noticed only by wrong values.
            append(out_.text, "typedef char {}_has_the_right_size[sizeof {} == {} ? 1 : -1];\n", word, word, size);
        }
        return {};
    }

    /// And the same as 5.10 takes them, if that differs: the bundle is loaded by kernels that this one doesn't know.
    Result<void> write_types() {
        if (spec_.btf.empty()) return {};
        const std::vector<std::byte> old = TRY(sanitize_btf(
            spec_.btf, {.float_kind = false, .decl_tag = false, .type_tag = false, .enum64 = false, .any_name = false}));
        has_old_types_ = old != spec_.btf;
        const auto table = [&](std::string_view what, Bytes bytes) {
            append(out_.text, "\nstatic const unsigned char {}_{}[] __attribute__((aligned(8))) = {{", name_, what);
            append_bytes(out_.text, bytes);
            append(out_.text, "\n}};\n");
        };
        table("types", spec_.btf);
        if (has_old_types_) table("old_types", old);
        return {};
    }

    static std::string map_row(const MapSpec &map, std::string_view contents, std::string_view inner) {
        const bool rings = map.type == BPF_MAP_TYPE_PERF_EVENT_ARRAY;
        const bool typed = map.value_type != 0 && takes_btf(map_type_row(map.type).values);
        std::string pin;
        if (map.pin_by_name) {
            pin = "/sys/fs/bpf/" + map.name;
            std::replace(pin.begin() + 12, pin.end(), '.', '_');
        }
        return format("{{{}, {}, {}, {}, {}, {:#x}, {}, {}, {}, {}, {}, {}, {}, {}}}", quoted(map.name), map.type,
                      rings ? 4 : map.key_size, rings ? 4 : map.value_size, map.max_entries, map.flags, typed ? map.key_type : 0,
                      typed ? map.value_type : 0, map.flags & BPF_F_NUMA_NODE ? map.numa_node : 0, map.map_extra, contents,
                      map.freeze ? 1 : 0, quoted_or_null(pin), inner);
    }

    Result<void> write_maps() {
        for (size_t i = 0; i < spec_.maps.size(); ++i)
            if (spec_.maps[i].inner)
                append(out_.text, "static const struct rawbpf_bundle_map {}_inner_{} = {};\n", name_, i,
                       map_row(*spec_.maps[i].inner, "NULL", "NULL"));
        if (!spec_.maps.empty()) {
            append(out_.text, "\nstatic const struct rawbpf_bundle_map {}_maps[] = {{\n", name_);
            for (size_t i = 0; i < spec_.maps.size(); ++i) {
                const MapSpec &map = spec_.maps[i];
                append(out_.text, "    {},\n",
                       map_row(map, map.data_section.empty() ? "NULL" : format("&{}_{}", name_, map_words_[i]),
                               map.inner ? format("&{}_inner_{}", name_, i) : "NULL"));
            }
            append(out_.text, "}};\n");
        }
        std::string slots;
        for (size_t i = 0; i < spec_.maps.size(); ++i)
            for (const MapSpec::Slot &slot : spec_.maps[i].slots) {
                const std::optional<size_t> program = program_number(slot.target);
                const std::optional<size_t> map = map_number(slot.target);
                if (!program && !map) continue; // a program that is left out: its slot stays empty
                append(slots, "    {{{}, {}, {}, {}}},\n", i, slot.index, program ? 1 : 0, program ? *program : *map);
                ++slot_count_;
            }
        if (slot_count_) append(out_.text, "static const struct rawbpf_bundle_slot {}_slots[] = {{\n{}}};\n", name_, slots);
        return {};
    }

    std::optional<size_t> program_number(std::string_view name) const {
        for (size_t i = 0; i < programs_.size(); ++i)
            if (spec_.programs[programs_[i]].name == name) return i;
        return std::nullopt;
    }
    std::optional<size_t> map_number(std::string_view name) const {
        for (size_t i = 0; i < spec_.maps.size(); ++i)
            if (spec_.maps[i].name == name) return i;
        return std::nullopt;
    }

    Result<void> write_programs() {
        // Ids of the object's own types are no matter of the kernel's: all other relocations are done for each.
        ObjectSpec own = spec_;
        if (!out_.needs_kernels) TRY(relocate_core(own, CoreTargets{}));
        std::string rows;
        for (size_t number = 0; number < programs_.size(); ++number) {
            const ProgramSpec &program = own.programs[programs_[number]];
            const std::string word = format("{}_{}", name_, number);
            append(out_.text, "\n/* {}: {} */\nstatic uint64_t {}_insns[] = {{", commented(program.section),
                   commented(program.name), word);
            for (size_t i = 0; i < program.insns.size(); ++i)
                append(out_.text, "{}{:#018x},", i % 6 ? " " : "\n    ", word_of(program.insns[i]));
            append(out_.text, "\n}};\n");
            base_.push_back(&spec_.programs[programs_[number]].insns);
            const size_t patches = write_patches(program, word);
            if (!program.func_info.empty()) {
                append(out_.text, "static const struct rawbpf_bundle_function {}_functions[] = {{", word);
                for (size_t i = 0; i < program.func_info.size(); ++i)
                    append(out_.text, "{}{{{}, {}}}", i ? ", " : "", program.func_info[i].insn, program.func_info[i].type);
                append(out_.text, "}};\n");
            }
            const SectionKind *kind = find_section_kind(program.section);
            if (way_word(kind) == kByHand && kind && kind->attachment != Attachment::run)
                out_.notes.push_back(
                    format("program {}: bundles don't attach programs of section {}; attach its descriptor by hand", program.name,
                           program.section));
            const bool functions = !program.func_info.empty() && !spec_.btf.empty();
            append(rows, "    {{{}, {}, {}, {:#x}, {}_insns, {}, {}, {}, {}, {}, {}, {}, {}}},\n", quoted(program.name),
                   program.type, program.expected_attach_type, program.flags | (program.sleepable ? BPF_F_SLEEPABLE : 0), word,
                   program.insns.size(), patches ? word + "_patches" : "NULL", patches, functions ? word + "_functions" : "NULL",
                   functions ? program.func_info.size() : 0, way_word(kind), kind ? static_cast<uint32_t>(kind->attach_type) : 0,
                   quoted_or_null(program.attach_target));
        }
        if (!programs_.empty())
            append(out_.text, "\nstatic const struct rawbpf_bundle_program {}_programs[] = {{\n{}}};\n", name_, rows);
        return {};
    }

    size_t write_patches(const ProgramSpec &program, const std::string &word) {
        std::string rows;
        size_t count = 0;
        for (const Fixup &fixup : program.fixups) {
            if (is_kernel_fixup(fixup)) continue;
            const bool value = fixup.kind == Fixup::Kind::map_value;
            append(rows, "{}{{{}, {}, {}, {}}}", count++ ? ", " : "", fixup.insn, fixup.map, value ? 1 : 0,
                   value ? fixup.offset : 0);
        }
        if (count) append(out_.text, "static const struct rawbpf_bundle_patch {}_patches[] = {{{}}};\n", word, rows);
        return count;
    }

    Result<void> write_kernels(std::span<const BundleKernel> kernels) {
        std::string rows;
        for (size_t k = 0; k < kernels.size(); ++k) {
            const ForKernel there = TRY_IN(for_kernel(spec_, *kernels[k].types), "for kernel {}", kernels[k].name);
            note_poisoned(kernels[k].name, there.spec);
            std::string edits, ids;
            size_t count = 0;
            bool any_id = false;
            for (size_t number = 0; number < programs_.size(); ++number) {
                const std::vector<Insn> &before = *base_[number], &after = there.spec.programs[programs_[number]].insns;
                if (before.size() != after.size())
                    return fail(Errc::internal, "program {}: relocation changed its length", number);
                for (size_t i = 0; i < before.size(); ++i)
                    if (word_of(before[i]) != word_of(after[i]))
                        append(edits, "{}{{{}, {}, {:#x}}},", count++ % 4 ? " " : "\n    ", number, i, word_of(after[i]));
                const uint32_t id = there.attach_ids[programs_[number]];
                append(ids, "{}{}", number ? ", " : "", id);
                any_id |= id != 0;
            }
            if (count) append(out_.text, "\nstatic const struct rawbpf_bundle_edit {}_edits_{}[] = {{{}\n}};\n", name_, k, edits);
            if (any_id) append(out_.text, "static const uint32_t {}_ids_{}[] = {{{}}};\n", name_, k, ids);
            const Bytes bytes = kernels[k].types->bytes();
            append(rows, "    {{{}, {}, UINT64_C({:#x}), {}, {}, {}}},\n", quoted(kernels[k].name), bytes.size(),
                   rawbpf_bundle_hash(RAWBPF_BUNDLE_HASH, bytes.data(), bytes.size()),
                   count ? format("{}_edits_{}", name_, k) : "NULL", count, any_id ? format("{}_ids_{}", name_, k) : "NULL");
        }
        append(out_.text, "\nstatic const struct rawbpf_bundle_kernel {}_kernels[] = {{\n{}}};\n", name_, rows);
        return {};
    }

    /// What this kernel doesn't have became a call that no kernel takes: the program loads only where no path comes to it.
    void note_poisoned(const std::string &kernel, const ObjectSpec &there) {
        for (size_t i : programs_)
            for (const ProgramSpec::Poison &poison : there.programs[i].poisoned)
                out_.notes.push_back(format("kernel {}, program {}, instruction {}: {}; modules weren't looked at", kernel,
                                            there.programs[i].name, poison.insn, poison.why));
    }

    void write_bundle(size_t kernels) {
        const auto table = [&](std::string_view what, size_t count) {
            return count ? format("{}_{}, {}", name_, what, count) : std::string("NULL, 0");
        };
        const size_t fds = spec_.maps.size() + 2 * programs_.size();
        append(out_.text, "\nstatic int {}_fds[] = {{", name_);
        for (size_t i = 0; i < std::max<size_t>(fds, 1); ++i) append(out_.text, "{}-1", i ? ", " : ""); // C has no empty arrays
        append(out_.text,
               "}};\n\nstatic const struct rawbpf_bundle {0} = {{\n    {1}, {2},\n    {3}, {4},\n    {5}, {6},\n    {7}, "
               "{8}, {0}_fds,\n}};\n",
               name_, quoted(name_), quoted(spec_.license), table("maps", spec_.maps.size()), table("programs", programs_.size()),
               table("slots", slot_count_), table("kernels", kernels),
               spec_.btf.empty() ? std::string("NULL, 0") : format("{0}_types, sizeof {0}_types", name_),
               has_old_types_ ? format("{0}_old_types, sizeof {0}_old_types", name_) : std::string("NULL, 0"));
    }

    /// The object as it is, for kernels that nobody named.
    void write_live(Bytes object) {
        append(out_.text,
               "\n#ifdef RAWBPF_BUNDLE_LIVE\n"
               "/* On a kernel that isn't among the bundle's: relocates the object itself, on the machine, by <rawbpf/core.h>; "
               "with the heap that this needs.\n"
               "   Afterwards everything is as after rawbpf_bundle_load(). */\n"
               "#include <rawbpf/core.h>\n\nstatic const unsigned char {}_object[] __attribute__((aligned(8))) = {{",
               name_);
        append_bytes(out_.text, object);
        append(out_.text,
               "\n}};\n\nstatic inline int {0}_load_live(struct rawbpf_error *error) {{\n    rawbpf_object *object = NULL;\n    "
               "int result;\n"
               "    if (rawbpf_bundle_is_loaded(&{0})) return rawbpf_bundle_load(&{0}, error); /* says so */\n"
               "    if ((result = rawbpf_open_memory({0}_object, sizeof {0}_object, {1}, &object, error)) < 0) return result;\n",
               name_, quoted(name_));
        for (size_t i = 0; i < spec_.maps.size(); ++i)
            for (const BundleVariable &variable : variables_[i])
                append(out_.text, "    if (result >= 0) result = rawbpf_set_global(object, {}, {}_{}.bytes + {}, {}, error);\n",
                       quoted(variable.name), name_, map_words_[i], variable.offset, variable.size);
        append(out_.text, "    if (result >= 0) result = rawbpf_load(object, error);\n");
        for (size_t i = 0; i < spec_.maps.size(); ++i)
            // One that no program refers to isn't made.
            append(out_.text,
                   "    if (result >= 0 && rawbpf_find_map(object, {2}))\n"
                   "        result = rawbpf_bundle_adopt(&{0}, {1}, rawbpf_map_fd(rawbpf_find_map(object, {2})), error);\n",
                   name_, i, quoted(spec_.maps[i].data_section.empty() ? spec_.maps[i].name : spec_.maps[i].data_section));
        for (size_t i = 0; i < programs_.size(); ++i)
            append(out_.text,
                   "    if (result >= 0) result = rawbpf_bundle_adopt(&{}, {}, rawbpf_program_fd(object, {}, error), error);\n",
                   name_, spec_.maps.size() + i, quoted(spec_.programs[programs_[i]].name));
        append(out_.text,
               "    rawbpf_close(object);\n    if (result < 0) rawbpf_bundle_close(&{});\n    return result < 0 ? result : "
               "RAWBPF_OK;\n}}\n#endif\n",
               name_);
    }

    const ObjectSpec &spec_;
    std::string_view name_;
    std::vector<std::string> map_words_;
    std::vector<size_t> programs_;                       // which of the spec's
    std::vector<const std::vector<Insn> *> base_;        // their instructions as written
    std::vector<std::vector<BundleVariable>> variables_; // by map
    size_t slot_count_ = 0;
    bool has_old_types_ = false;
    BundleHeader out_;
};

} // namespace

bool depends_on_kernel(const ObjectSpec &spec) {
    if (needs_core(spec)) return true;
    return std::any_of(spec.programs.begin(), spec.programs.end(), [](const ProgramSpec &program) {
        return program.autoload &&
               (program.needs_attach_btf || std::any_of(program.fixups.begin(), program.fixups.end(), is_kernel_fixup));
    });
}

Result<BundleHeader> bundle_header(const ObjectSpec &spec, Bytes object, std::string_view name,
                                   std::span<const BundleKernel> kernels) {
    return Bundles(spec, name).write(object, kernels);
}

} // namespace rawbpf::inline v0::inspect
