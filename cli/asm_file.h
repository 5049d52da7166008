// Assembly text from files: what `asm`, `disasm` and whoever runs programs share.
#pragma once

#include <string_view>
#include <vector>

#include "asm/assemble.h"
#include "cli/object_file.h"

namespace rawbpf::inline v0::cli {

/// Assembles a file's text; `.include` reads files beside it. Errors: bad_input with a summary, after all mistakes have been
/// shown on standard error.
[[nodiscard]] Result<Unit> assemble_file(const InputFile &file, bool lines = true, std::vector<LabelPlace> *labels = nullptr);

/// The same, as what an object file would give: for loading and running. Errors: also those of object_of().
[[nodiscard]] Result<ObjectSpec> open_assembly(const InputFile &file);
/// And its labels.
[[nodiscard]] Result<ObjectSpec> open_assembly(const InputFile &file, std::vector<LabelPlace> &labels);

enum class InputKind : uint8_t { object, hex, text };
/// An ELF file, hexadecimal digits and nothing else, or text to assemble.
[[nodiscard]] InputKind kind_of(Bytes bytes);

/// "b7 00 00 00 05 00 00 00 95 ...", as exec reads it, as one program called "main". Errors: bad_input.
[[nodiscard]] Result<Unit> unit_of_hex(std::string_view text, std::string_view name);

/// Whatever the file is, as a unit.
[[nodiscard]] Result<Unit> open_unit(const InputFile &file);

} // namespace rawbpf::inline v0::cli
