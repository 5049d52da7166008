// What runtimes are recognised by: the names that a file exports, and the functions that evaluate. PURE.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "programs/languages/runtime.h"
#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::languages {

/// By the table of the exported names alone: a file without the name is known by one or two reads of it. nullopt: it has no such
/// table.
[[nodiscard]] std::optional<bool> may_export(const elf::Elf &file, std::string_view name);

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
