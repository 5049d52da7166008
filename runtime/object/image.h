// An object file taken apart, before it becomes a spec. Private to runtime/object.
//
// Filled step by step by parse_object(): sections and symbols (elf_object.cpp), BTF (object_btf.cpp), maps (map_defs.cpp),
// relocations (relocations.cpp), .BTF.ext (btf_ext.cpp). Each step looks things up by index or by binary search only, so that
// the time stays proportional to the file, hostile ones included.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fail.h"
#include "runtime/elf/elf.h"
#include "runtime/object/code.h"

namespace rawbpf::inline v0::object {

enum class Role : uint8_t { other, code, rodata, data, bss, maps, legacy_maps, struct_ops, arena, jump_tables };

/// What belongs to one section of code; instruction numbers count from the section's start.
struct CodeSection {
    std::vector<CodeRef> refs;
    std::vector<CoreRelocation> core;
    std::vector<FuncInfo> func_info;
    std::vector<LineInfo> line_info;
};

struct Image {
    std::string name; ///< for messages
    elf::Elf elf;
    std::vector<elf::Symbol> symbols;
    std::vector<uint32_t> by_name;    ///< named symbols that aren't local, sorted by name
    std::vector<uint32_t> by_section; ///< sections, sorted by name
    const elf::Section *symtab = nullptr, *btf = nullptr, *btf_ext = nullptr, *maps = nullptr, *legacy_maps = nullptr;
    std::vector<const elf::Section *> relocations; ///< SHT_REL, SHT_RELA
    std::vector<Role> roles;                       ///< by section
    std::vector<CodeSection> code;                 ///< by section; empty ones where there is no code
    std::vector<Code> functions;                   ///< sorted by section and place
    /// Whether a function is a program by itself. Global ones are, outside .text. A static one in a program's section is, too, if
    /// nobody calls it: that shows only when all references are known.
    enum class Use : uint8_t { program, callable, unless_called };
    std::vector<Use> uses;           ///< by function
    std::vector<std::string> hidden; ///< functions of hidden visibility, sorted
    struct Callback {
        std::string function, callback;
    };
    std::vector<Callback> exception_callbacks; ///< __exception_cb(callback), by function

    std::optional<btf::Btf> types; ///< over ObjectSpec::btf
    struct Datasec {
        std::string_view name;
        btf::TypeId id;
        bool has_global = false; ///< a variable that others can see, so that user space may want to map the section
    };
    std::vector<Datasec> datasecs;
    std::vector<uint32_t> extern_of_symbol; ///< by symbol: index into ObjectSpec::externs, or kNone
    std::vector<uint32_t> map_of_section;   ///< by section: the data map made from it, or kNone
    struct MapPlace {
        uint64_t offset, size; ///< in .maps or maps
        uint32_t map;
        uint32_t values = 0; ///< offset of the `values` member in the definition, 0: none
    };
    std::vector<MapPlace> map_places; ///< sorted by offset
    uint32_t kconfig_map = UINT32_MAX;
    const elf::Section *arena = nullptr; ///< global variables that live in the arena
    uint32_t arena_map = UINT32_MAX;
    struct StructOpsPlace {
        uint32_t section;
        uint64_t offset, size;
        uint32_t map;
    };
    std::vector<StructOpsPlace> struct_ops; ///< sorted by section and offset
    std::vector<Bytes> tables;              ///< jump tables that the code refers to
    std::vector<uint32_t> table_of_symbol;  ///< index into tables, or kNone; empty when there are none

    static constexpr uint32_t kNone = UINT32_MAX;
    static constexpr size_t kLongestName = 512; ///< of a function, map or extern; KSYM_NAME_LEN

    [[nodiscard]] const elf::Section &section(uint32_t index) const { return elf.sections()[index]; }
    /// The first section of that name, or nullptr.
    [[nodiscard]] const elf::Section *find_section(std::string_view wanted) const;
    [[nodiscard]] const Datasec *find_datasec(std::string_view wanted) const;
    /// A symbol with that name that is not local; nullptr when there is none.
    [[nodiscard]] const elf::Symbol *find_symbol(std::string_view wanted) const;
    [[nodiscard]] uint32_t symbol_index(const elf::Symbol &symbol) const {
        return static_cast<uint32_t>(&symbol - symbols.data());
    }
    /// The map whose definition starts at, or (inside = true) covers, that offset of the maps section; kNone.
    [[nodiscard]] const MapPlace *find_map(uint64_t offset, bool inside = false) const;

    /// "profile.o: SECTION: offset 0x..: ..." as bad_input.
    template <class... Args> [[nodiscard]] Unexpected bad(const elf::Section &where, uint64_t offset,
                                                          fmt::format_string<Args...> text, Args &&...args) const {
        std::string problem;
        vformat_to(problem, text, fmt::make_format_args(args...));
        return fail(Errc::bad_input, "{}: {}: offset {:#x}: {}", name, where.name, offset, problem);
    }
};

/// Fixes the copy of .BTF in spec.btf (section sizes, offsets, linkage, externs) and fills image.types and spec.externs.
[[nodiscard]] Result<void> read_btf(Image &image, ObjectSpec &spec);
/// spec.maps from .maps, maps, the data sections and .kconfig.
[[nodiscard]] Result<void> read_maps(Image &image, ObjectSpec &spec);
/// spec.maps from .struct_ops and its variants, at the end of the list, and their members that are programs. After the functions
/// are known.
[[nodiscard]] Result<void> read_struct_ops(Image &image, ObjectSpec &spec);
/// The same, which a product that links the core may leave out (struct_ops_part.cpp, core/ways.cpp). Errors: unsupported then.
[[nodiscard]] Result<void> read_struct_ops_part(Image &image, ObjectSpec &spec);
/// The static initialisers of maps. After the functions are known.
[[nodiscard]] Result<void> read_map_slots(Image &image, ObjectSpec &spec);
/// References out of the code: image.code[].refs.
[[nodiscard]] Result<void> read_code_relocations(Image &image, const ObjectSpec &spec);
/// Relocations in data can't be honoured: a sentence for each such section in spec.notes.
[[nodiscard]] Result<void> note_data_relocations(const Image &image, ObjectSpec &spec);
/// func_info, line_info and CO-RE relocations: image.code[].
[[nodiscard]] Result<void> read_btf_ext(Image &image);

} // namespace rawbpf::inline v0::object
