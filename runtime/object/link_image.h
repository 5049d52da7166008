// Objects on their way to being one. Private to runtime/object: linker.cpp joins sections and symbols, link_types.cpp types.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/btf/btf.h"
#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::object {

inline constexpr uint32_t kNoSection = UINT32_MAX;

/// Where an input's section went.
struct LinkPlace {
    uint32_t section = kNoSection; ///< index into LinkImage::sections
    uint64_t offset = 0;
};

struct LinkedFile {
    std::string name;
    elf::Elf elf;
    std::vector<elf::Symbol> symbols;
    std::vector<LinkPlace> places; ///< by section
    const elf::Section *btf = nullptr, *btf_ext = nullptr;
    std::optional<btf::Btf> types;
    std::map<std::string_view, btf::TypeId> globals;         ///< VARs and FUNCs that others can see, or that others have
    std::map<btf::TypeId, std::string_view> section_of_type; ///< the DATASEC that lists a VAR or FUNC

    [[nodiscard]] const elf::Section &section(uint32_t index) const { return elf.sections()[index]; }
};

struct LinkedSection {
    std::string_view name;
    elf::Section like;           ///< the first input's header
    std::vector<std::byte> data; ///< empty for NOBITS
    uint64_t size = 0;
    uint32_t first_file = 0;
};

/// A name that is seen between files, and who has it.
struct LinkedSymbol {
    uint32_t file = 0, symbol = 0; ///< the definition, or the first declaration
    bool defined = false, weak = false;
    uint8_t visibility = 0, type = 0;
    std::string_view extern_section; ///< ".ksyms", ".kconfig", ".maps" where a declaration names one
};

struct LinkImage {
    std::vector<LinkedFile> files;
    std::vector<LinkedSection> sections;
    std::map<std::string_view, LinkedSymbol> symbols;

    /// There is one license and one version: the first file's. All others have the same, and what stands in theirs is left out.
    static bool only_once(std::string_view section) { return section == "license" || section == "version"; }
    /// Whether what stands at `place` in this file is in the output.
    [[nodiscard]] bool holds(uint32_t file, const LinkPlace &place) const {
        if (place.section == kNoSection) return false;
        const LinkedSection &section = sections[place.section];
        return !only_once(section.name) || section.first_file == file;
    }
    [[nodiscard]] const LinkedSymbol *find(std::string_view name) const {
        auto at = symbols.find(name);
        return at == symbols.end() ? nullptr : &at->second;
    }
};

struct LinkedTypes {
    std::vector<std::byte> btf, btf_ext; ///< empty when no file has types
};
/// Whether two files mean the same by a name: one function, variable or map. Errors: invalid_argument, with both as C.
[[nodiscard]] Result<void> check_link_types(std::string_view name, const LinkedFile &a, const LinkedFile &b, bool map);

/// Joins .BTF and .BTF.ext. The image's sections and symbols must be final.
[[nodiscard]] Result<LinkedTypes> link_types(const LinkImage &image);

} // namespace rawbpf::inline v0::object
