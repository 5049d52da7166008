// What runtimes are recognised by: the names that a file exports, and the functions that evaluate. PURE.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include <elf.h>

#include "programs/languages/runtime.h"
#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::languages {

/// By the table of the exported names alone: a file without the name is known by one or two reads of it. nullopt: it has no such
/// table.
[[nodiscard]] std::optional<bool> may_export(const elf::Elf &file, std::string_view name);

/// Calls `see(name, symbol, number)` for each symbol of the tables for the dynamic linker, until it returns false.
template <class See> void each_dynamic_symbol(const elf::Elf &file, See &&see) {
    for (const elf::Section &section : file.sections()) {
        if (section.type != SHT_DYNSYM) continue;
        const auto table = file.symbol_table(section);
        if (!table) continue;
        for (size_t i = 1; i < table->size(); ++i)
            if (const auto name = table->name(i); name && !see(std::string_view(*name), table->at(i), i)) return;
    }
}

/// Its executable parts; of `names` those that it exports. `evaluates`: the function that runs the language's, and whatever of it
/// lies elsewhere.
[[nodiscard]] Interpreter exported(const elf::Elf &file, Bytes bytes, std::initializer_list<std::string_view> names,
                                   std::string_view evaluates);

/// Its executable parts, as they are loaded.
[[nodiscard]] std::vector<elf::Segment> executable_segments(const elf::Elf &file);

/// All functions of a file, by offset, with names or without.
[[nodiscard]] std::vector<Interpreter::Range> all_functions(const elf::Elf &file);

/// The function that `of` evaluates by may call another one that does it, which has no name: the largest that it calls, if that
/// is larger than itself. Then that one evaluates alone.
void only_largest_callee(const elf::Elf &file, Bytes bytes, Interpreter &of);

} // namespace rawbpf::inline v0::languages
